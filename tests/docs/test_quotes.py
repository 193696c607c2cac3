"""What pages quote from a terminal is what the commands above print today."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.docs.shell import in_shell
from tests.docs.test_docs import REPOSITORY, blocks

HOWTO = REPOSITORY / "docs" / "howto"

# How the files that a reader writes begin.
FILES = ("true,sound,crack,missing bolt",)
PAGES = {
    page: quoted
    for page in sorted(HOWTO.glob("*.md"))
    if (
        quoted := [
            text
            for (before, _), (language, text) in itertools.pairwise(blocks(page))
            if before in ("bash", "text") and language == "text" and not text.startswith(("$ ", *FILES))
        ]
    )
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_quoted_below_commands_is_what_they_print(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "calls").mkdir()
    monkeypatch.chdir(tmp_path)
    done = in_shell("\n".join(code for language, code in blocks(page) if language == "bash"), tmp_path / "calls")
    printed = " ".join(f"{done.stdout}\n{done.stderr}".split())
    for text in PAGES[page]:
        for part in text.split("\n\n"):
            assert " ".join(part.split()) in printed
