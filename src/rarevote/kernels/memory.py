"""The memory that this process can still use, so that work that cannot finish is refused before it starts."""

from __future__ import annotations

import os
from pathlib import Path

from rarevote.errors import NotEnoughMemoryError

_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")


def gigabytes(n_bytes: float) -> str:
    """Bytes as readable text.

    >>> gigabytes(123_456_789_012), gigabytes(23_400_000_000), gigabytes(850_000_000)
    ('123 GB', '23.4 GB', '0.85 GB')
    """
    size = n_bytes / 1e9
    return f"{size:,.0f} GB" if size >= 99.5 else f"{size:.1f} GB" if size >= 9.95 else f"{size:.2f} GB"


def physical_memory() -> int:
    """Bytes of memory that the machine has; 0 if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0


def available_memory() -> int | None:
    """Bytes that this process can still use: the minimum over machine, container and ``ulimit -v``.

    Returns:
        None if unknown.
    """
    told = (_left_on_machine(), _left_in_container(), address_space_left())
    return min((left for left in told if left is not None), default=None)


def address_space_left() -> int | None:
    """Bytes of address space that ``ulimit -v`` leaves this process; None without such a limit.

    More than the memory in use counts: libraries reserve addresses that they never write to.
    """
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return None
        pages = int((_PROC / "self" / "statm").read_text().split()[0])
        return max(limit - pages * resource.getpagesize(), 0)
    except (ImportError, OSError, ValueError):  # not every system has it
        return None


def require_address_space(needed: int, what: str) -> None:
    """Refuse work in which a library would end the process without an error message.

    Raises:
        NotEnoughMemoryError: ``ulimit -v`` leaves less.
    """
    left = address_space_left()
    if left is not None and left < needed:
        raise NotEnoughMemoryError(
            f"{what} needs {gigabytes(needed)} of address space, and ulimit -v leaves {gigabytes(left)}: raise that "
            "limit, or limit memory in use instead (a container, systemd's MemoryMax)"
        )


def _left_on_machine() -> int | None:
    try:
        lines = (_PROC / "meminfo").read_text().splitlines()
        told = {name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines)}
        return told["MemAvailable"] + told.get("SwapFree", 0)
    except (OSError, ValueError, IndexError, KeyError):
        return physical_memory() or None


def _left_in_container() -> int | None:
    try:
        limit = int((_CGROUP / "memory.max").read_text())  # "max" means no limit
        used = int((_CGROUP / "memory.current").read_text())
        told = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return max(limit - used + int(told["inactive_file"]), 0)  # cached files can be dropped
    except (OSError, ValueError, KeyError):
        return None
