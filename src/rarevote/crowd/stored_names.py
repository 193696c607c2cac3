"""Names that stay on disk: the ids of tens of millions of tasks are not held in memory while a method runs.

Stored names stand where an array of names would, sorted and distinct, none of them missing. Whoever needs them all
turns them into an array and pays for it; whoever needs a few asks for those.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class StoredNames(ABC):
    """Distinct names in sorted order, elsewhere; all of them are text."""

    dtype = np.dtype(object)
    ndim = 1

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The names with these numbers."""

    @abstractmethod
    def find(self, values: Sequence[Any]) -> NDArray[np.int64]:
        """The number of each value; -1 for what is no name."""

    @abstractmethod
    def restricted(self, used: NDArray[np.bool_]) -> StoredNames:
        """Only the names that are used, renumbered."""

    @abstractmethod
    def load(self) -> NDArray[Any]:
        """All of them, as an array of text."""

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("names on disk cannot be an array without being copied")
        return self.load() if dtype is None else self.load().astype(dtype)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, (int, np.integer)):
            if not -len(self) <= index < len(self):
                raise IndexError(f"no name number {index} among {len(self):,}")
            return self.take(np.array([index % len(self)], dtype=np.int64))[0]
        return self.take(np.arange(len(self))[index])

    def tolist(self) -> list[Any]:
        """All of them, as a list."""
        return list(self.load())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.load())


def positions_of(names: NDArray[Any] | StoredNames, values: Sequence[Any]) -> NDArray[np.int64]:
    """Where each value stands among the names; -1 for what is none of them."""
    if isinstance(names, StoredNames):
        return names.find(values)
    position = {name: number for number, name in enumerate(names.tolist())}
    return np.fromiter((position.get(value, -1) for value in values), dtype=np.int64, count=len(values))
