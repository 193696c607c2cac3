"""exp and log without branches, so that the compiler turns the loops around them into vector instructions.

The functions of the C library are calls, one value at a time. These are plain arithmetic on the bits of a double;
inside a loop over contiguous memory they run several values at once, at about the speed of NumPy's own. Both are
accurate to two units in the last place over their intended ranges.
"""

from __future__ import annotations

from math import factorial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from rarevote.kernels.compile import piece

_LOG2_E = 1.4426950408889634
# ln 2 in two parts; the first has trailing zero bits, so that a small integer times it is exact.
_LN2_HIGH = 6.93145751953125e-1
_LN2_LOW = 1.42860682030941723212e-6
_LN2_HIGH_LOG = 6.93147180369123816490e-01
_LN2_LOW_LOG = 1.90821492927058770002e-10
# Adding 1.5 * 2**52 leaves the nearest integer in the low bits of the sum.
_ROUNDER = 6755399441055744.0
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
# The same three for single precision, and its limit: beyond it, the odds of a vote make no difference in 24 bits.
_LOG2_E_SINGLE = np.float32(1.4426950408889634)
_LN2_HIGH_SINGLE = np.float32(0.693359375)
_LN2_LOW_SINGLE = np.float32(-2.12194440e-4)
_ROUNDER_SINGLE = np.float32(12582912.0)  # 1.5 * 2**23
LIMIT_SINGLE = np.float32(20.0)
_SERIES_SINGLE = tuple(np.float32(1.0 / factorial(power)) for power in range(8))


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _bits_of(_context: Any, _value: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _float_of(_context: Any, _bits: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _power_of_two_single(_context: Any, _rounded: Any) -> Any:
    """Two to the power of the integer in the low bits of a single; Python would compute it in 64 bits."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word = ir.IntType(32)
        exponent = builder.add(builder.bitcast(arguments[0], word), ir.Constant(word, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(word, 23)), ir.FloatType())

    return types.float32(types.float32), generate


@piece
def exp_fast(x: float) -> float:
    """``exp(x)``, with ``x`` clipped to [-708, 708], where the result is a normal number."""
    x = min(max(x, -708.0), 708.0)
    rounded = x * _LOG2_E + _ROUNDER
    n = rounded - _ROUNDER
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    # |r| <= ln(2)/2: the Taylor series to r**13 is exact to the last place.
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 1.984126984126984e-04
    p = p * r + 1.388888888888889e-03
    p = p * r + 8.333333333333333e-03
    p = p * r + 4.1666666666666664e-02
    p = p * r + 1.6666666666666666e-01
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * _float_of((_bits_of(rounded) + 1023) << 52)  # type: ignore[no-any-return]


@piece
def log_fast(x: float) -> float:
    """``log(x)`` of a positive, normal ``x``; any other argument gives a meaningless number."""
    bits = _bits_of(x)
    exponent = (bits - _SQRT_HALF_BITS) >> 52
    mantissa = _float_of(bits - (exponent << 52))  # in [sqrt(1/2), sqrt(2))
    s = (mantissa - 1.0) / (mantissa + 1.0)
    u = s * s
    # log(m) = 2 artanh(s), |s| <= 0.172
    p = 1.0 / 19.0
    p = p * u + 1.0 / 17.0
    p = p * u + 1.0 / 15.0
    p = p * u + 1.0 / 13.0
    p = p * u + 1.0 / 11.0
    p = p * u + 1.0 / 9.0
    p = p * u + 1.0 / 7.0
    p = p * u + 1.0 / 5.0
    p = p * u + 1.0 / 3.0
    n = float(exponent)
    return n * _LN2_HIGH_LOG + (2.0 * s + (2.0 * s * u * p + n * _LN2_LOW_LOG))  # type: ignore[no-any-return]


@piece
def exp_single(x: np.float32) -> np.float32:
    """``exp(x)`` in single precision, with ``x`` clipped to [-20, 20]."""
    x = min(max(x, -LIMIT_SINGLE), LIMIT_SINGLE)
    rounded = x * _LOG2_E_SINGLE + _ROUNDER_SINGLE
    n = rounded - _ROUNDER_SINGLE
    r = (x - n * _LN2_HIGH_SINGLE) - n * _LN2_LOW_SINGLE
    c0, c1, c2, c3, c4, c5, c6, c7 = _SERIES_SINGLE
    p = ((((((c7 * r + c6) * r + c5) * r + c4) * r + c3) * r + c2) * r + c1) * r + c0
    return p * _power_of_two_single(rounded)  # type: ignore[no-any-return]


def exp_of(x: Any) -> Any:
    """In kernels: ``exp`` in the precision of its argument."""
    raise NotImplementedError("for compiled code")


@overload(exp_of)  # type: ignore[untyped-decorator, unused-ignore]
def _exp_of(x):  # type: ignore[no-untyped-def]  # numba compares the names and annotations of both
    if x == types.float32:
        return lambda x: exp_single(x)
    return lambda x: exp_fast(x)
