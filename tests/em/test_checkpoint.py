"""A fit that is interrupted and resumed is the fit that never was interrupted."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarevote import MACE, CCRasch, DawidSkene
from rarevote.em.checkpoint import Checkpoint, digest_of, identity_of
from rarevote.em.loop import Outcome, Progress, StoppingRule, run_em
from rarevote.errors import InputError, ParameterError, RarevoteError
from rarevote.io.arrays import load_arrays, save_arrays
from rarevote.methods.base import Estimator
from rarevote.methods.glad.estimator import GLAD
from tests.em.test_em import Counter, Hill

RULE = StoppingRule(40, 1.0, 0.0)


class InterruptError(Exception):
    pass


def interrupt_after(iteration: int) -> Any:
    def told(progress: Progress) -> None:
        if progress.iteration == iteration:
            raise InterruptError

    return told


class Kept(Counter):
    """An engine whose local state is nothing: all that a checkpoint keeps of it is that it was asked."""

    def save(self, folder: Path) -> None:
        save_arrays(folder / "local-00000.npz", {})

    def load(self, folder: Path) -> None:
        load_arrays(folder / "local-00000.npz")


def climb(folder: Path | None, *, every: int = 4, callback: Any = None, **options: Any) -> Outcome[float]:
    checkpoint = None if folder is None else Checkpoint(folder, every, {"hill": "this one"})
    return run_em(Hill(0.05), Kept(), 0.0, RULE, checkpoint=checkpoint, callback=callback, **options)


# --------------------------------------------------------------------------------------------------------------------
# the loop


@pytest.mark.parametrize("options", [{}, {"accelerate": True}, {"exact": True}], ids=["plain", "accelerated", "exact"])
@pytest.mark.parametrize("iteration", [3, 4, 5, 9, 39])
def test_an_interrupted_fit_ends_like_an_undisturbed_one(tmp_path: Path, iteration: int, options: Any) -> None:
    whole = climb(tmp_path / "whole", **options)
    with pytest.raises(InterruptError):
        climb(tmp_path / "cut", callback=interrupt_after(iteration), **options)
    told: list[Progress] = []
    resumed = climb(tmp_path / "cut", callback=told.append, **options)
    assert resumed == whole
    # A checkpoint is written after the callback; nothing before the last one is done again.
    assert told[0].iteration == max((iteration - 1) // 4 * 4, 1)


def test_only_the_newest_checkpoint_is_kept_and_clearing_removes_it(tmp_path: Path) -> None:
    climb(tmp_path / "kept")
    assert [folder.name for folder in (tmp_path / "kept").iterdir()] == ["round-000036"]
    Checkpoint(tmp_path / "kept").clear()
    assert not (tmp_path / "kept").exists()


def test_a_checkpoint_without_its_last_file_counts_for_nothing(tmp_path: Path) -> None:
    whole = climb(tmp_path)
    (tmp_path / "round-000038").mkdir()
    (tmp_path / "round-000038" / "shared.npz").write_bytes(b"half a fi")
    assert climb(tmp_path) == whole


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    climb(tmp_path)
    with pytest.raises(InputError, match=r"a checkpoint of another fit \(every was 4, is 5\)"):
        climb(tmp_path, every=5)
    with pytest.raises(InputError, match="hill was 'this one', is 'that one'"):
        run_em(Hill(0.05), Kept(), 0.0, RULE, checkpoint=Checkpoint(tmp_path, 4, {"hill": "that one"}))


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    climb(tmp_path)
    loop = tmp_path / "round-000036" / "loop.json"
    good = loop.read_text()
    loop.write_text(good[: len(good) // 2])
    with pytest.raises(InputError, match=r"loop\.json: a damaged checkpoint"):
        climb(tmp_path)
    loop.write_text(good)
    (tmp_path / "round-000036" / "shared.npz").write_bytes(b"PK\x03\x04 half")
    with pytest.raises(InputError, match=r"shared\.npz: damaged"):
        climb(tmp_path)
    (tmp_path / "round-000036" / "shared.npz").unlink()
    with pytest.raises(InputError, match=r"shared\.npz: cannot be read"):
        climb(tmp_path)


def test_nothing_is_pickled(tmp_path: Path) -> None:
    save_arrays(tmp_path / "objects.npz", {"value": np.array([{"a": 1}], dtype=object)})
    with pytest.raises(InputError, match=r"objects\.npz: damaged"):
        load_arrays(tmp_path / "objects.npz")


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"local-00000\.npz: cannot be written \(No space left on device\)"):
        climb(tmp_path)
    assert not list(tmp_path.glob("round-*/*"))  # no half a file is left


def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        climb(tmp_path / "file" / "folder")
    with pytest.raises(ParameterError, match="every 0 iterations"):
        Checkpoint(tmp_path, 0)


def test_an_engine_that_keeps_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(RarevoteError, match="Counter does not support checkpoints"):
        run_em(Hill(0.05), Counter(), 0.0, RULE, checkpoint=Checkpoint(tmp_path, 4))


def test_what_a_fit_is_of() -> None:
    crowd = CCRasch().fit(([0, 0, 1], ["a", "b", "a"], [1, 0, 1])).annotations_
    none = np.empty(0, dtype=np.int32)
    assert digest_of(crowd, none) == digest_of(crowd, none)
    assert digest_of(crowd, none) != digest_of(crowd, np.array([1, -1], dtype=np.int32))
    first = identity_of("cc-rasch", CCRasch().get_params(), "data")
    assert first == identity_of("cc-rasch", CCRasch(7, n_jobs=1).get_params(), "data")
    assert first != identity_of("cc-rasch", CCRasch(sigma_beta=1.0).get_params(), "data")
    json.dumps(first)


# --------------------------------------------------------------------------------------------------------------------
# methods on one machine


def columns() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    task = np.repeat(np.arange(400), 4)
    truth = rng.random(400) < 0.2
    return task, rng.integers(0, 30, task.size), np.where(rng.random(task.size) < 0.75, truth[task], ~truth[task])


@pytest.mark.parametrize(
    ("estimator", "profiled"),
    [
        (CCRasch(30, tol=0), False),
        (CCRasch(30, tol=0), True),
        (CCRasch(12, tol=0, m_step="exact"), False),
        (DawidSkene(30, tol=0), False),
        (GLAD(30, tol=0), False),
    ],
    ids=["cc-rasch", "cc-rasch profiled", "cc-rasch exact", "dawid-skene", "glad"],
)
def test_methods_resume_to_the_last_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, estimator: Estimator, profiled: bool
) -> None:
    monkeypatch.setattr("rarevote.em.local._ANNOTATIONS_PER_SHARD", 300)
    if profiled:
        monkeypatch.setattr("rarevote.methods.cc_rasch.estimator._MAX_UNPROFILED_VOTES", 0)
    options: dict[str, Any] = {"checkpoint": tmp_path / "whole", "checkpoint_every": 5}
    estimator.fit(columns(), **options)
    whole = estimator.posterior_, estimator.loss_history_
    options["checkpoint"] = tmp_path / "cut"
    with pytest.raises(InterruptError):
        estimator.fit(columns(), callback=interrupt_after(11), **options)
    with pytest.raises(InputError, match=r"a checkpoint of another fit \(data was"):
        estimator.fit(tuple(column[:-1] for column in columns()), **options)
    estimator.fit(columns(), **options)
    np.testing.assert_array_equal(estimator.posterior_, whole[0])
    assert estimator.loss_history_ == whole[1]
    assert not (tmp_path / "cut").exists()


def test_damage_is_noticed_or_without_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarevote.em.local._ANNOTATIONS_PER_SHARD", 300)
    task, worker, label = (column[:900] for column in columns())
    model, folder = DawidSkene(14, tol=0), tmp_path / "cut"
    whole = model.fit((task, worker, label), checkpoint=tmp_path / "whole", checkpoint_every=5).posterior_
    with pytest.raises(InterruptError):
        model.fit((task, worker, label), checkpoint=folder, checkpoint_every=5, callback=interrupt_after(11))
    kept = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    draw, noticed = np.random.default_rng(5), 0
    for path, content in kept.items():
        for place in draw.integers(0, len(content), 12):
            for other, good in kept.items():
                other.parent.mkdir(parents=True, exist_ok=True)
                other.write_bytes(good)
            altered = bytearray(content)
            altered[place] ^= 1 << int(draw.integers(7))
            path.write_bytes(altered)
            try:
                model.fit((task, worker, label), checkpoint=folder, checkpoint_every=5)
            except InputError:
                noticed += 1
            else:
                np.testing.assert_array_equal(model.posterior_, whole)
    assert noticed > 6 * len(kept)


def test_restarts_do_not_resume_each_other(tmp_path: Path) -> None:
    """A fit of several runs that is cut in its third one: the first must not begin where that was."""
    options: dict[str, Any] = {"checkpoint": tmp_path / "cut", "checkpoint_every": 5}
    undisturbed = MACE(4, 20, start="votes").fit(columns())
    with pytest.raises(InterruptError):
        MACE(4, 20, start="votes").fit(columns(), callback=interrupt_after(2 * 20 + 11), **options)
    assert len(list((tmp_path / "cut").rglob("loop.json"))) == 1
    told: list[Progress] = []
    resumed = MACE(4, 20, start="votes").fit(columns(), callback=told.append, **options)
    np.testing.assert_array_equal(resumed.posterior_, undisturbed.posterior_)
    assert [progress.iteration for progress in told].count(2 * 20 + 1) == 0, "the third run is resumed"
    assert not (tmp_path / "cut").exists()


KILLED = """
import sys
from rarevote import CCRasch
from tests.em.test_checkpoint import columns
CCRasch(100_000, tol=0).fit(columns(), checkpoint=sys.argv[1], checkpoint_every=5)
"""


@pytest.mark.prove
def test_a_killed_process_is_resumed(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path / "cut")], cwd=root)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "cut").glob("round-*/loop.json")) and time.monotonic() < deadline:
        assert process.poll() is None, "the process ended before it could be killed"
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (kept,) = [folder for folder in (tmp_path / "cut").glob("round-*") if (folder / "loop.json").exists()][-1:]
    n_iter = int(kept.name.removeprefix("round-")) + 20
    options: dict[str, Any] = {"checkpoint_every": 5}
    resumed = CCRasch(n_iter, tol=0).fit(columns(), checkpoint=tmp_path / "cut", **options)
    whole = CCRasch(n_iter, tol=0).fit(columns(), checkpoint=tmp_path / "whole", **options)
    assert resumed.loss_history_ == whole.loss_history_
    np.testing.assert_array_equal(resumed.posterior_, whole.posterior_)
