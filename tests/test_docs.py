"""Every example in the documentation runs as written."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import variegate as vg

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
MODULES = [
    module.name
    for module in pkgutil.walk_packages(vg.__path__, "variegate.")
    if ".cli" not in module.name
]


def code_blocks(page):
    return re.findall(
        r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": page.stem}
    for block in code_blocks(page):
        # Blocks of a page build on each other, as a reader types them.
        exec(compile(block, str(page), "exec"), namespace)


@pytest.mark.parametrize("name", ["variegate", *MODULES])
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
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
            re.findall(r"^    (\w+) : .*default=(\S+)$", cls.__doc__, re.MULTILINE)
        )
        for name, value in documented.items():
            default = inspect.signature(cls.__init__).parameters[name].default
            assert eval(value) == default, f"{cls.__name__}.{name}"


def test_the_model_file_page_shows_a_file_that_loads(tmp_path):
    text = (ROOT / "docs" / "model-file.md").read_text()
    block = re.search(r"```json\n(.*?)```", text, re.DOTALL).group(1)
    path = tmp_path / "model.json"
    path.write_text(block)
    assert vg.load(path).alpha_.tolist() == [0.25, 0.5]
