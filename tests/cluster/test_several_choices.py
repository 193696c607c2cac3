"""Labels that look like several choices: the dask engine takes them as classes, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from rarevote.errors import RarevoteWarning

pytest.importorskip("distributed", reason="dask is not installed")

from rarevote.cluster.data import Staging, Survey, _class_names


def test_combinations_are_classes_with_a_warning() -> None:
    survey = Survey({"ann"}, {"rust|dent", "rust"}, set(), {"object"}, 2, 2)
    with pytest.warns(RarevoteWarning, match=r"'rust\|dent' look like several choices in one answer"):
        assert _class_names(survey, Staging(Path())) == ["rust", "rust|dent"]
