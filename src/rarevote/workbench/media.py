"""The media of items: only files from folders and images from hosts that the command names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rarevote.errors import InputError, ParameterError

#: File types that are shown, with the type that the browser gets. SVG and HTML are documents that run code, and are
#: not among them.
MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".flac": "audio/flac",
    ".m4a": "audio/mp4",
    ".aac": "audio/aac",
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".webm": "video/webm",
    ".ogv": "video/ogg",
    ".mov": "video/quicktime",
    ".pdf": "application/pdf",
}
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://([^/?#@\\\s]+)([/?#][^\s\\]*)?", re.IGNORECASE)


class Media:
    """Decides which texts name a file or a web image that can be shown.

    Args:
        folders: local files are shown only from these folders and their subfolders.
        hosts: web images are shown from these hosts only, over https.

    Raises:
        InputError: a folder does not exist.
        ParameterError: a host name is not valid.
    """

    def __init__(self, folders: Sequence[Path] = (), hosts: Sequence[str] = ()) -> None:
        for folder in folders:
            if not folder.is_dir():
                raise InputError(f"{folder}: not a folder; give the folder of the files to show")
        for host in hosts:
            # It goes into the content-security policy: only a plain name is allowed.
            if not _HOST.fullmatch(host):
                raise ParameterError(f"--images-from needs a host such as images.example.org, got {host!r}")
        self._folders = [folder.resolve() for folder in folders]
        self.hosts = tuple(host.lower() for host in hosts)

    def image_address(self, text: str) -> str | None:
        """The address, if the text is an address on a named host.

        >>> media = Media(hosts=["img.example.org"])
        >>> media.image_address("https://img.example.org/a.png"), media.image_address("https://example.org/a.png")
        ('https://img.example.org/a.png', None)
        """
        found = _ADDRESS.fullmatch(text.strip())
        secure = text.strip().lower().startswith("https://")
        return found.group() if found and secure and found.group(2) and found.group(1).lower() in self.hosts else None

    def file(self, text: str) -> Path | None:
        """The file, if the text names one of a supported type in one of the folders.

        A link inside a folder that points out of it is followed, and then refused.

        Raises:
            InputError: it names a file that does not exist there, or is outside.
        """
        text = text.strip()
        if not self._folders or "://" in text or "\n" in text or file_kind(text) is None:
            return None
        for folder in self._folders:
            try:
                path = (folder / text).resolve(strict=True)
            except (OSError, ValueError, RuntimeError):  # absent, not a file name, or a loop of links
                continue
            if path.is_relative_to(folder) and path.is_file() and path.suffix.lower() in MEDIA_TYPES:
                return path
        raise InputError("no such file in the folder of --media")


def file_kind(text: str) -> str | None:
    """The kind of a file from its name: image, audio, video or pdf; None for all others.

    >>> file_kind("a/b.PNG"), file_kind("talk.mp3"), file_kind("report.pdf"), file_kind("page.svg")
    ('image', 'audio', 'pdf', None)
    """
    mime = MEDIA_TYPES.get(Path(text.strip()).suffix.lower())
    return None if mime is None else mime.rpartition("/")[2] if mime.endswith("pdf") else mime.partition("/")[0]


def is_address(text: str) -> bool:
    """Whether a text is a web address and nothing else.

    >>> is_address("https://example.org/a?b=1"), is_address("see https://example.org"), is_address("javascript:x()")
    (True, False, False)
    """
    return _ADDRESS.fullmatch(text.strip()) is not None
