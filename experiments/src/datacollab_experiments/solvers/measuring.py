"""CPU time and memory of one fit, and the machine's speed."""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


@dataclass
class Measurement:
    """Seconds of CPU of all threads, and bytes at the peak beyond those in use before."""

    cpu: float = 0.0
    memory: int = 0


@contextmanager
def measured() -> Iterator[Measurement]:
    """Measure the block; the numbers are there afterwards."""
    measurement = Measurement()
    # The peak starts at the bytes in use now, where the system can: loading data may have taken more.
    if _CLEAR.exists():
        _CLEAR.write_text("5", encoding="ascii")
    before = _memory("VmRSS")
    start = time.process_time()
    yield measurement
    measurement.cpu = time.process_time() - start
    measurement.memory = max(_memory("VmHWM") - before, 0)


def gemm_rate(*, size: int = 2048, repeats: int = 3) -> float:
    """Return operations a second of CPU of a large matrix product in float64, the best of several."""
    A = np.random.default_rng(0).normal(size=(size, size))
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        A @ A
        best = min(best, time.process_time() - start)
    return 2.0 * size**3 / best


def run_in_fresh_process(module: str, arguments: Sequence[object], source: Path | None = None) -> Any:
    """Return the JSON that a module's program prints, in a process with one thread of BLAS.

    With `source`, these sources come before all others.
    """
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = {**os.environ, **dict.fromkeys(names, "1")}
    if source is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(source), *sys.path])
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return json.loads(subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout)


def _memory(entry: str) -> int:
    """Return bytes in use ("VmRSS") or at the peak ("VmHWM"); the peak for both where the system tells nothing else."""
    if _STATUS.exists():
        for line in _STATUS.read_text(encoding="ascii").splitlines():
            if line.startswith(f"{entry}:"):
                return 1024 * int(line.split()[1])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
