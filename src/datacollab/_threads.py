"""Limits of the threads of linear algebra."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

__all__ = ["SMALL", "one_thread", "one_thread_if_small"]

SMALL = 3_000
"""Rows up to which several threads hardly bring anything, and on a busy machine cost much."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Limit a function to one thread of BLAS and OpenMP: for many small problems, one after the other.

    Threads that wait for one another spin, so that on a machine with other work a fit takes many times as long, and
    all of the processor.
    """

    @wraps(function)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        with threadpool_limits(limits=1):
            return function(*args, **kwargs)

    return limited


def one_thread_if_small(n_rows: int) -> AbstractContextManager[Any]:
    """Return a context with one thread if there are so few rows that more would not help."""
    return threadpool_limits(limits=1) if n_rows <= SMALL else nullcontext()
