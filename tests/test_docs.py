"""Every example in the documentation runs as written."""

import ast
import doctest
import importlib
import re
import sys
from pathlib import Path

import pytest

import variegate as vg
from frameworks import need_framework_of

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))
pages = importlib.import_module("pages")

PAGES = pages.pages()


def modules_with_examples():
    root = Path(vg.__file__).parent
    for path in sorted(root.rglob("*.py")):
        if ">>>" in path.read_text():
            place = path.relative_to(root.parent).with_suffix("")
            yield ".".join(place.parts).removesuffix(".__init__")


def place(page):
    return str(page.relative_to(ROOT))


#: Pages whose examples take more than ten seconds; ``make docs`` runs them too.
LONG = (
    "docs/start.md",
    "docs/tables.md",
    "docs/tables-python.md",
    "docs/tuning.md",
    "docs/guides/digits.md",
    "docs/guides/labelling.md",
    "docs/guides/recommendation.md",
)


#: Of these, all examples are run every time, on tables of so many groups.
ON_SMALLER_TABLES = {
    "docs/start.md": 40,
    "docs/tables.md": 40,
    "docs/tables-python.md": 40,
}


def with_examples():
    for page in PAGES:
        marks = pytest.mark.docs if place(page) in LONG else ()
        yield pytest.param(page, marks=marks, id=place(page))


@pytest.mark.parametrize("page", list(with_examples()))
def test_examples_run(page, tmp_path):
    if not pages.can_run(page):
        pytest.skip("needs 'variegate[torch]': tests/pytorch has it")
    check_examples(page, tmp_path)


@pytest.mark.parametrize(("name", "n_groups"), ON_SMALLER_TABLES.items())
def test_examples_run_on_smaller_tables(name, n_groups, tmp_path):
    check_examples(ROOT / name, tmp_path, n_groups)


def check_examples(page, tmp_path, n_groups=None):
    pages.run(page, tmp_path, n_groups)
    if page in pages.illustrated_pages():
        shown = {picture.name for picture in pages.pictures(page)}
        assert shown, "the page shows no picture"
        assert pages.made_pictures(page, tmp_path), (
            f"the page's code makes none of {sorted(shown)}"
        )


def test_console_blocks_run_in_order_with_the_python_blocks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfrom pathlib import Path\nPath('a.txt').write_text('one')\n```\n"
        "```console\n$ mkdir sub\n$ cd sub; cp ../a.txt \\\n>   b.png\nb copied\n```\n"
        "```python\nassert Path('sub/b.png').read_text() == 'one'\n```\n"
        "![b](images/b.png)\n"
    )
    folder = tmp_path / "run"
    folder.mkdir()
    pages.run(page, folder)
    shown = tmp_path / "images" / "b.png"
    assert pages.made_pictures(page, folder) == {shown: folder / "sub" / "b.png"}


def test_blocks_of_the_readme_run_by_themselves(tmp_path):
    text = "```python\nstorm = 1\n```\n\n```python\nprint(storm)\n```\n"
    for name in ("page.md", "README.md"):
        (tmp_path / name).write_text(text)
    pages.run(tmp_path / "page.md", tmp_path)
    with pytest.raises(NameError, match="storm"):
        pages.run(tmp_path / "README.md", tmp_path)


def test_a_command_that_fails_fails_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```console\n$ false\n$ true\n```\n")
    with pytest.raises(RuntimeError, match=r"page.md, line 4: exit status 1"):
        pages.run(page, tmp_path)


def test_a_command_of_ours_that_fails_fails_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ variegate --version\n$ variegate describe \\\n> no.json\n```\n"
    )
    with pytest.raises(RuntimeError, match=r"(?s)line 2: exit status 2.*'no.json'"):
        pages.run(page, tmp_path)


def test_nothing_is_installed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ pip install no-such-package\n```\n")
    pages.run(page, tmp_path)


def test_the_commands_of_this_environment_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```console\n$ variegate --version > version.txt\n```\n")
    pages.run(page, tmp_path)
    assert vg.__version__ in (tmp_path / "version.txt").read_text()


@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_docstring_examples(name):
    need_framework_of(name)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=place)
def test_links_to_files_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_the_readme_names_the_two_commands():
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_defaults_in_docstrings_are_those_of_the_code():
    import inspect

    for cls in (vg.LargeMarginDPP, vg.Linear, vg.MultipleKernel, vg.Precomputed):
        documented = dict(
            re.findall(r"^(\w+) : .*default=(\S+)$", inspect.getdoc(cls), re.MULTILINE)
        )
        assert documented, cls.__name__
        for name, value in documented.items():
            default = inspect.signature(cls.__init__).parameters[name].default
            assert eval(value) == default, f"{cls.__name__}.{name}"


def test_the_model_file_page_shows_a_file_that_loads(tmp_path):
    text = (ROOT / "docs" / "model-file.md").read_text()
    block = re.search(r"```json\n(.*?)```", text, re.DOTALL).group(1)
    path = tmp_path / "model.json"
    path.write_text(block)
    assert vg.load(path).alpha_.tolist() == [0.25, 0.5]


@pytest.mark.parametrize(
    ("page", "example"),
    [
        ("context", "context_haystack"),
        ("context", "context_langchain"),
        ("context", "context_llamaindex"),
        ("evidence", "evidence_langchain"),
    ],
)
def test_guides_show_the_examples(page, example):
    source = (ROOT / "examples" / f"{example}.py").read_text()
    (main,) = (
        ast.get_source_segment(source, node)
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == "main"
    )
    text = (ROOT / "docs" / "guides" / f"{page}.md").read_text()
    assert f"```py\n{main}\n```" in text
