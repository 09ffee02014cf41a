"""Time, memory and the machine's speed."""

from __future__ import annotations

import hashlib
import os
import platform
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import DTypeLike
from threadpoolctl import threadpool_info

import datacollab

Row = dict[str, Any]

_GEMM_SIZE = 2048
_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@dataclass
class Measurement:
    """Seconds of CPU of all threads, seconds on the clock, and bytes at the peak beyond those before."""

    cpu: float = 0.0
    wall: float = 0.0
    memory: int = 0


@contextmanager
def measured() -> Iterator[Measurement]:
    """Measure what happens inside; the numbers are there afterwards."""
    measurement = Measurement()
    _forget_peak()
    before = _memory("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    yield measurement
    measurement.cpu, measurement.wall = time.process_time() - cpu, time.perf_counter() - wall
    measurement.memory = max(_memory("VmHWM") - before, 0)


def gemm_rate(dtype: DTypeLike, *, size: int = _GEMM_SIZE, repeats: int = 3) -> float:
    """Operations a second of CPU of a large matrix product, the best of several."""
    A = np.random.default_rng(0).normal(size=(size, size)).astype(dtype)
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        A @ A
        best = min(best, time.process_time() - start)
    return 2.0 * size**3 / best


def machine() -> dict[str, Any]:
    """Processor and the versions that numbers depend on."""
    blas = [
        f"{pool['internal_api']} {pool['version']} {pool.get('architecture', '')}".strip()
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    ]
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "blas": sorted(set(blas)),
    }


def code_digest() -> str:
    """Short digest of the solvers' source, which tells rows of different code apart."""
    source = Path(datacollab.__file__).parent
    digest = hashlib.sha256()
    for room in ("analyst", "linalg"):
        for path in sorted((source / room).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def one_thread_environment(threads: int) -> dict[str, str]:
    """Environment of a process whose BLAS takes so many threads."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads))}


def _forget_peak() -> None:
    """Let the peak start at what is in use now, where the system can; loading data may have taken more."""
    if _CLEAR.exists():
        _CLEAR.write_text("5", encoding="ascii")


def _memory(entry: str) -> int:
    """Bytes in use ("VmRSS") or at the peak ("VmHWM"); the peak for both where the system tells nothing else."""
    if _STATUS.exists():
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith(f"{entry}:"):
                return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
