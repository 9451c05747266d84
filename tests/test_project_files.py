"""Files for hosts of code and documentation agree with pyproject.toml."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import variegate as vg

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(name):
    return yaml.safe_load((ROOT / name).read_text())


def test_the_citation_is_of_this_version_and_names_the_paper():
    citation = read("CITATION.cff")
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == vg.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    (paper,) = citation["references"]
    assert paper["year"] == 2015
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Gong", "Chao", "Grauman", "Sha"]
    assert paper["identifiers"][0]["value"] == "arXiv:1411.1537"


def test_the_changelog_begins_with_this_version():
    heading = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading[1] == vg.__version__


def test_every_supported_python_is_tested():
    prefix = "Programming Language :: Python :: 3."
    supported = [
        name.removeprefix("Programming Language :: Python :: ")
        for name in PROJECT["classifiers"]
        if name.startswith(prefix)
    ]
    assert PROJECT["requires-python"] == f">={supported[0]}"
    (job,) = read(".github/workflows/tests.yml")["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == supported
    assert job["steps"][-1]["run"].startswith("make test ")


def test_sites_build_with_extras_that_exist():
    settings = read(".readthedocs.yaml")
    (package,) = settings["python"]["install"]
    assert set(package["extra_requirements"]) <= set(PROJECT["optional-dependencies"])
    assert (ROOT / settings["sphinx"]["configuration"]).is_file()
    assert settings["build"]["tools"]["python"] in str(PROJECT["classifiers"])


@pytest.mark.parametrize(
    "name",
    [
        ".pre-commit-config.yaml",
        ".github/ISSUE_TEMPLATE/bug.yml",
        ".github/ISSUE_TEMPLATE/feature.yml",
        ".github/workflows/wheel.yml",
    ],
)
def test_other_files_are_mappings(name):
    assert isinstance(read(name), dict)
