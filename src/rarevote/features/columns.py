"""Columns in standard form: missing cells at the mean, centred, with unit variance, one block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarevote.crowd.numerics import FloatArray, IntArray
from rarevote.errors import InputError

BLOCK = 16_384  # rows at a time
# Up to this many cells, the standard form is stored in double precision; for a larger table, each pass recomputes it.
_KEPT_CELLS = 1 << 24
_CONSTANT = 1e-9
_LARGEST = 1e30  # larger numbers are codes or errors, and their squares overflow


def blocks(n: int) -> Iterator[slice]:
    """Slices of the rows, one per block."""
    return (slice(begin, min(begin + BLOCK, n)) for begin in range(0, n, BLOCK))


@dataclass(frozen=True, eq=False)
class Columns:
    """A table of numbers in standard form, then projected on the axes that are kept.

    ``x = (v - mean) / sd`` of the columns that vary, then ``x @ axes``.

    Attributes:
        values: the original numbers, (N, D); can be a memory map.
        row: the row of ``values`` of each item, (n).
        kept: columns that vary, (d).
        mean: means of these, (d).
        sd: standard deviations of these, (d).
        axes: principal axes if there are too many columns, (d, m); None for the columns themselves.
        n_missing: number of cells that are not finite numbers.
    """

    values: NDArray[Any]
    row: IntArray
    kept: IntArray
    mean: FloatArray
    sd: FloatArray
    axes: FloatArray | None = None
    n_missing: int = 0

    @classmethod
    def of(cls, values: NDArray[Any], row: IntArray, names: list[str]) -> Columns:
        """The columns over these rows.

        Raises:
            InputError: a number is too large.
        """
        n, width = len(row), values.shape[1]
        total, count, largest = np.zeros(width), np.zeros(width, dtype=np.int64), np.zeros(width)
        for part in blocks(n):
            block = np.asarray(values[row[part]], dtype=np.float64)
            finite = np.isfinite(block)
            block = np.where(finite, block, 0.0)
            largest = np.maximum(largest, np.abs(block).max(axis=0, initial=0.0))
            total += block.sum(axis=0)
            count += finite.sum(axis=0)
        if (largest > _LARGEST).any():
            at = int(largest.argmax())
            raise InputError(
                f"features: the column {names[at]!r} holds {largest[at]:g}: numbers beyond {_LARGEST:g} are not used; "
                "scale the column, or leave it out"
            )
        mean = total / np.maximum(count, 1)
        squares = np.zeros(width)
        for part in blocks(n):
            block = np.asarray(values[row[part]], dtype=np.float64) - mean
            squares += np.where(np.isfinite(block), block, 0.0).__pow__(2).sum(axis=0)
        sd = np.sqrt(squares / max(n, 1))
        kept = np.flatnonzero(sd > _CONSTANT * np.maximum(1.0, np.abs(mean)))
        found = cls(values, row, kept, mean[kept], sd[kept], n_missing=int(n * width - count.sum()))
        return found._projected() if len(kept) > n / 2 else found

    def _projected(self) -> Columns:
        """The columns on the first ``n / 2`` principal axes, which are not rescaled."""
        n, d = len(self.row), len(self.kept)
        if n <= d:  # the smaller of the two squares
            x = np.concatenate(
                [np.asarray(self.block(part), dtype=np.float64) for part in blocks(n)] or [np.empty((0, d))]
            )
            _, _, axes = np.linalg.svd(x, full_matrices=False)
            return replace(self, axes=np.ascontiguousarray(axes[: n // 2].T))
        gram = np.zeros((d, d))
        for part in blocks(n):
            block = self.block(part)
            gram += block.T @ block
        _, vectors = np.linalg.eigh(gram)
        return replace(self, axes=np.ascontiguousarray(vectors[:, ::-1][:, : n // 2]))

    @property
    def n_columns(self) -> int:
        """Number of columns that vary, d."""
        return len(self.kept)

    @property
    def width(self) -> int:
        """Number of columns of a block."""
        return self.n_columns if self.axes is None else self.axes.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of blocks: double precision if the table is small."""
        return np.dtype(np.float64 if len(self.row) * self.n_columns <= _KEPT_CELLS else np.float32)

    @cached_property
    def _whole(self) -> FloatArray | None:
        if self.dtype == np.float32:
            return None
        return self.standard(np.asarray(self.values[self.row]))

    def block(self, part: slice) -> NDArray[Any]:
        """The columns of some of the items, (rows, width)."""
        whole = self._whole
        return self.standard(self.values[self.row[part]]) if whole is None else whole[part]

    def standard(self, values: NDArray[Any]) -> NDArray[Any]:
        """Any rows of a table with these columns in standard form, (rows, width)."""
        block = np.asarray(values[:, self.kept] if self.n_columns < values.shape[1] else values, dtype=self.dtype)
        x = block - self.mean.astype(self.dtype)
        x /= self.sd.astype(self.dtype)
        if self.n_missing or not np.isfinite(x.sum()):
            x[~np.isfinite(x)] = 0.0
        return np.asarray(x if self.axes is None else x @ self.axes.astype(self.dtype))
