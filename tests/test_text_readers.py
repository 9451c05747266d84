"""Files, folders and JSON lines turned into documents and clusters."""

import io
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from outside_data import outside_data
from variegate._install import install_command
from variegate.files.folders import read_text
from variegate.text.documents import Document
from variegate.text.readers import read_clusters, read_documents


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def text_of(path):
    return read_documents(path)[0].text


def test_plain_text_is_kept_as_it_is(tmp_path):
    text = "One line.\r\n\tAnother\u00a0one. "
    path = write(tmp_path / "a.txt", text)
    assert read_documents([path]) == [Document(text, str(path))]
    assert (
        text_of(write(tmp_path / "b.log", b"\xef\xbb\xbfWith a mark."))
        == "With a mark."
    )


def test_html(tmp_path, monkeypatch):
    monkeypatch.setattr("trafilatura.extract", lambda *_, **__: None)
    page = """<!DOCTYPE html><html><head><title>Site</title>
    <style>p {color: red}</style>
    <script>if (a < b) document.write("<p>no</p>")</script></head><body>
    <nav><ul><li>Home<li>News</ul></nav><!-- <p>hidden</p> -->
    <h1>Fish &amp; chips</h1><p>A <b>bold</b>er
      plan for&nbsp;you&#8217;.<p>Unclosed<br>line<script/>
    <table><tr><td>a</td><td>b</td></tr></table><pre>x
      y</pre><noscript>Turn it on</noscript>
    <ul><li>First</li><li>Second</li></ul><footer>Imprint</footer></body></html>"""
    blocks = text_of(write(tmp_path / "a.HTML", page)).split("\n\n")
    assert blocks == [
        "Fish & chips",
        "A bolder plan for\u00a0you’.",
        "Unclosed\nline",
        "a\tb",
        "First",
        "Second",
    ]


def test_markdown(tmp_path):
    source = """---
title: no text
---
# The *title*

A [link](https://example.org) and `code`
in one paragraph &amp; an ![image](a.png).

```python
no_text = 1
```

* first
* second

> quoted

<div>raw <b>HTML</b></div>

Setext
------
"""
    blocks = text_of(write(tmp_path / "a.md", source)).split("\n\n")
    expected = ["The title", "A link and code in one paragraph & an ."]
    expected += ["first", "second", "quoted", "raw HTML", "Setext"]
    assert blocks == expected


def test_folders_are_read_sorted_without_hidden_files(tmp_path):
    for name in ["b.txt", "a.md", "sub/c.htm", ".hidden.txt", ".git/d.txt", "e.png"]:
        write(tmp_path / name, "Some text.")
    found = [Path(one.id).relative_to(tmp_path) for one in read_documents(tmp_path)]
    assert found == [Path("a.md"), Path("b.txt"), Path("sub/c.htm")]


