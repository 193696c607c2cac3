from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rarevote.kernels.fast_math import exp_fast, log_fast


@given(st.floats(-708, 708))
def test_exp(x: float) -> None:
    np.testing.assert_array_max_ulp(np.float64(exp_fast(x)), np.exp(x), maxulp=2)


@given(st.floats(2.3e-308, 1e308))
def test_log(x: float) -> None:
    np.testing.assert_allclose(log_fast(x), np.log(x), rtol=4.5e-16, atol=2.3e-16)


def test_exp_is_clipped_to_normal_numbers() -> None:
    assert exp_fast(-1e9) == exp_fast(-708.0) > 0
    assert exp_fast(1e9) == exp_fast(708.0) < np.inf
