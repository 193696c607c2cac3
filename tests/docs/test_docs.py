"""Every code block of the README and the docs runs: Python blocks in one namespace a page, bash blocks as commands."""

from __future__ import annotations

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
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def by_name(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


# The long how-tos are run by make prove.
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.prove] if page.parent.name == "howto" else [], id=by_name(page))
        for page in PAGES
    ],
)
def test_code_blocks_run(page: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("page"))
    namespace: dict[str, object] = {}
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
        if anchor:
            assert anchor in anchors(aim), f"{target}#{anchor}"


def test_the_readme_shows_what_the_demo_prints() -> None:
    shown = rarevote("demo")
    text = next(code for language, code in blocks(REPOSITORY / "README.md") if language == "text")
    assert text.strip() in shown.stdout


def test_the_picture_of_the_readme_shows_the_same() -> None:
    """Made by ``python -m benchmarks.readme_picture`` from the demo."""
    picture = (REPOSITORY / "docs" / "rails.svg").read_text(encoding="utf-8")
    text = next(code for language, code in blocks(REPOSITORY / "README.md") if language == "text")
    shown = re.findall(r" {2,}(\d+) +(\d+) of 120 ", text)
    assert len(shown) == 4
    for flagged, found in shown:
        assert f"flagged, of 3,000: {flagged}; defects found, of 120: {found}" in picture


def test_contributing_is_short() -> None:
    assert len((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines()) <= 100
