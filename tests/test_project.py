"""What surrounds the package holds together: versions, citation, workflow, hooks, the menu of the docs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import rarevote
from tests.conftest import LONG_FILES
from tests.lowest import lowest

REPOSITORY = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
TARGETS = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def read_yaml(name: str) -> Any:
    return yaml.safe_load((REPOSITORY / name).read_text(encoding="utf-8"))


def test_one_version() -> None:
    version = PROJECT["project"]["version"]
    changes = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", changes, re.MULTILINE)
    assert newest is not None
    assert {version, rarevote.__version__, read_yaml("CITATION.cff")["version"], newest[1]} == {version}


def test_the_files_of_tests_that_are_begun_first_are_there() -> None:
    assert [name for name in LONG_FILES if not (REPOSITORY / "tests" / name).is_file()] == []


def test_the_citation_names_the_paper_and_the_software() -> None:
    found = read_yaml("CITATION.cff")
    paper = found["preferred-citation"]
    assert (found["title"], found["type"], found["license"]) == ("rarevote", "software", PROJECT["project"]["license"])
    assert paper["title"] in " ".join((REPOSITORY / "docs" / "methods.md").read_text("utf-8").split()).replace("*", "")
    assert len(paper["authors"]) == 5


def test_the_workflow_runs_what_the_makefile_has() -> None:
    jobs = read_yaml(".github/workflows/ci.yml")["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert matrix["python"] == classified
    kinds = [*matrix["versions"], *(row["versions"] for row in matrix["include"])]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    for command in commands:
        for kind in kinds if "${{" in command else [""]:
            words = command.replace("${{ matrix.versions }}", kind).split()
            assert words[0] == "make"
            assert set(words[1:]) <= TARGETS


def test_the_hooks_run_tools_of_the_development_group() -> None:
    tools = {re.split(r"[\[>=]", line)[0] for line in PROJECT["dependency-groups"]["dev"]}
    for hook in read_yaml(".pre-commit-config.yaml")["repos"][0]["hooks"]:
        assert Path(hook["entry"].split()[0]).name in tools | {"python"}


def test_every_library_has_a_lowest_version() -> None:
    found = list(lowest())
    assert "numpy==1.26" in found
    assert any(line.startswith("polars==") for line in found)
    names = {re.split(r"[\[>=;]", line)[0].lower() for line in PROJECT["project"]["dependencies"]}
    assert names <= {line.partition("==")[0].lower() for line in found}


@pytest.mark.parametrize("page", sorted((REPOSITORY / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_every_page_is_in_the_menu(page: Path) -> None:
    menu = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    name = page.relative_to(REPOSITORY / "docs").as_posix()
    assert f" {name}\n" in menu, "add the page to nav in mkdocs.yml"
    if page.parent.name == "howto":
        start = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8")
        assert f"({name})" in start, "name it on docs/index.md"
