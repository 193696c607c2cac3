"""The formulas of docs/scale.md are those of the code."""

from __future__ import annotations

import doctest
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import scale_plan
from benchmarks.evidence import REPOSITORY
from benchmarks.scale_plan import Costs, Crowd

from rarevote import AnchoredRasch, CCRasch, simulate_crowd
from rarevote.em.local import LocalEngine
from rarevote.em.loop import StoppingRule, run_em

PAGE = REPOSITORY / "docs" / "scale.md"
COSTS = Costs(fixed=0.01, annotation=20e-9, shard=30e-9, worker=300e-9)


def test_doctests() -> None:
    assert doctest.testmod(scale_plan).failed == 0


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("n_workers", [40, 300])
def test_memory_is_that_of_the_shards(n_classes: int, n_workers: int) -> None:
    crowd = CCRasch(1, tol=0).fit(simulate_crowd(500, n_workers, n_classes=n_classes, random_state=0).arrays)
    annotations = crowd.annotations_
    model = replace(CCRasch()._model(annotations), profiles=True)  # as that of a large crowd
    with LocalEngine(model, annotations, np.empty(0, dtype=np.int32)) as engine:
        run_em(model, engine, model.start(), StoppingRule(20, 0.0, 0.0), accelerate=True)
        (state,) = engine._states
    votes = annotations.n_annotations * scale_plan.bytes_per_annotation(n_workers, n_classes)
    # One place more than there are tasks: where the last one ends.
    pointers = 8 + state.shard.blocks.block_ptr.nbytes + state.shard.blocks.level_ptr.nbytes
    assert state.nbytes == votes + annotations.n_tasks * scale_plan.bytes_per_task(n_classes) + pointers
    expected = Crowd(annotations.n_annotations, 1.0, annotations.n_workers, n_classes)
    assert model.empty_stats(model.start()).of_workers.nbytes == scale_plan.sums_bytes(expected)


def test_the_default_sends_what_its_code_sends() -> None:
    crowd = AnchoredRasch(1, tol=0).fit(simulate_crowd(60, 40, n_classes=3, random_state=0).arrays).annotations_
    model, shared = AnchoredRasch(1, tol=0).fit(crowd)._held(np.arange(3), np.arange(crowd.n_workers))
    planned = Crowd(crowd.n_annotations, 1.0, crowd.n_workers, 3)
    assert model.empty_stats(shared).of_workers.nbytes == scale_plan.sums_bytes(planned, scale_plan.DEFAULT)
    assert sum(array.nbytes for array in shared) == scale_plan.parameter_bytes(planned, scale_plan.DEFAULT)


def test_the_page_states_the_bytes_of_the_code() -> None:
    assert scale_plan.bytes_per_task(2) == 8 + 4 + 48 * 2
    assert scale_plan.bytes_per_task(2, scale_plan.POSTERIORS_ON_ONE_MACHINE) == 8 + 4 + 32 * 2
    crowd = Crowd(100e6, 5, 50_000, 2)
    here, on_a_cluster = (
        scale_plan.data_bytes(crowd, posteriors) / 100e6
        for posteriors in (scale_plan.POSTERIORS_ON_ONE_MACHINE, scale_plan.POSTERIORS)
    )
    assert f"{here:.0f} bytes per annotation ({on_a_cluster:.0f}" in PAGE.read_text(encoding="utf-8")


def test_a_round_by_hand() -> None:
    """64 cores: 1 G annotations of two classes; 512 shards are 8 a core; six steps down, two levels up."""
    crowd = Crowd(1e9, 5, 500_000, 2)
    found = scale_plan.one_round(COSTS, crowd, 4)
    assert found.annotations == pytest.approx(20e-9 * 1e9 * 2 / 64)
    assert found.shards == pytest.approx(30e-9 * 8 * 1e6)
    assert found.driver == pytest.approx(0.3)
    assert found.network == pytest.approx((8e6 * 6 + 16e6 * 7 * 2) / 1.25e9)
    assert found.dask == pytest.approx(0.01 + 0.001 * (64 + 8 + 1))
    assert found.total == pytest.approx(found.annotations + found.shared + found.dask)
    assert scale_plan.network_bytes(crowd, 4) == 64 * 24e6
    assert scale_plan.node_bytes(crowd, 4) == pytest.approx((2 * 5e9 + 200e6 * 108) / 4 + 16 * 16e6 * (3 + 2))


def test_the_shared_state_takes_over_where_it_takes_as_long_as_the_votes() -> None:
    crowd = Crowd(1e9, 5, 1, 2)
    count = scale_plan.workers_that_take_over(COSTS, crowd, 4)
    found = scale_plan.one_round(COSTS, Crowd(1e9, 5, count, 2), 4)
    assert found.shared == pytest.approx(found.annotations, rel=0.01)


def test_tables_show_what_was_measured() -> None:
    measured = {
        "cost of a round: fixed, ms": "10",
        "cost of a round: per annotation and class, ns": "20",
        "cost of a round: per shard, worker and class, ns": "30",
        "cost of a round: per worker and class, ns": "300",
        "cost of a round: median error of this model, %": "12.5",
    }
    costs = scale_plan.costs_of(measured)
    assert list(vars(costs).values()) == pytest.approx(list(vars(COSTS).values()))
    assert "| per annotation and class | 20 ns |" in scale_plan.cost_table(measured)
    assert "| nodes | 4 (64 cores) | 100 (1600 cores) |" in scale_plan.plan_table(measured)
    assert scale_plan.one_machine_table({"peak memory, GB": "7"}).splitlines()[-1] == "| peak memory, GB | 7 |"
