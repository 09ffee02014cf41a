"""Which engine computes a fit: this process, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._dask_engine import DaskEngine, cluster_memory
from ._engine import Engine, LocalEngine

__all__ = ["engine_for", "memory_of"]

_LARGE_SHARE = 0.8
"""Part of the workers' memory that a fit may plan to take; Dask begins to write to disk from 0.6 of one worker's."""


@contextmanager
def engine_for(engine: Any, n_jobs: int | None) -> Iterator[Engine]:
    """The engine that a parameter of an estimator stands for: a Dask client, "dask" for the current one, or None."""
    if engine is None:
        yield LocalEngine(n_jobs)
        return
    dask = DaskEngine(engine)
    try:
        yield dask
    finally:
        dask.close()


def memory_of(engine: Any) -> float | None:
    """Bytes that a cluster's workers may take together; None where a fit runs in this process."""
    if engine is None:
        return None
    return _LARGE_SHARE * cluster_memory(engine)
