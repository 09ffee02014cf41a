"""Limits of the threads of linear algebra."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

SMALL = 3_000
"""Rows up to which several threads hardly bring anything, and on a busy machine cost much."""

_here = threading.local()
"""Whether this thread is within a function that is limited."""
_P = ParamSpec("_P")
_R = TypeVar("_R")


def one_thread(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Limit a function to one thread of BLAS and OpenMP: for many small problems, one after the other.

    Threads that wait for one another spin, so that on a machine with other work a fit takes many times as long, and
    all of the processor.
    """

    @wraps(function)
    def limited(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        # Looking for the libraries takes 20 ms each time, and a limited function may call others thousands of times.
        if getattr(_here, "is_limited", False):
            return function(*args, **kwargs)
        _here.is_limited = True
        try:
            with threadpool_limits(limits=1):
                return function(*args, **kwargs)
        finally:
            _here.is_limited = False

    return limited


def one_thread_if_small(n_rows: int) -> AbstractContextManager[Any]:
    """Return a context with one thread if there are so few rows that more would not help."""
    return threadpool_limits(limits=1) if n_rows <= SMALL else nullcontext()
