"""The documentation site builds, is whole, and needs nothing from the network."""

import importlib.util
import inspect
import os
import re
import subprocess
import sys
import time
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from frameworks import FRAMEWORKS, PYTORCH, is_installed

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
cli_reference = importlib.import_module("cli_reference")
sys.path.insert(0, str(DOCS / "_ext"))
mathml = importlib.import_module("mathml")

#: Modules whose ``__all__`` is what the reference is about.
PUBLIC = [
    "variegate",
    "variegate.baselines",
    "variegate.datasets",
    "variegate.decoding",
    "variegate.integrations",
    "variegate.kernels.domains",
    "variegate.kernels",
    "variegate.metrics",
    "variegate.partitions",
    "variegate.files.models",
    "variegate.sampling",
    "variegate.solvers",
    "variegate.tables",
    "variegate.text",
    "variegate.text.rouge",
    "variegate.tuning",
    "variegate.video",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder of the site, built once for all processes of a run."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    out, said = shared / "site", shared / "site-said.txt"
    try:
        out.mkdir()
    except FileExistsError:
        while not said.exists():
            time.sleep(0.2)
    else:
        build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q"]
        build += ["-d", str(out / "doctrees"), str(DOCS), str(out / "html")]
        done = subprocess.run(build, capture_output=True, text=True)
        whole = shared / "site-said.part"
        whole.write_text(done.stderr if done.returncode else "")
        whole.rename(said)
    assert said.read_text() == ""
    return out / "html"


def sources():
    for kind in ("*.md", "*.rst"):
        for page in DOCS.rglob(kind):
            place = page.relative_to(DOCS)
            if not any(part.startswith("_") for part in place.parts):
                yield place


class Loads(HTMLParser):
    """What a browser fetches by itself to show a page."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.pictures = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "link":
            # Others lead to places to go, not to things to load.
            if not {"search", "index", "next", "prev"} & set(attrs["rel"].split()):
                self.addresses.append(attrs["href"])
        elif tag in ("img", "script", "iframe", "source", "video", "audio", "embed"):
            address = attrs.get("src")
            if address is not None:
                self.addresses.append(address)
                if tag == "img":
                    self.pictures.append(address)


def html_pages(site):
    found = sorted(site.rglob("*.html"))
    assert found
    return [(page, Loads(page.read_text(encoding="utf-8"))) for page in found]


def test_every_page_is_there(site):
    for place in sources():
        assert (site / place.with_suffix(".html")).is_file(), place


def test_every_page_can_be_reached_from_the_table_of_contents(site):
    navigation = (site / "index.html").read_text(encoding="utf-8")
    reference = (site / "reference/api/index.html").read_text(encoding="utf-8")
    for place in sources():
        if place.name in ("index.md", "index.rst"):
            continue
        page = place.with_suffix(".html")
        listed = reference if page.parent.name == "api" else navigation
        target = page.name if page.parent.name == "api" else page.as_posix()
        assert f'href="{target}"' in listed, place


def test_pages_load_nothing_from_the_network(site):
    for page, loads in html_pages(site):
        for address in loads.addresses:
            parts = urlsplit(address)
            assert parts.scheme in ("", "data"), (page, address)
            assert not parts.netloc, (page, address)
    for style in site.rglob("*.css"):
        fetched = re.findall(
            r"(?:url\(|@import\s*)[\"']?((?:https?:)?//[^)\"']*)",
            style.read_text(encoding="utf-8"),
        )
        assert fetched == [], style


def test_everything_that_pages_load_is_there(site):
    for page, loads in html_pages(site):
        for address in loads.addresses:
            path = unquote(urlsplit(address).path)
            if path and not address.startswith("data:"):
                assert (page.parent / path).is_file(), (page, address)


def test_pictures_have_a_text_that_says_what_they_show():
    for place in sources():
        for text in re.findall(r"!\[([^\]]*)\]\(", (DOCS / place).read_text("utf-8")):
            assert text.strip(), place


def documented(site):
    """Return the Python names that the reference has, from Sphinx's inventory.

    Methods and attributes are left out.
    """
    content = (site / "objects.inv").read_bytes()
    header = b"".join(content.splitlines(keepends=True)[:4])
    lines = zlib.decompress(content[len(header) :]).decode().splitlines()
    kinds = {f"py:{kind}" for kind in ("class", "data", "exception", "function")}
    entries = (line.split(" ")[:2] for line in lines)
    return {name for name, kind in entries if kind in {*kinds, "py:module"}}


def found(name):
    """Return the object of a dotted name."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for part in parts[n:]:
            # A module may make its names when they are asked for.
            get = getattr if inspect.ismodule(value) else inspect.getattr_static
            value = get(value, part)
        return value
    raise LookupError(name)


def test_every_public_name_is_in_the_reference(site):
    names = documented(site)
    for framework in FRAMEWORKS:
        # What needs a framework that is not there is known by its name only.
        mine = {name for name in names if name.startswith(f"{framework}.")}
        assert mine, f"{framework} is not in the reference"
        if not is_installed(framework):
            names -= {framework, *mine}
    of_pytorch = {name for name in names if name.startswith(PYTORCH)}
    assert "variegate.torch.LEnsembles" in of_pytorch
    modules = [*PUBLIC, "variegate.torch"]
    if importlib.util.find_spec("torch") is None:
        names -= of_pytorch
        modules.remove("variegate.torch")
    objects = [found(name) for name in sorted(names)]
    for module_name in modules:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            assert any(value is known for known in objects), f"{module_name}.{name}"


def test_the_command_line_reference_is_that_of_the_commands():
    page = cli_reference.PAGE.read_text(encoding="utf-8")
    assert page == cli_reference.reference(), "run python docs/cli_reference.py"


def test_the_command_line_reference_has_every_command():
    from variegate.cli.app import app

    page = cli_reference.PAGE.read_text(encoding="utf-8")
    for name in app.list_commands(None):
        assert f"\n## variegate {name}\n" in page
    assert "\n### python -m paper synthetic\n" in page


# Mathematics --------------------------------------------------------------------------


def test_mathematics_is_mathml_and_needs_no_script(site):
    page = (site / "mathematics.html").read_text(encoding="utf-8")
    assert page.count("<math ") > 50
    assert not any("mathjax" in address.lower() for address in Loads(page).addresses)
    assert "\\frac" not in re.sub(r'alttext="[^"]*"', "", page)


def test_the_equations_of_the_paper_have_their_numbers(site):
    page = (site / "mathematics.html").read_text(encoding="utf-8")
    numbers = [int(number) for number in re.findall(r'id="eq-(\d+)"', page)]
    assert set(range(1, 16)) <= set(numbers)
    assert len(numbers) == len(set(numbers))
    for number in numbers:
        assert f'<span class="equation-number">({number})</span>' in page


def test_every_equation_that_docstrings_cite_is_on_the_page(site):
    page = (site / "mathematics.html").read_text(encoding="utf-8")
    cited = set()
    for module in (ROOT / "src").rglob("*.py"):
        text = module.read_text(encoding="utf-8")
        for first, last in re.findall(r"eq\. (\d+)(?:-(\d+))?", text):
            cited |= set(range(int(first), int(last or first) + 1))
    assert cited >= {1, 8, 11, 13, 14, 15}
    for number in cited:
        assert f'id="eq-{number}"' in page, number


def test_names_of_functions_are_upright_and_apart():
    text = mathml.to_mathml(r"2 \log P + \log(x) + \mathrm{diag}(s)", "inline")
    space = '<mspace width="0.167em" />'
    assert f"<mn>2</mn>{space}<mi>log</mi>{space}<mi>P</mi>" in text
    assert '<mi>log</mi><mo stretchy="false">(' in text
    assert ">diag</mi>" in text


def test_lines_are_aligned_at_the_ampersand():
    text = mathml.to_mathml(r"a &= b \\ &= \sum_i c_i", "block")
    assert text.count("<mtr>") == 2
    assert text.count("<mtd>") == 4
    assert "<munder>" in text


def test_a_tag_is_the_number_of_an_equation():
    text = mathml.to_mathml(r"x < y \tag{8}", "block")
    assert text.endswith('<span class="equation-number">(8)</span>')
    assert 'alttext="x &lt; y"' in text


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="no MathML for"):
        mathml.to_mathml(r"\nosuchthing x", "inline")
