"""CCGPFL on music: the mean of five seeds beside the figures of an independent rebuild."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.study.rivals import WITHOUT

if os.environ.get("RAREVOTE_REQUIRE_RIVALS") != "1":
    pytest.importorskip("jax", reason=WITHOUT)

from rarevote.study.feature_contenders import CONTENDERS, marks_of
from rarevote.study.feature_sets import FeatureSetInfo, load_feature_set

# Average precision from features alone, and with the item's votes.
EXPECTED = {"ccgpfl": 0.866, "ccgpfl-votes": 0.911}


@pytest.mark.prove
def test_five_seeds(shared_folder: Path) -> None:
    folder = shared_folder / "features" / "music"
    if not folder.is_dir():
        pytest.skip("the sets with features are not here")
    crowd = load_feature_set(FeatureSetInfo("music", "music", folder))
    runs = [CONTENDERS["ccgpfl"].run(crowd, seed) for seed in range(5)]
    for name, expected in EXPECTED.items():
        found = [marks_of(answers[name], crowd)["average_precision"] for answers in runs]
        assert np.mean(found) == pytest.approx(expected, abs=0.05), found
