"""Small crowds for the tests of records and page."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from rarevote.api import Fitted, Result
from rarevote.crowd.annotations import Annotations
from rarevote.diagnose.diagnosis import Diagnosis
from rarevote.errors import RarevoteWarning
from rarevote.methods.base import Estimator

SCRIPT = "<script>alert(1)</script>"
FORMULA = '=HYPERLINK("http://example.invalid/","x")'
BREAKOUT = '</script><img src=x onerror="alert(2)">'
SEPARATORS = "line\u2028paragraph\u2029end"
HOSTILE_TASKS = (SCRIPT, FORMULA, BREAKOUT, SEPARATORS)
HOSTILE_WORKER = '"><svg onload=alert(3)>'
HOSTILE_CLASS = "de<b>fect</b> & 'more'"


def random_crowd(
    seed: int, n_tasks: int = 60, n_workers: int = 9, classes: tuple[Any, ...] = ("no", "yes"), votes: int = 5
) -> tuple[Annotations, dict[Any, Any]]:
    """Votes of workers of differing skill on items of which the last class is rare, and the truth."""
    draw = np.random.default_rng(seed)
    size = len(classes)
    weights = np.array([4.0] * (size - 1) + [1.0])
    truth = draw.choice(size, size=n_tasks, p=weights / weights.sum())
    skill = draw.uniform(0.45, 0.98, size=(n_workers, size))
    task, worker, label = [], [], []
    for i in range(n_tasks):
        for r in draw.choice(n_workers, size=min(votes, n_workers), replace=False):
            right = draw.random() < skill[r, truth[i]]
            wrong = [k for k in range(size) if k != truth[i]] or [truth[i]]
            task.append(f"t{i:03d}")
            worker.append(f"w{r}")
            label.append(classes[truth[i] if right else draw.choice(wrong)])
    known = {f"t{i:03d}": classes[k] for i, k in enumerate(truth)}
    return Annotations.from_arrays(task, worker, label), known


def hostile_crowd() -> tuple[Annotations, dict[Any, Any], list[str]]:
    """A crowd whose names try to be markup, formulas and line ends; its truth; and a text for every item."""
    plain, truth = random_crowd(3, n_tasks=80, n_workers=12, classes=("sound", HOSTILE_CLASS))
    tasks = plain.tasks.tolist()
    renamed = dict(zip(tasks, [*HOSTILE_TASKS, *tasks[len(HOSTILE_TASKS) :]], strict=True))
    workers = [HOSTILE_WORKER if name == "w0" else name for name in plain.workers.tolist()]
    crowd = Annotations.from_arrays(
        [renamed[tasks[i]] for i in plain.task_of_annotation()],
        [workers[r] for r in plain.worker],
        plain.classes[plain.label].tolist(),
    )
    texts = [f"what {name} shows" for name in crowd.tasks.tolist()]
    return crowd, {renamed[name]: label for name, label in truth.items()}, texts


def decided(estimator: Estimator, rare: Any = None, codes: Any = None) -> Result:
    """The result of a fitted method, or the same with other labels; what it warns of is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RarevoteWarning)
        result = Fitted.of(estimator, rare).decide()
    return result if codes is None else replace(result, codes=codes, flagged=result.fitted.rare.holds(codes))


def described_fit(estimator: Estimator, *, rare: Any = None, truth: Any = None, codes: Any = None) -> Diagnosis:
    """What a page of a fitted method shows."""
    result = decided(estimator, rare, codes)
    return result.fitted.diagnose(result, truth)
