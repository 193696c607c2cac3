"""A small cluster that serves all tests of a module."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def cluster_of_two(**how: Any) -> Iterator[Any]:
    """A client of two workers of one thread each."""
    distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'rarevote[dask]'")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
            **how,
        ) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.fixture(scope="module", autouse=True)
def _settings_as_before() -> Iterator[None]:
    """Clients that are closed out of turn, or never reach a scheduler, leave dask asking for one that is gone."""
    dask = pytest.importorskip("dask", reason="dask is not installed: pip install 'rarevote[dask]'")
    before = dask.config.get("scheduler", None)
    yield
    dask.config.set(scheduler=before)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Workers in this process, which saves their start; what they send each other goes over the wire all the same."""
    with cluster_of_two(processes=False, protocol="tcp", host="127.0.0.1") as made:
        yield made
