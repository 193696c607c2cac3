"""Pages show what users get."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _as_users_get_it(all_sweeps: None) -> None:
    """The numbers on the pages come from whole chains of the sampler."""
