"""What a fit will need, against what it takes; and the refusal."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rarevote import GLAD, AnchoredRasch, CCRasch, DawidSkene, MajorityVote
from rarevote.crowd.annotations import Annotations
from rarevote.errors import NotEnoughMemoryError, ParameterError, RarevoteError
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
    crowd = crowd_of(140_000, 20, 3, 1)
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
    of_tasks = sizes._replace(n_workers=0)
    halved = needed_memory(CCRasch(dtype="float32"), of_tasks) / needed_memory(CCRasch(), of_tasks)
    assert halved == 0.5


def test_many_workers_and_classes_count_for_cc_rasch_too() -> None:
    sizes = Sizes(n_tasks=300_000, n_workers=200_000, n_classes=1000, n_annotations=1_500_000)
    with pytest.raises(NotEnoughMemoryError, match=r"cc-rasch needs about 22\.4 GB .*takes less \(majority-vote\)"):
        require_memory(CCRasch(), sizes, 16 * 10**9)
    require_memory(CCRasch(), sizes._replace(n_classes=100), 16 * 10**9)


def test_cc_rasch_counts_four_tables_of_tasks_and_eight_of_workers() -> None:
    sizes = Sizes(n_tasks=300_000, n_workers=200_000, n_classes=1000, n_annotations=1_500_000)
    method = CCRasch()
    method._validate(SimpleNamespace(**sizes._asdict(), classes=np.arange(1000)))
    assert needed_memory(method, sizes) == 8 * 1000 * (4 * 300_000 + 8 * 200_000)
    with pytest.raises(NotEnoughMemoryError, match=r"^cc-rasch needs about 22\.4 GB"):
        require_memory(method, sizes, 22 * 10**9)


def test_glad_counts_four_tables_of_tasks_and_two_of_few_votes() -> None:
    crowd = crowd_of(100, 80, 40, 2)
    method = GLAD()
    method._validate(crowd)
    assert needed_memory(method, Sizes.of(crowd)) == 8 * 40 * (4 * 100 + 2 * 200)
    many = Sizes.of(crowd)._replace(n_annotations=10**7)  # compiled passes have no table of votes
    assert needed_memory(method, many) == 8 * 40 * 4 * 100


def test_a_fit_that_runs_out_of_memory_ends_with_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs_out(*_: object) -> None:
        raise MemoryError("Unable to allocate 1.5 GiB")  # as NumPy says it

    monkeypatch.setattr(CCRasch, "_fit", runs_out)
    with pytest.raises(NotEnoughMemoryError) as caught:
        CCRasch().fit(crowd_of(100, 60, 30, 1))
    assert str(caught.value) == (
        "cc-rasch ran out of memory with 100 tasks, 60 workers and 30 classes; it needs at least 0.00 GB beside the "
        "votes: merge rare classes, or workers with few votes, or choose a method that takes less (class-conditional)"
    )
    assert isinstance(caught.value.__cause__, MemoryError)


def test_the_default_refuses_tables_that_are_too_large_and_names_a_method_that_is_not() -> None:
    sizes = Sizes(n_tasks=200_000, n_workers=100_000, n_classes=100, n_annotations=1_000_000)
    with pytest.raises(ParameterError, match=r"tables of 8\.0 GB.*choose cc-rasch \(CCRasch\)"):
        AnchoredRasch()._validate(SimpleNamespace(**sizes._asdict()))
    assert needed_memory(CCRasch(), sizes) < 2e9


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
