"""Every code block of the README and the docs runs: Python blocks in one namespace a page, bash blocks as commands."""

from __future__ import annotations

import csv
import re
import subprocess
import tomllib
from pathlib import Path

import markdown
import pytest

from tests.command import rarevote
from tests.conftest import shortened_chains
from tests.docs.shell import in_shell, shell_environment

REPOSITORY = Path(__file__).resolve().parents[2]
README = REPOSITORY / "README.md"
PAGES = [README, *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def tables(page: Path) -> list[list[list[str]]]:
    """The tables of a page, as rows of cells without the line below the heading."""
    found: list[list[list[str]]] = [[]]
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
        elif found[-1]:
            found.append([])
    return [[rows[0], *rows[2:]] for rows in found if rows]


def write_votes_of_the_readme(folder: Path) -> None:
    """The first table of the README is the file that its first command reads."""
    (folder / "votes.csv").write_text("".join(f"{','.join(row)}\n" for row in tables(README)[0]), encoding="utf-8")


def by_name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


# Pages with whole jobs are run by make prove.
LONG = {"README.md", "tutorial.md"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=[pytest.mark.prove] if page.parent.name == "howto" or page.name in LONG else [],
            id=by_name(page),
        )
        for page in PAGES
    ],
)
def test_code_blocks_run(page: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("page"))
    namespace: dict[str, object] = {}
    if page == README:
        write_votes_of_the_readme(Path.cwd())
    # That they run is the point here, not what they say.
    with shortened_chains():
        for language, code in blocks(page):
            known = ("python", "bash", "console", "text", "json", "toml")
            assert language in known, f"unknown kind of block {language!r}"
            if language == "python":
                exec(compile(code, str(page), "exec"), namespace)
            elif language == "bash":
                done = in_shell(code, tmp_path_factory.mktemp("calls"))
                assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
            elif language == "toml":
                tomllib.loads(code)


def test_commands_are_those_of_the_installed_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One block, with files, a folder and a pipe, in a shell that knows nothing of the tests: the same is said."""
    code = next(code for language, code in blocks(REPOSITORY / "docs" / "howto" / "files.md") if language == "bash")
    assert "| rarevote aggregate -" in code
    there, here, calls = (tmp_path / name for name in ("there", "here", "calls"))
    for folder in (there, here, calls):
        folder.mkdir()
    process = subprocess.run(
        ["bash", "-euc", code], env=shell_environment(), cwd=there, capture_output=True, encoding="utf-8"
    )
    assert process.returncode == 0, process.stderr
    monkeypatch.chdir(here)
    assert in_shell(code, calls).stdout == process.stdout
    assert sorted(path.relative_to(here) for path in here.rglob("*")) == sorted(
        path.relative_to(there) for path in there.rglob("*")
    )


def test_a_failing_command_ends_the_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "calls").mkdir()
    done = in_shell("echo before; rarevote aggregate absent.csv; echo after", tmp_path / "calls")
    assert (done.stdout, done.returncode) == ("before\n", 1)
    assert "absent.csv: no such file" in done.stderr


FRONT = [REPOSITORY / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]


def anchors(page: Path) -> set[str]:
    """What a link can point to on a page: its headings, as the site numbers them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    maker = markdown.Markdown(extensions=["toc"])
    maker.convert(text)
    found: set[str] = set()
    entries = list(maker.toc_tokens)
    while entries:
        entry = entries.pop()
        found.add(entry["id"])
        entries += entry["children"]
    return found


@pytest.mark.parametrize("page", [*PAGES, *FRONT], ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        aim = page.parent / target if target else page
        assert aim.exists(), target
        if anchor and aim.suffix == ".md":  # that of a picture says whether it is for light or dark
            assert anchor in anchors(aim), f"{target}#{anchor}"


def test_the_readme_can_be_read_in_minutes() -> None:
    assert len(README.read_text(encoding="utf-8").split()) <= 900


def test_the_labels_of_the_readme_are_those_of_its_votes(tmp_path: Path) -> None:
    write_votes_of_the_readme(tmp_path)
    command = next(code for language, code in blocks(README) if language == "bash")
    rarevote(*command.split()[1:], folder=tmp_path)
    head, *rows = csv.reader((tmp_path / "labels.csv").read_text(encoding="utf-8").splitlines())
    shown = [[cell if not re.fullmatch(r"0\.\d+", cell) else f"{float(cell):.3f}" for cell in row] for row in rows]
    assert (len(tables(README)[0]), len(shown)) == (7, 3)
    assert tables(README)[1] == [head, *shown]


def test_the_readme_shows_what_the_demo_prints() -> None:
    shown = rarevote("demo")
    text = next(code for language, code in blocks(README) if language == "text")
    assert text.strip() in shown.stdout


def test_the_picture_of_the_readme_shows_the_same() -> None:
    """Made by ``python -m benchmarks.readme_picture`` from the demo."""
    text = next(code for language, code in blocks(README) if language == "text")
    shown = re.findall(r" {2,}(\d+) +(\d+) of 120 ", text)
    assert len(shown) == 4
    for name in re.findall(r'(?:srcset|src)="([^"]+)"', README.read_text(encoding="utf-8")):
        picture = (REPOSITORY / name).read_text(encoding="utf-8")
        for flagged, found in shown:
            assert f"flagged, of 3,000: {flagged}; defects found, of 120: {found}" in picture


def test_contributing_is_short() -> None:
    assert len((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 100
