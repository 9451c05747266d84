"""Folders of DUC turned into clusters."""

import pytest

from paper.documents.duc import read_duc
from variegate.text import Document
from variegate.text.sentences import split_cluster

pytestmark = pytest.mark.paper


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


APW = """<DOC>
<DOCNO> APW19981016.0240 </DOCNO>
<DOCTYPE> NEWS </DOCTYPE>
<HEADLINE>
Cambodian leader rejects
talks
</HEADLINE>
<TEXT>
PHNOM PENH, Cambodia (AP) _ The leader on Friday\x20
rejected demands for talks &AMP; left.\x20
   Opposition parties asked for help.\x20
</TEXT>
</DOC>
"""
NYT = """<DOC>
<DOCNO>NYT19981017.0177</DOCNO>
<TEXT>
<P>
&UR; First paragraph. It
goes on.
</P>
<P>Second <s>one</s>.</P>
</TEXT>
</DOC>
"""


@pytest.fixture
def duc(tmp_path):
    write(tmp_path / "docs/d30001t/NYT19981017.0177", NYT)
    write(tmp_path / "docs/d30001t/APW19981016.0240", APW)
    write(tmp_path / "docs/d30002t/APW19981016.0240", APW)
    for name in ["D30001.M.100.T.B", "D30001.M.100.T.A", "D30002.M.100.T.C"]:
        write(tmp_path / "models" / name, f"Summary {name[-1]}.\n")
    write(tmp_path / "models/D30001.M.050.T.A", "Too short.")
    write(tmp_path / "models/D30001.M.100.U.A", "Of another cluster.")
    return tmp_path


def test_read_duc(duc):
    first, second = read_duc(duc / "docs", duc / "models")
    assert (first.id, first.language, second.id) == ("d30001t", "english", "d30002t")
    assert list(first.references) == ["Summary A.", "Summary B."]
    assert list(second.references) == ["Summary C."]
    assert list(first.documents) == [
        Document(
            "Cambodian leader rejects talks\n\n"
            "PHNOM PENH, Cambodia (AP) _ The leader on Friday rejected demands for "
            "talks & left.\n\nOpposition parties asked for help.",
            "APW19981016.0240",
        ),
        Document("First paragraph. It goes on.\n\nSecond one .", "NYT19981017.0177"),
    ]
    kinds = [one.kind for one in split_cluster(second)]
    assert kinds == ["headline", "body", "body"]


def test_bad_duc_folders(duc):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        read_duc(duc / "docs", duc / "nowhere")
    with pytest.raises(ValueError, match=r"there are no clusters in .*models"):
        read_duc(duc / "models", duc / "models")
    with pytest.raises(
        ValueError, match=r"no reference summaries: .*D30001\.M\.200\.T"
    ):
        read_duc(duc / "docs", duc / "models", words=200)
    write(duc / "docs/d30003t/APW", "Plain text.")
    write(duc / "models/D30003.M.100.T.A", "Summary.")
    with pytest.raises(ValueError, match=r"there is no <TEXT> in .*APW"):
        read_duc(duc / "docs", duc / "models")
    (duc / "docs/d30003t/APW").unlink()
    with pytest.raises(ValueError, match=r"no documents in the folder .*d30003t"):
        read_duc(duc / "docs", duc / "models")
    write(duc / "docs/d30003t/APW", APW)
    write(duc / "models/D30003.M.100.T.A", " ")
    with pytest.raises(ValueError, match=r"there is no text in .*D30003\.M\.100\.T\.A"):
        read_duc(duc / "docs", duc / "models")
