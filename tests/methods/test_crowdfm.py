from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rarevote import CrowdFM
from rarevote.errors import ParameterError, WeightsError
from tests.methods.crowds import columns, random_rows
from tests.tables import small_network

ROWS, _ = random_rows(30, 6, "abc", votes=4)


def test_seeds_are_averaged_and_can_be_chosen() -> None:
    weights = small_network()
    single = [CrowdFM(1, random_state=seed, weights=weights).fit(columns(ROWS)) for seed in (5, 6)]
    both = CrowdFM(2, random_state=5, weights=weights).fit(columns(ROWS))
    for name in "abc":
        mean = (single[0].logits_[name] + single[1].logits_[name]) / 2
        np.testing.assert_allclose(both.logits_[name], mean, atol=1e-12)
    assert np.array_equal(both.posterior_, CrowdFM(2, random_state=5, weights=weights).fit(columns(ROWS)).posterior_)
    assert both.n_iter_ == 2


def test_option_vectors_can_be_given() -> None:
    vectors = np.random.default_rng(5).normal(size=(3, 32))
    given = CrowdFM(weights=small_network(), option_vectors=vectors).fit(columns(ROWS))
    drawn = CrowdFM(1, random_state=5, weights=small_network()).fit(columns(ROWS))
    assert np.array_equal(given.posterior_, drawn.posterior_)
    with pytest.raises(ParameterError, match=r"option_vectors must be \(3, 32\)"):
        CrowdFM(weights=small_network(), option_vectors=vectors[:2]).fit(columns(ROWS))


def test_weights_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAREVOTE_CROWDFM", small_network())
    assert CrowdFM(1).fit(columns(ROWS)).posterior_.shape == (30, 3)


def test_without_weights_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("RAREVOTE_CROWDFM", raising=False)
    with pytest.raises(WeightsError, match=r"Download checkpoint.pt .* RAREVOTE_CROWDFM"):
        CrowdFM().fit(columns(ROWS))
    with pytest.raises(WeightsError, match="no such file"):
        CrowdFM(weights=tmp_path / "absent.pt").fit(columns(ROWS))
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(Path(small_network()).read_bytes()[:-10])
    with pytest.raises(WeightsError, match=r"damaged.safetensors"):
        CrowdFM(weights=damaged).fit(columns(ROWS))


@pytest.mark.parametrize("parameters", [{"n_seeds": 0}, {"random_state": -1}, {"random_state": None}])
def test_bad_parameters(parameters: dict[str, int]) -> None:
    with pytest.raises(ParameterError):
        CrowdFM(weights=small_network(), **parameters).fit(columns(ROWS))
