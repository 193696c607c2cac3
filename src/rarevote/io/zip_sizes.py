"""What a zip file unpacks to, by its directory, before anything unpacks it: kilobytes may hold gigabytes.

Python reads no more of a member than the directory says, so a directory that says too little hides nothing.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence

from rarevote.errors import InputError, shown

# Tables that say the same in every cell are packed to a hundredth; what is small may be packed as it likes.
_MAX_PACKING = 300
_MAX_SMALL = 64 << 20


def check_members(members: Sequence[zipfile.ZipInfo], size: int, *, title: str, instead: str) -> None:
    """Refuse what is small only because it is packed.

    Args:
        members: those that are going to be read.
        size: bytes of the whole file, which bound what members that share bytes can honestly hold together.
        title: what messages call the file.
        instead: what to do instead, in words.

    Raises:
        InputError: a member, or all together, unpack to more than tables do.
    """
    for member in members:
        _compare(member.file_size, member.compress_size, f"{title}: {shown(member.filename)}", instead)
    _compare(sum(member.file_size for member in members), size, title, instead)


def _compare(unpacked: int, packed: int, named: str, instead: str) -> None:
    if unpacked > max(_MAX_SMALL, _MAX_PACKING * packed):
        raise InputError(f"{named} unpacks from {packed:,} to {unpacked:,} bytes, as no table does; {instead}")
