"""Messages are short whatever the data are called: the file, what is wrong, and at the end what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from rarevote import read
from rarevote.errors import ColumnsError, InputError, MissingExtraError, shown

LONG = "x" * 100_000


def test_a_message_is_never_longer_than_a_page() -> None:
    for kind in (InputError, ColumnsError, MissingExtraError):
        message = str(kind(f"votes.csv: no column {LONG}. Say which one"))
        assert len(message) == 1_900
        assert message.startswith("votes.csv: no column xx")
        assert message.endswith("xx. Say which one")
    assert str(InputError("short")) == "short"
    assert InputError().args == ()


@pytest.mark.parametrize(
    "text", [f"{LONG},worker,label\na,b,c\n", f"{LONG},{LONG}y,{LONG}z\na,b,c\n", f"task,worker,label\n{LONG},b\n"]
)
def test_names_of_any_length_in_a_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"votes\.csv") as caught:
        read(path)
    assert len(str(caught.value)) < 2_000


def test_what_python_refuses_to_write_is_shown_all_the_same() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert shown(nested) == "list too long to write"
    assert shown(10**10_000) == "int too long to write"
    assert shown({"a": "b" * 100}, limit=10) == "{'a': 'bb…"
