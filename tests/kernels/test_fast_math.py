from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarevote.kernels.fast_math import exp_fast, exp_single, log_fast


@given(st.floats(-708, 708))
def test_exp(x: float) -> None:
    np.testing.assert_array_max_ulp(np.float64(exp_fast(x)), np.exp(x), maxulp=2)


@given(st.floats(2.3e-308, 1e308))
def test_log(x: float) -> None:
    np.testing.assert_allclose(log_fast(x), np.log(x), rtol=4.5e-16, atol=2.3e-16)


@given(st.floats(-20, 20, width=32))
def test_exp_in_single_precision(x: float) -> None:
    found = exp_single(np.float32(x))
    assert found == pytest.approx(np.exp(np.float64(np.float32(x))), rel=2.0**-22)


def test_exp_in_single_precision_is_clipped_and_single() -> None:
    assert exp_single(np.float32(-1e9)) == exp_single(np.float32(-20.0)) == pytest.approx(np.exp(-20.0), rel=1e-6)
    assert exp_single(np.float32(1e9)) == exp_single(np.float32(20.0)) == pytest.approx(np.exp(20.0), rel=1e-6)
    exp_single(np.float32(1.0))
    assert [str(signature.return_type) for signature in exp_single.nopython_signatures] == ["float32"]  # type: ignore[attr-defined]


def test_exp_is_clipped_to_normal_numbers() -> None:
    assert exp_fast(-1e9) == exp_fast(-708.0) > 0
    assert exp_fast(1e9) == exp_fast(708.0) < np.inf
