"""Models that cross as numbers against scikit-learn's own: CPU time to predict, bytes, and the largest difference.

Forests, boosting and a network are trained on 5,000 rows of MNIST, reduced by PCA to 16 columns, and predict 100,000
rows (all rows, some twice).  Both take turns; CPU time is the median of several passes.  Threads are pinned to one.

    python -m datacollab_experiments.solvers.sent_models [--rows 100000] [--data-dir DIR] [--repeats 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from datacollab.model import head_from, head_to

from .mnist_parties import load_table

N_TRAIN, N_COLUMNS = 5_000, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with threadpool_limits(1):
        X, y = load_table("mnist", arguments.data_dir)
        X = PCA(N_COLUMNS, random_state=0).fit_transform(X)
        order = np.random.default_rng(0).permutation(len(X))
        train, rows = order[:N_TRAIN], X[np.resize(order, arguments.rows)]
        print("| model | bytes | read, s | scikit-learn, s | as numbers, s | speed | difference |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name, (model, target) in _models(y).items():
            print(_line(name, model.fit(X[train], target[train]), rows, arguments.repeats), flush=True)


def _models(y: Any) -> dict[str, tuple[Any, Any]]:
    return {
        "forest of 100 trees, ten classes": (RandomForestClassifier(random_state=0), y),
        "forest of 100 trees, two classes": (RandomForestClassifier(random_state=0), y > 4),
        "forest of 100 trees, regression": (RandomForestRegressor(random_state=0), y.astype(np.float64)),
        "gradient boosting, two classes": (GradientBoostingClassifier(random_state=0), y > 4),
        "histogram boosting, two classes": (HistGradientBoostingClassifier(random_state=0), y > 4),
        "network of 100 units": (MLPClassifier(random_state=0, max_iter=20), y),
    }


def _line(name: str, model: Any, rows: Any, repeats: int) -> str:
    facts, members = head_to(model, "h")
    read, to_read = _timed(lambda: head_from(facts, members, "h", N_COLUMNS))
    said = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    theirs, ours, difference = [], [], 0.0
    for _ in range(repeats):
        before, seconds = _timed(lambda: getattr(model, said)(rows))
        theirs.append(seconds)
        after, seconds = _timed(lambda: getattr(read, said)(rows))
        ours.append(seconds)
        difference = max(difference, float(np.abs(before - after).max()))
    first, second = np.median(theirs), np.median(ours)
    size = sum(map(len, members.values()))
    return (
        f"| {name} | {size:,} | {to_read:.2f} | {first:.2f} | {second:.2f} | {first / second:.2f} | {difference:.1e} |"
    )


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


if __name__ == "__main__":
    main()
