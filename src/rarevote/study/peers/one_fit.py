"""One timed fit in its own process: ``python one_fit.py LIBRARY METHOD LABELS.npz`` prints a line of JSON.

It is run by path in any Python that has the library, so it imports nothing of rarevote unless rarevote is
measured. ``python one_fit.py LIBRARY`` prints the version of the library, or null if it is not installed.

The clock covers ``fit`` only. Imports, reading the file, building the data frame of another library and a first fit on
a few votes (which loads or compiles code) are not timed. Fits of less than a second are repeated and the fastest
counts.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

DISTRIBUTIONS = {"rarevote": "rarevote", "crowd-kit": "crowd-kit"}
CROWD_KIT_CLASSES = {
    "majority-vote": "MajorityVote",
    "dawid-skene": "DawidSkene",
    "one-coin": "OneCoinDawidSkene",
    "glad": "GLAD",
    "mace": "MACE",
    "wawa": "Wawa",
    "zero-based-skill": "ZeroBasedSkill",
}
_WARM_UP_VOTES = 40
_REPEAT_BELOW_SECONDS = 1.0
_MAX_REPEATS = 3

Arrays = tuple[Any, Any, Any]


def installed_version(library: str) -> str | None:
    """The version of a library in this Python, or None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTIONS[library])
    except PackageNotFoundError:
        return None


def prepare(library: str, method: str) -> Callable[[Arrays], Callable[[], object]]:
    """A function that turns labels into the fit to time."""
    if library == "rarevote":
        from rarevote.methods.registry import find_method

        estimator = find_method(method).load()
        return lambda arrays: lambda: estimator().fit(arrays)
    import crowdkit.aggregation
    import pandas

    peer = getattr(crowdkit.aggregation, CROWD_KIT_CLASSES[method])

    def with_frame(arrays: Arrays) -> Callable[[], object]:
        frame = pandas.DataFrame(dict(zip(("task", "worker", "label"), arrays, strict=True)))
        return lambda: peer().fit(frame)

    return with_frame


def measure(library: str, method: str, labels: str) -> dict[str, Any]:
    """Seconds of the fit, and the memory of the process before it and at its peak, in MB."""
    import numpy as np

    with np.load(labels) as file:
        arrays = (file["task"], file["worker"], file["label"])
    fit_of = prepare(library, method)
    task, worker, label = (column[:_WARM_UP_VOTES] for column in arrays)
    fit_of((task, worker, label))()
    fit = fit_of(arrays)
    before = resident_mb("VmRSS")
    seconds: list[float] = []
    while len(seconds) < _MAX_REPEATS and sum(seconds) < _REPEAT_BELOW_SECONDS:
        begin = time.perf_counter()
        fit()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": min(seconds), "before_mb": before, "peak_mb": resident_mb("VmHWM")}


def resident_mb(entry: str) -> float:
    """Memory of this process: ``VmRSS`` is the current value, ``VmHWM`` the peak.

    The kernel's table comes first: the peak of ``getrusage`` includes the process that started this one.
    """
    try:
        with open("/proc/self/status", encoding="ascii") as table:  # noqa: PTH123 - no reason to load pathlib
            return next(int(line.split()[1]) / 1024 for line in table if line.startswith(f"{entry}:"))
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1024 * 1024 if sys.platform == "darwin" else 1024)


def main(arguments: list[str]) -> None:
    """Print the result as a line of JSON."""
    warnings.simplefilter("ignore")
    if len(arguments) == 1:
        print(json.dumps(installed_version(arguments[0])))
    else:
        print(json.dumps(measure(*arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