def test_standard_input(monkeypatch):
    stream = SimpleNamespace(buffer=io.BytesIO("Déjà vu.".encode()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert read_documents("-") == [Document("Déjà vu.", "standard input")]


def test_encodings(tmp_path):
    path = write(tmp_path / "a.txt", "Déjà vu.".encode("latin-1"))
    assert read_documents([path], encoding="latin-1")[0].text == "Déjà vu."
    wide = write(tmp_path / "b.txt", "Déjà vu.".encode("utf-16"))
    assert read_text(wide, "utf-16") == "Déjà vu."
    message = r"a\.txt is not in utf-8: byte 1 \(0xe9\).*--encoding latin-1"
    with pytest.raises(ValueError, match=message):
        read_documents([path])
    with pytest.raises(ValueError, match="unknown encoding 'klingon': use utf-8"):
        read_documents([path], encoding="klingon")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"PK\x03\x04\0\0", r"a\.txt is not a text file"),
        ("a.txt", " \n\t", r"there is no text in .*a\.txt"),
        ("a.html", "<script>x</script>", r"there is no text in .*a\.html"),
        ("a.md", "```\ncode\n```\n", r"there is no text in .*a\.md"),
    ],
)
def test_files_without_text(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        read_documents([write(tmp_path / name, content)])


def test_missing_files_and_empty_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*nothing\.txt"):
        read_documents([tmp_path / "nothing.txt"])
    with pytest.raises(ValueError, match=r"nothing to read in the folder .*\.txt, "):
        read_documents([tmp_path])
    with pytest.raises(ValueError, match="give at least one file or folder"):
        read_documents([])
    with pytest.raises(IsADirectoryError, match="is a folder, not a file"):
        read_text(tmp_path)


def test_markdown_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    with pytest.raises(ImportError, match=re.escape(install_command("text"))):
        read_documents([write(tmp_path / "a.md", "Text.")])


ROW = {"documents": ["One.", {"id": "b", "text": "Two."}], "references": ["Both."]}


def lines(path, *rows):
    return write(path, "\n\n".join(json.dumps(row) for row in rows) + "\n")


def test_read_clusters(tmp_path):
    full = ROW | {"id": "x", "topic": "M1", "language": "fr", "split": "train"}
    path = lines(tmp_path / "a.jsonl", full, ROW)
    first, second = read_clusters(path)
    assert list(first.documents) == [Document("One.", "1"), Document("Two.", "b")]
    assert list(first.references) == ["Both."]
    assert (first.id, first.group, first.language) == ("x", "M1", "french")
    assert (second.id, second.group, second.language) == ("a.jsonl:3", "", None)
    assert read_clusters(path, where={"split": "train"}) == [first]
    with pytest.raises(ValueError, match=r"no cluster in .* has \{'split': 'test'\}"):
        read_clusters(path, where={"split": "test"})


def test_references_may_be_left_out(tmp_path):
    path = lines(tmp_path / "a.jsonl", {"documents": ["One."]})
    assert list(read_clusters(path, need_references=False)[0].references) == []
    with pytest.raises(ValueError, match="line 1: there are no 'references'"):
        read_clusters(path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"references": ["A."]}, "there are no 'documents'"),
        (ROW | {"documents": []}, "there are no 'documents'"),
        (ROW | {"documents": "One."}, "'documents' must be a list, not 'One.'"),
        (ROW | {"references": "One."}, "'references' must be a list, not 'One.'"),
        (ROW | {"documents": ["A.", 3]}, "item 2 of 'documents' has no text"),
        (ROW | {"documents": [{"id": "a"}]}, "item 1 of 'documents' has no text"),
        (ROW | {"references": [" "]}, "item 1 of 'references' has no text"),
        (ROW | {"language": "xx"}, "unknown language 'xx': use one of english"),
        (ROW | {"language": 3}, "'language' must be a name"),
        ([1, 2], r"not an object but \[1, 2\]"),
    ],
)
def test_bad_clusters(tmp_path, row, message):
    path = lines(tmp_path / "a.jsonl", ROW, row)
    with pytest.raises(ValueError, match=rf"a\.jsonl, line 3: {message}"):
        read_clusters(path)


def test_bad_json_lines(tmp_path):
    with pytest.raises(ValueError, match=r"a\.jsonl, line 1: not JSON \("):
        read_clusters(write(tmp_path / "a.jsonl", '{"documents": ['))
    with pytest.raises(ValueError, match=r"b\.jsonl: the file is empty"):
        read_clusters(write(tmp_path / "b.jsonl", "\n"))


def test_the_real_clusters():
    folder = outside_data("text")
    clusters = read_clusters(folder / "multiling2011.jsonl")
    assert len(clusters) == 49
    assert len({cluster.language for cluster in clusters}) == 7
    assert {cluster.group for cluster in clusters} == {f"M00{n}" for n in range(7)}
    assert {len(cluster.documents) for cluster in clusters} == {10}
    reviews = read_clusters(folder / "fewsum.jsonl", where={"split": "train"})
    assert {len(cluster.documents) for cluster in reviews} == {8}
    assert {len(cluster.references) for cluster in reviews} == {3}
