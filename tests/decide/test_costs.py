"""Cost matrices in every form that people write them, and the mistakes they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
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


NAMED = pd.DataFrame([[0, 1], [20, 0]], index=["sound", "defect"], columns=["sound", "defect"])


@pytest.mark.parametrize(
    "costs",
    [
        NAMED,
        NAMED.loc[["defect", "sound"]],
        NAMED.astype("Int64"),
        NAMED.astype("float64[pyarrow]"),
        NAMED.stack(),
        {name: NAMED.loc[name] for name in ("sound", "defect")},
        NAMED.loc[["defect", "sound"], ["defect", "sound"]].to_numpy(),
        pd.DataFrame([[0, 20], [1, 0]]),  # no names, so it is the array
    ],
)
def test_costs_of_pandas_are_read_by_their_names(costs: Any) -> None:
    assert cost_matrix(costs, NAMES).tolist() == [[0.0, 20.0], [1.0, 0.0]]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_numpy_matrix_holds_costs_as_an_array_does() -> None:
    costs = cost_matrix(np.matrix([[0, 20], [1, 0]]), NAMES)
    assert type(costs) is np.ndarray
    assert costs.tolist() == [[0.0, 20.0], [1.0, 0.0]]


def test_numbers_and_truth_values_name_costs_as_in_a_mapping() -> None:
    frame = pd.DataFrame([[0, 20], [1, 0]], index=[1, 0], columns=[1, 0])
    pairs = {(1, 0): 20, (0, 1): 1}
    for classes in (np.array([0, 1]), np.array([0.0, 1.0]), np.array(["0", "1"], dtype=object)):
        assert cost_matrix(frame, classes).tolist() == cost_matrix(pairs, classes).tolist() == [[0.0, 1.0], [20.0, 0.0]]
    assert cost_matrix(frame == 1, np.array([0, 1])).tolist() == [[0.0, 1.0], [0.0, 0.0]]
    truth = pd.DataFrame([[0, 20], [1, 0]], index=[True, False], columns=[True, False])
    assert cost_matrix(truth, np.array([False, True])).tolist() == [[0.0, 1.0], [20.0, 0.0]]
    # pandas numbered these from 0, and there is no class 0: they are not names
    assert cost_matrix(pd.DataFrame([[0, 20], [1, 0]]), np.array([1, 2])).tolist() == [[0.0, 20.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (NAMED.rename(columns={"sound": "crack"}), "'crack' is not a class; the classes are defect, sound. Give"),
        (NAMED.reset_index(drop=True), "0 is not a class"),
        (NAMED.reset_index(), "0 is not a class"),
        (NAMED.reindex(columns=["sound"]), "no cost for defect:defect|no cost for sound:defect"),
        (NAMED.loc[["sound"]], "no cost for defect:sound"),
        (NAMED.loc[["sound", "sound"]], "cost of sound:sound is given twice"),
        (NAMED.astype("Int64").mask(NAMED == 20), "cost of defect:sound must be a number, got <NA>"),
        (NAMED.replace(20, -1), "cost of defect:sound must be finite and not negative, got -1"),
        (pd.concat([NAMED.stack(), NAMED.stack()]), "given twice"),
        (pl.DataFrame({"defect": [0, 1], "sound": [20, 0]}), "its rows have no names; the classes are defect, sound"),
        (pa.table({"defect": [0, 1], "sound": [20, 0]}), "its rows have no names"),
        (np.ma.array([[0, 20], [1, 0]], mask=[[False, True], [False, False]]), "defect:sound must be finite .*nan"),
    ],
)
def test_frames_that_do_not_name_the_costs(costs: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        cost_matrix(costs, NAMES)


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
