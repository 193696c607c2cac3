"""What pages quote from a terminal is what the commands above print today."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.shell import in_shell
from tests.docs.test_docs import REPOSITORY, blocks

HOWTO = REPOSITORY / "docs" / "howto"


def test_the_explanation_of_an_item(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = blocks(HOWTO / "annotators.md")
    command = next(code for language, code in found if language == "bash" and "rarevote explain" in code)
    quoted = next(code for language, code in found if language == "text")
    (tmp_path / "calls").mkdir()
    monkeypatch.chdir(tmp_path)
    assert quoted in in_shell(command, tmp_path / "calls").stdout
