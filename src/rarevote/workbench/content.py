"""The content of an item: its texts, images, sounds, films, documents and links, each shown by its kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarevote.errors import InputError
from rarevote.io.platforms.base import shown_text
from rarevote.workbench.kinds import kinds_of, parse_kinds
from rarevote.workbench.markup import frame_page
from rarevote.workbench.media import Media, file_kind, is_address

_FILES = ("image", "audio", "video", "pdf")
_MARKUP = ("html", "markdown")


@dataclass(frozen=True)
class Field:
    """One column of an item.

    Attributes:
        name: name of the column; empty for the item's own name.
        text: the text.
        kind: one of :data:`rarevote.workbench.kinds.KINDS`, or ``table``.
        address: the address of a file, an image or a page of markup.
        note: why something cannot be shown.
        rows: names and values of a table.
    """

    name: str
    text: str
    kind: str = "text"
    address: str | None = None
    note: str | None = None
    rows: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class ItemView:
    """An item as shown to the expert: its name and its fields."""

    task: str
    fields: tuple[Field, ...]


class ItemContent:
    """The content of all items.

    Args:
        tasks: all tasks that can be asked.
        columns: the columns to show, by name.
        media: which files and hosts can be shown.
        show_as: ``COLUMN=KIND`` for columns whose kind the user named.

    Raises:
        ParameterError: ``show_as`` names an unknown kind or column.
    """

    def __init__(
        self,
        tasks: Iterable[Any],
        columns: Mapping[str, Sequence[Any] | NDArray[Any]],
        media: Media,
        show_as: Sequence[str] = (),
    ) -> None:
        self._columns, self.media = columns, media
        self._row = {task: i for i, task in enumerate(tasks)} if columns else {}
        self._named = parse_kinds(show_as, list(columns))
        texts = {name: (shown_text(value) for value in values) for name, values in columns.items()}
        self._kinds = kinds_of(texts, self._named)

    def view(self, task: Any, number: int) -> ItemView:
        """The item as it is shown; addresses of its files begin with the item's number."""
        fields = [self._field(name, text, f"{number}/{i}") for i, (name, text) in self._cells(task).items()]
        # In many crowds, tasks are only file names.
        own = self._field("", str(task), f"{number}/0")
        if own.address is not None and all(field.kind not in _FILES for field in fields):
            fields.insert(0, own)
        return ItemView(str(task), tuple(fields))

    def file(self, task: Any, column: int) -> Path | None:
        """The file that a column of an item shows; None if there is none."""
        text = self._text(task, column)
        try:
            return None if text is None else self.media.file(text)
        except InputError:
            return None

    def frame(self, task: Any, column: int) -> str | None:
        """The page that a column of an item shows in a frame; None if it shows none."""
        cell = self._cells(task).get(column)
        if cell is None or self._kinds[cell[0]] not in _MARKUP:
            return None
        return frame_page(cell[1], self._kinds[cell[0]])

    def _text(self, task: Any, column: int) -> str | None:
        return str(task) if column == 0 else self._cells(task).get(column, ("", None))[1]

    def _cells(self, task: Any) -> dict[int, tuple[str, str]]:
        """Names and texts of the columns that have one, by number from 1; 0 is the task's own name."""
        texts = [(name, shown_text(values[self._row[task]])) for name, values in self._columns.items()]
        return {i: (name, text) for i, (name, text) in enumerate(texts, 1) if text.strip()}

    def _field(self, name: str, text: str, place: str) -> Field:
        named = self._named.get(name)
        if named == "text":
            return Field(name, text)
        kind = named or self._kinds.get(name, "text")
        if kind in _MARKUP:
            return Field(name, text, kind, f"/frame/{place}")
        try:
            if self.media.file(text) is not None:
                return Field(name, text, file_kind(text) or "text", f"/file/{place}")
        except InputError as error:
            return Field(name, text, note=str(error))
        if (image := self.media.image_address(text)) is not None:
            return Field(name, text, "image", image)
        if kind in _FILES:
            return Field(name, text, note=f"this file cannot be shown as {kind}; name its folder with --media")
        if is_address(text):
            return Field(name, text, "link", text.strip())
        rows = _rows(text)
        return Field(name, text, "table", rows=rows) if rows else Field(name, text)


def _rows(text: str) -> tuple[tuple[str, str], ...]:
    """Names and values of a text that is a JSON object; nothing for any other text."""
    if not text.lstrip().startswith("{"):
        return ()
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return tuple((str(name), shown_text(value)) for name, value in record.items()) if isinstance(record, dict) else ()
