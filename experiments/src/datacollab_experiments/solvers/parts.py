"""Where the time of an exact fit goes: seconds of CPU by part, from a profile."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datacollab

_Place = tuple[str, str, str | None]
_BLOCKS: _Place = ("linalg/_kernels.py", "each", "panel_cholesky")
PARTS: dict[str, list[_Place]] = {
    "start": [("analyst/_solvers.py", "coarse_start", None)],
    # The coarse start makes kernels too, of its landmarks: they count there alone.
    "kernels": [
        ("linalg/_kernels.py", "gram", "_inverse"),
        ("linalg/_kernels.py", "gram", "_coefficients"),
        _BLOCKS,
    ],
    "factors": [
        ("linalg/_kernel_ridge.py", "ridge_inverse", None),
        ("linalg/_kernel_ridge.py", "ridge_coefficients", None),
        ("linalg/_panels.py", "panel_cholesky", None),
    ],
    "sum": [("linalg/_kernel_ridge.py", "add_to_lower", None)],
    "eigenvectors": [
        ("analyst/_solvers.py", "dense_target", None),
        ("linalg/_eigen.py", "leading_eigenpairs", "_solve_streamed"),
    ],
    "solves": [("analyst/_solvers.py", "_solve", None)],
    "correction": [("analyst/_solvers.py", "_refine", None)],
}
"""Functions of each part by file, with the caller where only calls from there count."""
_SOURCE = Path(datacollab.__file__).parent


def seconds_by_part(fit: Callable[[], Any]) -> dict[str, float]:
    """Run an exact fit under a profile, and return seconds of CPU by part; "rest" is what no part has."""
    profile = cProfile.Profile(time.process_time)
    start = time.process_time()
    profile.runcall(fit)
    total = time.process_time() - start
    stats: dict[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    found = {part: sum((_seconds(stats, *each) for each in functions), 0.0) for part, functions in PARTS.items()}
    # The streamed solver makes kernel blocks while it factorises, and applies the operator while it iterates.
    found["factors"] -= _seconds(stats, *_BLOCKS)
    found["eigenvectors"] -= found["solves"] + found["correction"]
    return {**found, "rest": total - sum(found.values())}


def _seconds(stats: dict[Any, Any], file: str, function: str, caller: str | None) -> float:
    """Return cumulative seconds of a function of the package, of all calls or of those by one caller."""
    total = 0.0
    for (path, _, name), (_, _, _, cumulative, callers) in stats.items():
        if name == function and Path(path) == _SOURCE / file:
            total += cumulative if caller is None else sum(c[3] for (*_, by), c in callers.items() if by == caller)
    return total
