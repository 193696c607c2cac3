"""Rows of numbers multiplied or added in place as vector instructions, in kernels.

A row contains a worker's numbers for a vote: short, anywhere in memory. A compiler that cannot rule out that two
arrays overlap processes a short row number by number. These operations load both rows before they write, so overlap
does not matter. They take addresses (``array.ctypes.data`` and byte offsets); the caller keeps the arrays alive and the
rows within them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rarevote.kernels.compile import piece

BYTES = 8  # of a number
_AT_ONCE = 8


def _generate(builder: Any, operation: str, arguments: Any, size: int) -> None:
    kind = ir.VectorType(ir.DoubleType(), size).as_pointer()
    into, row = (builder.inttoptr(address, kind) for address in arguments[:2])
    values = [builder.load(place, align=BYTES) for place in (into, row)]
    builder.store(getattr(builder, operation)(*values), into, align=BYTES)


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator, unused-ignore]
def multiply_few(_context: Any, _into: Any, _row: Any, size: Any) -> Any:
    """Multiply the row at the first address by that at the second; the size is known when the kernel is compiled."""
    if not isinstance(size, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        _generate(builder, "fmul", arguments, size.literal_value)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, size), generate


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator, unused-ignore]
def add_few(_context: Any, _into: Any, _row: Any, size: Any) -> Any:
    """Add the row at the second address to that at the first; the size is known when the kernel is compiled."""
    if not isinstance(size, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        _generate(builder, "fadd", arguments, size.literal_value)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, size), generate


@piece
def multiply_row(into: int, row: int, size: int) -> None:
    """Multiply the row at the first address by that at the second."""
    done = 0
    while done + _AT_ONCE <= size:
        multiply_few(into + BYTES * done, row + BYTES * done, 8)
        done += _AT_ONCE
    while done < size:
        multiply_few(into + BYTES * done, row + BYTES * done, 1)
        done += 1


@piece
def add_row(into: int, row: int, size: int) -> None:
    """Add the row at the second address to that at the first."""
    done = 0
    while done + _AT_ONCE <= size:
        add_few(into + BYTES * done, row + BYTES * done, 8)
        done += _AT_ONCE
    while done < size:
        add_few(into + BYTES * done, row + BYTES * done, 1)
        done += 1
