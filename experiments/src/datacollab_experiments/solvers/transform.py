"""Time, memory and error of an integration function's transform, against scikit-learn's kernel and one product.

A KTI map with 16 components of one party (PCA of MNIST with 16 columns, gamma by the median, alpha 0.1) is applied to
many rows: by ``rbf_kernel(X, A) @ coef`` in one go, the same in chunks (the best of several sizes), in double
precision, and by default.  CPU time is the least of several passes that take turns; extra memory is the peak of what
NumPy allocates, without the result.  The error is the largest difference from double precision, relative to the largest
entry.

    python -m datacollab_experiments.solvers.transform [--rows 100000] [--anchors 1600] [--data-dir DIR] [--threads 1]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_info, threadpool_limits

from datacollab import KTI
from datacollab.datasets import load
from datacollab.model import KernelMap

from .mnist_parties import data_directory

Array = NDArray[np.float64]
Transform = Callable[[Array], Array]

N_COLUMNS = 16
CHUNKS = (256, 512, 1024, 2048, 4096)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--anchors", type=int, default=1600)
    parser.add_argument("--alpha", type=float, default=0.1)
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    data_dir = data_directory(arguments.data_dir)
    with threadpool_limits(arguments.threads):
        X, g, source = party(data_dir, arguments.rows, arguments.anchors, arguments.alpha)
        n_threads = max(pool["num_threads"] for pool in threadpool_info())
        print(
            f"{source}; {len(X):,} rows, {len(g.anchor_representation):,} anchor rows, {X.shape[1]} columns, "
            f"{g.n_components} components, alpha {arguments.alpha:g}; {n_threads} thread(s)\n"
        )
        show(X, g, arguments.repeats)


def party(data_dir: Path | None, n_rows: int, n_anchors: int, alpha: float) -> tuple[Array, KernelMap, str]:
    """Rows under one party's PCA, and its integration function."""
    rng = np.random.default_rng(0)
    name = "digits" if data_dir is None else "mnist"
    table, _ = load(name, data_dir=data_dir)
    table = rng.permutation(table)
    maps = {k: PCA(N_COLUMNS, random_state=0).fit(table[100 * k : 100 * (k + 1)]) for k in range(3)}
    # Few rows are repeated with noise of a tenth of their spread, so that none is there twice.
    anchor = tile(table[300:], n_anchors, rng)
    integrator = KTI(n_components=16, alpha=alpha).fit({k: f.transform(anchor) for k, f in maps.items()})
    rows = tile(maps[0].transform(table[300 + min(n_anchors, len(table) // 2) :]), n_rows, rng)
    g = integrator.integration_functions_[0]
    assert isinstance(g, KernelMap)
    return rows, g, name


def tile(table: Array, n_rows: int, rng: np.random.Generator) -> Array:
    tiled = table[np.arange(n_rows) % len(table)]
    tiled[len(table) :] += 0.1 * table.std() * rng.normal(size=tiled[len(table) :].shape)
    return tiled


def show(X: Array, g: KernelMap, repeats: int) -> None:
    transforms: dict[str, Transform] = {
        "sklearn, one go": lambda rows: plain(rows, g),
        **{f"sklearn, chunks of {size}": chunked(g, size) for size in CHUNKS},
        "datacollab, float64": replace(g, precision="float64"),
        "datacollab, default": replace(g),
    }
    seconds = cpu_seconds(transforms, X, repeats)
    best_chunk = min((name for name in transforms if "chunks" in name), key=seconds.__getitem__)
    reference = replace(g, precision="float64")(X[:2000])
    check = plain(X[:2000], g)
    assert np.abs(reference - check).max() < 1e-10 * np.abs(check).max()
    wanted = chunked(g, 512)(X)
    print(f"{'':26} {'CPU s':>7} {'x one go':>9} {'x chunks':>9} {'extra MiB':>10} {'error':>9}")
    for name in ("sklearn, one go", best_chunk, "datacollab, float64", "datacollab, default"):
        extra, result = extra_memory(transforms[name], X)
        error = np.abs(result - wanted).max() / np.abs(wanted).max()
        print(
            f"{name:<26} {seconds[name]:7.3f} {seconds['sklearn, one go'] / seconds[name]:9.1f} "
            f"{seconds[best_chunk] / seconds[name]:9.1f} {extra / 2**20:10.1f} {error:9.1e}"
        )


def plain(X: Array, g: KernelMap) -> Array:
    A, gamma = g.anchor_representation, g.kernel.parameters["gamma"]
    return np.asarray(rbf_kernel(X, A, gamma=gamma) @ g.coefficients)


def chunked(g: KernelMap, size: int) -> Transform:
    def transform(X: Array) -> Array:
        result = np.empty((len(X), g.n_components))
        for start in range(0, len(X), size):
            result[start : start + size] = plain(X[start : start + size], g)
        return result

    return transform


def cpu_seconds(transforms: dict[str, Transform], X: Array, repeats: int) -> dict[str, float]:
    """Least CPU time of each; they take turns, so that a busy machine slows all of them."""
    seconds = dict.fromkeys(transforms, np.inf)
    for _ in range(repeats):
        for name, transform in transforms.items():
            start = time.process_time()
            transform(X)
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def extra_memory(transform: Transform, X: Array) -> tuple[int, Array]:
    tracemalloc.start()
    result = transform(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - result.nbytes, result


if __name__ == "__main__":
    main()
