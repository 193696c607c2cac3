"""What the methods refuse, as a user meets it: in Python and on the command line, with a message and nothing run."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote import PLAT, Annotations, Crowd, CrowdFM, GoldMajorityVote, MajorityVote
from rarevote.errors import InputError, NotEnoughMemoryError, RarevoteWarning, WeightsError
from rarevote.methods.base import Fit, Request
from tests.command import rarevote
from tests.methods.crowds import columns, random_rows
from tests.tables import METHOD_ROWS, MethodRow, small_network

ROWS, TRUTH = random_rows(30, 6, "ab", votes=5)
with_gold = pytest.mark.parametrize(
    "row", [row for row in METHOD_ROWS if row.make().capabilities.gold], ids=lambda row: row.name
)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label\n" + "".join(f"{task},{worker},{label}\n" for task, worker, label in ROWS))
    return path


# --------------------------------------------------------------------------------------------------------------------
# classes, gold, memory


TWO_VOTES = Crowd(Annotations.from_arrays([0, 0], ["ann", "bob"], ["no", "yes"]), gold={0: "no"})


@pytest.mark.parametrize(("given", "known"), [(None, "no"), ({0: "yes"}, "yes")], ids=["of the data", "given"])
def test_a_method_that_needs_gold_takes_that_of_the_data_unless_other_gold_is_given(given: Any, known: str) -> None:
    class Keeps(GoldMajorityVote):
        def _fit(self, request: Request) -> Fit:
            return Fit(np.empty((1, 2)), {"gold": request.gold})

    model = Keeps().fit(TWO_VOTES, given)
    assert model.classes_[model.fitted_parameters["gold"]].tolist() == [known]


ONE_VOTE = Annotations.from_arrays([0], ["ann"], ["yes"])


def test_a_refusal_within_a_fit_keeps_its_numbers() -> None:
    class Refuses(MajorityVote):
        def _fit(self, request: Request) -> Fit:
            raise NotEnoughMemoryError("a process needs 3 GB")

    with pytest.raises(NotEnoughMemoryError, match=r"^a process needs 3 GB$"):
        Refuses().fit(ONE_VOTE)


def test_plat_with_three_classes(labels: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"PLAT is for two classes, these data have 3 \(a, b, c\)"):
        PLAT().fit(columns([*ROWS, ("t000", "w01", "c")]))
    labels.write_text(labels.read_text() + "t000,w01,c\n")
    done = rarevote("aggregate", labels, "--method", "plat", "--out", tmp_path / "out.csv", code=1)
    assert "PLAT is for two classes" in done.stderr
    assert not (tmp_path / "out.csv").exists()


def test_plat_counts_classes_that_are_only_named() -> None:
    with pytest.raises(InputError, match="these data have 3"):
        PLAT().fit(columns(ROWS), classes=["a", "b", "c"])


@with_gold
def test_gold_for_unknown_tasks_only(row: MethodRow) -> None:
    with pytest.raises(InputError, match=r"none of the 2 gold tasks is in the annotations \(first: 'x1'"):
        row.make().fit(columns(ROWS), {"x1": "a", "x2": "b"})


@with_gold
@pytest.mark.filterwarnings("ignore::rarevote.errors.ConvergenceWarning")
def test_gold_for_some_unknown_tasks(row: MethodRow) -> None:
    with pytest.warns(RarevoteWarning, match=r"gold for 1 task without votes is left out \(first: 'x1'\)"):
        model = row.make().fit(columns(ROWS), {**TRUTH, "x1": "a"})
    assert "x1" not in model.labels_.to_dict()


@pytest.mark.parametrize("method", ["cc-rasch", "gold-majority-vote"])
def test_gold_for_unknown_tasks_on_the_command_line(labels: Path, tmp_path: Path, method: str) -> None:
    gold = tmp_path / "gold.csv"
    gold.write_text("task,label\nx1,a\n")
    done = rarevote("aggregate", labels, "--method", method, "--gold", gold, code=1)
    assert "none of the 1 gold tasks is in the annotations" in done.stderr


# --------------------------------------------------------------------------------------------------------------------
# weights of CrowdFM


def truncated(intact: bytes) -> bytes:
    return intact[: len(intact) // 2]


def longer(intact: bytes) -> bytes:
    return intact + b"\0" * 8


def no_header(intact: bytes) -> bytes:
    return intact[:8] + b"\xff" * 16 + intact[24:]


def not_a_number(intact: bytes) -> bytes:
    return intact[:-4] + b"\x00\x00\xc0\x7f"


def with_header(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    def changed(intact: bytes) -> bytes:
        size = int.from_bytes(intact[:8], "little")
        header = json.loads(intact[8 : 8 + size])
        change(header)
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, "little") + text + intact[8 + size :]

    return changed


def transpose(header: dict[str, Any]) -> None:
    header["encoder.q_task.0.weight"]["shape"].reverse()


def rename(header: dict[str, Any]) -> None:
    header["encoder.query_task.0.weight"] = header.pop("encoder.q_task.0.weight")


def other_numbers(header: dict[str, Any]) -> None:
    header["encoder.q_task.0.weight"]["dtype"] = "F16"


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (truncated, "do not fit"),
        (longer, "the file holds"),
        (no_header, "neither"),
        (not_a_number, "finite"),
        (with_header(transpose), r"encoder\.q_task\.0\.weight"),
        (with_header(rename), r"encoder\.q(uery)?_task\.0\.weight"),
        (with_header(other_numbers), r"encoder\.q_task\.0\.weight"),
        (lambda _: b"", "empty"),
        (lambda _: b"task,worker,label\n", "neither"),
    ],
    ids=[
        "truncated",
        "longer",
        "no header",
        "NaN",
        "other shape",
        "other names",
        "other type",
        "empty",
        "another file",
    ],
)
def test_weights_that_do_not_fit(tmp_path: Path, damage: Callable[[bytes], bytes], said: str) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(damage(Path(small_network()).read_bytes()))
    with pytest.raises(WeightsError, match=said):
        CrowdFM(1, weights=path).fit(columns(ROWS))


class Evil:
    """Runs a command when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("packed", [True, False], ids=["in a PyTorch archive", "a bare pickle"])
def test_weights_that_name_a_callable(labels: Path, tmp_path: Path, packed: bool) -> None:
    marker, path = tmp_path / "executed", tmp_path / "evil.pt"
    evil = pickle.dumps({"encoder.x_worker": Evil(marker)}, protocol=2)
    if packed:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model/data.pkl", evil)
    else:
        path.write_bytes(evil)
    with pytest.raises(WeightsError, match=r"evil\.pt"):
        CrowdFM(1, weights=path).fit(columns(ROWS))
    done = rarevote("aggregate", labels, "--method", "crowdfm", "--set", f"weights={path}", code=1)
    assert "evil.pt" in done.stderr
    assert not marker.exists()
    pickle.loads(evil)  # the file does bite: only the reader keeps it from doing so
    assert marker.exists()


def test_weights_that_are_a_truncated_archive(tmp_path: Path, labels: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", b"\x80\x02}.")
        archive.writestr("model/data/0", bytes(4000))
    path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(WeightsError, match=r"checkpoint\.pt"):
        CrowdFM(1, weights=path).fit(columns(ROWS))
    done = rarevote("aggregate", labels, "--method", "crowdfm", "--set", f"weights={path}", code=1)
    assert "checkpoint.pt" in done.stderr
    assert done.stdout == ""
