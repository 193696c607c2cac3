"""What there is to see of an item: its texts, and pictures from folders and hosts that the command named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from rarevote.errors import InputError, ParameterError
from rarevote.io.platforms.base import shown_text

#: File types that are shown as pictures, with what the browser is told they are. SVG is a document, and not among them.
PICTURE_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".bmp": "image/bmp",
}
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?", re.IGNORECASE)
_LINK = re.compile(r"https://([^/?#@\\\s]+)(/[^\s\\]*)", re.IGNORECASE)


class Pictures:
    """Decides which texts are pictures, and which file or address each of them is.

    Args:
        folders: local files are shown from here and from below only.
        hosts: web pictures are shown from these hosts only, over https.

    Raises:
        InputError: a folder is none.
        ParameterError: a host is none.
    """

    def __init__(self, folders: Sequence[Path] = (), hosts: Sequence[str] = ()) -> None:
        for folder in folders:
            if not folder.is_dir():
                raise InputError(f"{folder}: is no folder; name the one that holds the images")
        for host in hosts:
            # It goes into the content-security policy: nothing but a name may.
            if not _HOST.fullmatch(host):
                raise ParameterError(f"--images-from wants a host such as images.example.org, got {host!r}")
        self._folders = [folder.resolve() for folder in folders]
        self.hosts = tuple(host.lower() for host in hosts)

    def link(self, text: str) -> str | None:
        """The address, if the text is one of a picture on a host that was named.

        >>> pictures = Pictures(hosts=["img.example.org"])
        >>> pictures.link("https://img.example.org/a.png"), pictures.link("https://example.org/a.png")
        ('https://img.example.org/a.png', None)
        """
        found = _LINK.fullmatch(text.strip())
        return found.group() if found and found.group(1).lower() in self.hosts else None

    def file(self, text: str) -> Path | None:
        """The file, if the text names a picture that lies in one of the folders, wherever links may point.

        Raises:
            InputError: it names a picture that is not there, or lies outside.
        """
        text = text.strip()
        if not self._folders or Path(text).suffix.lower() not in PICTURE_TYPES or "://" in text:
            return None
        for folder in self._folders:
            try:
                path = (folder / text).resolve(strict=True)
            except (OSError, ValueError, RuntimeError):  # not there, no name of a file, links in a circle
                continue
            if path.is_relative_to(folder) and path.is_file() and path.suffix.lower() in PICTURE_TYPES:
                return path
        raise InputError("no such picture in the folder that was named")


@dataclass(frozen=True)
class Field:
    """One column of an item.

    Attributes:
        name: of the column; empty for the item's own name.
        text: what stands there.
        address: of the picture to show, if the text is one.
        note: why a picture cannot be shown.
    """

    name: str
    text: str
    address: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class ItemView:
    """An item as the expert sees it: its name and what is shown."""

    task: str
    fields: tuple[Field, ...]


class ItemContent:
    """Makes cards.

    Args:
        tasks: all that may be asked.
        columns: what is shown of each of them, by name of the column.
        pictures: which of these are pictures.
    """

    def __init__(
        self, tasks: Iterable[Any], columns: Mapping[str, Sequence[Any] | NDArray[Any]], pictures: Pictures
    ) -> None:
        self._columns, self.pictures = columns, pictures
        self._row = {task: i for i, task in enumerate(tasks)} if columns else {}

    def card(self, task: Any, number: int) -> ItemView:
        """The card of a task; pictures have addresses that begin with the item's number."""
        fields = [self._field(name, text, f"/picture/{number}/{i}") for i, (name, text) in self._cells(task).items()]
        # Many crowds have nothing but file names for tasks.
        own = self._field("", str(task), f"/picture/{number}/0")
        if own.address is not None and all(field.address is None for field in fields):
            fields.insert(0, own)
        return ItemView(str(task), tuple(fields))

    def picture(self, task: Any, column: int) -> Path | None:
        """The file behind a picture of a card; None if there is none."""
        cells = {0: ("", str(task)), **self._cells(task)}
        try:
            return self.pictures.file(cells[column][1]) if column in cells else None
        except InputError:
            return None

    def _cells(self, task: Any) -> dict[int, tuple[str, str]]:
        """Names and texts of the columns that have one, by number from 1; 0 is the task's own name."""
        texts = [(name, shown_text(values[self._row[task]])) for name, values in self._columns.items()]
        return {i: (name, text) for i, (name, text) in enumerate(texts, 1) if text.strip()}

    def _field(self, name: str, text: str, address: str) -> Field:
        try:
            if self.pictures.file(text) is not None:
                return Field(name, text, address)
        except InputError as error:
            return Field(name, text, note=str(error))
        return Field(name, text, self.pictures.link(text))
