"""What the fuzzer takes for a wrong answer."""

from __future__ import annotations

from typing import Any

import pytest
from proofs.fuzz.doors import equal_to_rounding

ESTIMATES = {"recall": {"middle": 0.9, "low": None}, "n_flagged": 21}


@pytest.mark.parametrize(
    ("said", "equal"),
    [
        (ESTIMATES, True),
        ({"recall": {"middle": 0.9000001, "low": None}, "n_flagged": 21}, True),  # as verify allows
        ({"recall": {"middle": 0.9001, "low": None}, "n_flagged": 21}, False),
        ({"recall": {"middle": 0.9, "low": 0.0}, "n_flagged": 21}, False),
        ({"recall": {"middle": 0.9, "low": None}, "n_flagged": 22}, False),
        ({"recall": {"middle": 0.9, "low": None}}, False),
    ],
)
def test_a_certificate_with_other_estimates_is_another_one(said: Any, equal: bool) -> None:
    assert equal_to_rounding(said, ESTIMATES) is equal
