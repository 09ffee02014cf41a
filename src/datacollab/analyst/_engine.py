"""Where the parties' matrices are computed and stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import threadpool_limits

from .._validation import FloatArray


class Engine:
    """Holds one state per party and computes with all of them: here in this process, `n_jobs` at a time.

    A subclass may keep states elsewhere; the arrays given and returned move.  Functions are module-level, and results
    do not depend on where or in which order parties are worked on.
    """

    memory: float | None = None
    """Bytes that a fit may hold where states are, counted as for `KTI`'s ``memory_limit``, which overrides this one.

    None if states are in this process, which may hold what it does and 0.9 of what is available."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def place(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Make one state per party, ``function(*arguments[k])``; return one handle for each."""
        return list(self.each(function, arguments))

    def update(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """Make new states ``function(state, *shared)`` of the old ones."""
        return list(self.each(function, [(state, *shared) for state in states]))

    def total(self, function: Callable[..., FloatArray], states: list[Any], *shared: Any) -> FloatArray:
        """Return the sum of ``function(state, *shared)`` over parties."""
        parts = self.each(function, [(state, *shared) for state in states])
        total: FloatArray = next(parts)
        for part in parts:
            total += part
        return total

    def gather(self, function: Callable[..., Any], states: list[Any], *shared: Any) -> list[Any]:
        """Return ``function(state, *shared)`` for each party, brought here."""
        return self.update(function, states, *shared)

    def close(self) -> None:
        """Release all states; a fit calls this at its end, however it ends."""

    def each(self, function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield ``function(*arguments[k])`` for each party in order, without keeping the results."""
        if effective_n_jobs(self.n_jobs) == 1:
            for each in arguments:
                yield function(*each)
            return
        # Threads suffice, since LAPACK releases the interpreter; one BLAS thread each keeps them off one another.
        with threadpool_limits(limits=1, user_api="blas"):
            parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator", pre_dispatch="n_jobs")
            yield from parallel(delayed(function)(*each) for each in arguments)
