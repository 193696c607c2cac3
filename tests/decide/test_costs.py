"""Cost matrices in every form that people write them, and the mistakes they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote.decide.costs import cost_matrix
from rarevote.errors import InputError, ParameterError
from tests.decide.made import NAMES


def test_every_way_to_write_costs(tmp_path: Path) -> None:
    file = tmp_path / "costs.csv"
    file.write_text("true,sound,defect\nsound,0,1\ndefect,20,0\n")
    expected = [[0.0, 20.0], [1.0, 0.0]]
    for costs in (
        "sound:defect=1,defect:sound=20",
        " sound : defect = 1 , defect : sound = 20 ",
        file,
        str(file),
        {("sound", "defect"): 1, ("defect", "sound"): 20},
        {"sound": {"defect": 1, "sound": 0}, "defect": {"sound": 20}},
        [[0, 20], [1, 0]],
        np.array([[0, 20], [1, 0]]),
    ):
        assert cost_matrix(costs, NAMES).tolist() == expected


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        ([[0, 1]], r"must be 2 x 2 .*shape is \(1, 2\)"),
        ([[0, 1], [1, 0], [0, 0]], "must be 2 x 2"),
        ([["a", 1], [1, 0]], "must hold numbers"),
        ([[0, -1], [1, 0]], "not negative, got -1"),
        ([[0, float("inf")], [1, 0]], "finite"),
        ("sound:crack=1,defect:sound=20", "'crack' is not a class; the classes are defect, sound"),
        ("sound:defect=1", "no cost for defect:sound"),
        ("sound:defect=1,sound:defect=2,defect:sound=3", "given twice"),
        ("sound:defect=cheap,defect:sound=20", "must be a number, got 'cheap'"),
        ("sound:defect=nan,defect:sound=20", "not a number"),
        ("sound-defect=1", "TRUE:DECIDED=COST"),
        ("sound:defect=", "TRUE:DECIDED=COST"),
        ({"sound": 3}, "pairs"),
    ],
)
def test_bad_costs(costs: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        cost_matrix(costs, NAMES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("true,sound\nsound,0\n", "a header and 2 rows of 3 cells"),
        ("true,sound,defect\nsound,0,1\n", "a header and 2 rows"),
        ("", "0 rows"),
        ("true,sound,crack\nsound,0,1\ndefect,2,0\n", "'crack' is not a class"),
        ("true,sound,defect\nsound,0,1\nsound,2,0\n", "given twice"),
    ],
)
def test_bad_cost_files(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "costs.csv"
    file.write_text(text)
    with pytest.raises(ParameterError, match=message):
        cost_matrix(file, NAMES)


def test_a_cost_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        cost_matrix(tmp_path / "none.csv", NAMES)
