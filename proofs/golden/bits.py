"""Fits of every method to simulated crowds, to the bit: posterior, reported probabilities, labels, saved model."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tests.tables import small_network

import rarevote
from proofs.golden.forced import force_passes
from rarevote.errors import RarevoteError
from rarevote.methods.registry import METHODS


class BitCrowd(NamedTuple):
    """Votes with what is known of their tasks."""

    votes: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]
    truth: dict[Any, Any]
    gold: dict[Any, Any] | None = None


def _of(crowd: Any) -> BitCrowd:
    return BitCrowd(crowd.arrays, dict(enumerate(crowd.truth.tolist())))


def _repeated() -> BitCrowd:
    """Two classes; every seventh vote is cast twice, every fourteenth the second time for the other class."""
    made = _of(rarevote.simulate_crowd(300, 25, votes_per_task=5, random_state=1))
    task, worker, label = (column[::7] for column in made.votes)
    again = task, worker, np.where(np.arange(len(label)) % 2, label, 1 - label)
    tasks, workers, labels = (np.concatenate(pair) for pair in zip(made.votes, again, strict=True))
    return made._replace(votes=(tasks, workers, labels))


def _gold() -> BitCrowd:
    """Three classes with names, and the truth of every third task as gold."""
    made = rarevote.simulate_crowd(300, 30, n_classes=3, imbalance=10, votes_per_task=6, random_state=2)
    names = np.array(["sound", "scratch", "defect"])
    votes = (
        np.array([f"t{n:03d}" for n in made.task]),
        np.array([f"w{n:02d}" for n in made.worker]),
        names[made.label],
    )
    truth = {f"t{n:03d}": str(names[code]) for n, code in enumerate(made.truth)}
    return BitCrowd(votes, truth, dict(list(truth.items())[::3]))


CROWDS: dict[str, Callable[[], BitCrowd]] = {
    "repeated": _repeated,
    "gold": _gold,
    "five": lambda: _of(rarevote.simulate_cc_rasch(250, 25, n_classes=5, mu_alpha=1.5, mu_beta=0, random_state=3)),
    "tiny": lambda: _of(rarevote.simulate_crowd(6, 4, votes_per_task=3, random_state=4)),
    "skewed": lambda: _of(rarevote.simulate_crowd(600, 40, imbalance=80, votes_per_task=4, random_state=5)),
    "jury": lambda: _of(rarevote.simulate_jury(250, 6, n_classes=3, imbalance=4, random_state=6)),
}
# Cases of one kind of passes stand together: a child then loads or compiles a kernel once.
CASES = [" ".join(one) for one in product(("numba", "numpy"), METHODS, CROWDS, ("1", "2"))]


@cache
def _crowd(name: str) -> BitCrowd:
    return CROWDS[name]()


def run(name: str, folder: Path, inputs: Path) -> dict[str, str | bytes]:
    """Fit one method to one crowd with some passes and threads."""
    del inputs
    engine, method, crowd_name, threads = name.split()
    force_passes(engine)
    crowd = _crowd(crowd_name)
    model = METHODS[method].load()()
    settings: dict[str, Any] = {"n_jobs": int(threads)}
    if method == "crowdfm":
        settings |= {"weights": small_network(), "n_seeds": 2}
    model.set_params(**{key: value for key, value in settings.items() if key in model.get_params()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fitted = rarevote.fit(crowd.votes, model, gold=_known(method, crowd))
        except RarevoteError as error:
            return {"bits": f"{type(error).__name__}: {error}"}
        found = {
            "posterior_": model.posterior_,
            "reported_": model.reported_,
            "labels_": np.array(
                list(model.labels_.to_dict().values()) if hasattr(model.labels_, "to_dict") else model.labels_
            ),
            "probabilities": fitted.probabilities,
            "decided": fitted.decide().codes,
            "model": _saved(model, folder / "saved.model"),
        }
    return {
        "bits": "\n".join([*(f"{key}: {_bits(value)}" for key, value in found.items()), f"iterations: {model.n_iter_}"])
    }


def _known(method: str, crowd: BitCrowd) -> dict[Any, Any] | None:
    capabilities = METHODS[method].capabilities
    if method == "rasch":
        return crowd.truth  # of which it needs all
    if not capabilities.gold or (crowd.gold is None and not capabilities.needs_gold):
        return None
    return crowd.gold or dict(list(crowd.truth.items())[::2])


def _saved(model: Any, path: Path) -> bytes | str:
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=None)  # which the file has, so that the bits of one and two threads would differ
    try:
        model.save(path)
    except RarevoteError as error:
        return str(error)
    return path.read_bytes()


def _bits(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return f"{len(value)} bytes, {hashlib.sha256(value).hexdigest()}"
    array = np.ascontiguousarray(value)
    return f"{array.dtype} {array.shape}, {hashlib.sha256(array.tobytes()).hexdigest()}"
