"""What a fit will need, against what it takes; and the refusal."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from rarevote import AnchoredRasch, CCRasch, DawidSkene, MajorityVote
from rarevote.crowd.annotations import Annotations
from rarevote.errors import NotEnoughMemoryError, RarevoteError
from rarevote.methods import memory
from rarevote.methods.memory import Sizes, needed_memory, require_memory
from tests.command import rarevote
from tests.tables import METHOD_ROWS, MethodRow

pytestmark = pytest.mark.filterwarnings("ignore::rarevote.errors.RarevoteWarning")


def crowd_of(n_tasks: int, n_workers: int, n_classes: int, votes: int) -> Annotations:
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(n_tasks), votes)
    label = rng.integers(0, n_classes, task.size)
    return Annotations.from_arrays(task, np.arange(task.size) % n_workers, label, classes=range(n_classes))


@pytest.mark.parametrize("row", [row for row in METHOD_ROWS if row.name != "crowdfm"], ids=lambda row: row.name)
def test_who_is_refused_would_not_have_come_through(row: MethodRow) -> None:
    """The estimate is at most what a fit takes, and for many classes no less than a third of it."""
    sizes = [(300, 40, 2, 3)] if row.binary else [(300, 10, 60, 2), (100, 80, 40, 2)]
    for n_tasks, n_workers, n_classes, votes in sizes:
        crowd = crowd_of(n_tasks, n_workers, n_classes, votes)
        method = row.make().set_params(**({"n_iter": 2} if "n_iter" in row.make().get_params() else {}))
        gold = ({task: task % n_classes for task in range(n_tasks)},) if row.needs_gold else ()
        tracemalloc.start()
        method.fit(crowd, *gold)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        needed = needed_memory(method, Sizes.of(crowd))
        assert needed <= peak
        assert n_classes == 2 or row.name == "rasch" or needed >= peak / 3


def test_a_large_fit_that_keeps_less_is_not_counted_as_a_small_one() -> None:
    """What a start takes besides is of a few tasks at a time where there are many."""
    crowd = crowd_of(105_000, 20, 3, 1)
    held: list[int] = []
    tracemalloc.start()
    CCRasch(3).fit(crowd, callback=lambda progress: held.append(tracemalloc.get_traced_memory()[0]))
    tracemalloc.stop()
    assert needed_memory(CCRasch(), Sizes.of(crowd)) <= min(held)


def test_a_fit_that_does_not_fit_is_refused_with_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = Sizes(n_tasks=5000, n_workers=20_000, n_classes=1000, n_annotations=40_000)
    with pytest.raises(NotEnoughMemoryError) as caught:
        require_memory(DawidSkene(), sizes, 24 * 10**9)
    assert isinstance(caught.value, (RarevoteError, MemoryError))
    assert str(caught.value) == (
        "dawid-skene needs about 640 GB of memory for 5,000 tasks, 20,000 workers and 1,000 classes, and 24.0 GB are "
        "available here: merge rare classes, or workers with few votes, or choose a method that takes less "
        "(class-conditional)"
    )
    require_memory(CCRasch(), sizes, 24 * 10**9)
    halved = needed_memory(CCRasch(dtype="float32"), sizes) / needed_memory(CCRasch(), sizes)
    assert halved == 0.5


def test_fits_ask_before_they_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 10**8)
    crowd = crowd_of(100, 60, 300, 1)
    with pytest.raises(
        NotEnoughMemoryError, match=r"anchored-rasch needs about 0\.3\d GB .*0\.10 GB are available here"
    ):
        AnchoredRasch().fit(crowd)
    MajorityVote().fit(crowd)


def test_the_command_line_says_so_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "votes.csv"
    rows = [f"t{number},w{number % 60},c{number % 300}" for number in range(600)]
    path.write_text("\n".join(["task,worker,label", *rows]))
    monkeypatch.setattr(memory, "available_memory", lambda: 10**8)
    done = rarevote("aggregate", path, "-q", "--out", tmp_path / "result.csv", code=1)
    assert "anchored-rasch needs about 0.33 GB of memory" in done.stderr
