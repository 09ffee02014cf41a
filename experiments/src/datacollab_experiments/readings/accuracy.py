"""Accuracy on MNIST and Fashion-MNIST under the paper's default condition, and the orderings it should show.

Ten parties of 100 rows, 1,000 SMOTE anchors from 100 sources, UMAP with 10 columns, once with umap-learn's own
transform as in the paper and once row by row; then PCA with 64 columns on 1,000 real anchors.  Prints the tables, and
exits with 1 if an expectation fails.

    python -m datacollab_experiments.readings.accuracy --data-dir DIR [--seeds 5] [--output accuracy.json]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from datacollab.datasets import load

from ..paper import BASELINES, Comparison, Condition, compare_methods

METHODS = [*BASELINES[:2], "MPP", "GEP", "ODC", "LTI", "KTI", "KTI+Center", "KTI+TSL", "KTI+TSL+Center", BASELINES[2]]
LINEAR = ["MPP", "GEP", "ODC", "LTI"]
DATASETS = ["mnist", "fashion-mnist"]


def run(data_dir: Path | None, seeds: int) -> dict[str, Comparison]:
    results = {}
    for dataset in DATASETS:
        data = load(dataset, data_dir=data_dir)
        conditions = {
            "UMAP, umap-learn's transform": Condition(dataset=dataset, out_of_sample="umap"),
            "UMAP, row-wise": Condition(dataset=dataset, out_of_sample="row-wise"),
            "PCA 64, real anchors": Condition(dataset=dataset, obfuscator="pca", n_components=64, n_sources=None),
        }
        for name, condition in conditions.items():
            results[f"{dataset}: {name}"] = compare_methods(condition, data, METHODS, range(seeds), report)
            report("")
            show(f"{dataset}: {name}", results[f"{dataset}: {name}"])
    return results


def report(step: str) -> None:
    print(f"\r{step:<60}", end="\r", file=sys.stderr, flush=True)


def show(title: str, comparison: Comparison) -> None:
    print(f"\n{title}, {len(comparison.seeds)} seeds")
    for method in comparison.methods:
        mean, half_width = comparison.interval(method)
        print(f"  {method:<16} {mean:.4f} ± {half_width:.4f}", flush=True)


def expectations(results: dict[str, Comparison]) -> dict[str, bool]:
    """What should hold, and whether it does."""
    held = {}
    for dataset in DATASETS:
        batch, rowwise, pca = (
            {method: comparison.interval(method)[0] for method in METHODS}
            for title, comparison in results.items()
            if title.startswith(f"{dataset}:")
        )
        for method in LINEAR:
            held[f"{dataset}, umap-learn's transform: KTI > {method}"] = batch["KTI"] > batch[method]
        held[f"{dataset}, umap-learn's transform: KTI+TSL+Center > KTI"] = batch["KTI+TSL+Center"] > batch["KTI"]
        for method in [*LINEAR, "KTI", "KTI+TSL+Center"]:
            held[f"{dataset}: {method} rises with the row-wise transform"] = rowwise[method] > batch[method]
        held[f"{dataset}, row-wise: KTI+TSL+Center >= LTI"] = rowwise["KTI+TSL+Center"] >= rowwise["LTI"]
        if dataset == "mnist":
            held["mnist, PCA 64, real anchors: KTI+TSL+Center >= 0.90"] = pca["KTI+TSL+Center"] >= 0.90
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="directory that holds the data sets")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="write all scores to this JSON file")
    arguments = parser.parse_args()
    results = run(arguments.data_dir, arguments.seeds)
    if arguments.output:
        scores = {title: comparison.as_dict() for title, comparison in results.items()}
        arguments.output.write_text(json.dumps(scores, indent=2), encoding="utf-8")
    held = expectations(results)
    print("\nExpectations")
    for sentence, holds in held.items():
        print(f"  {'holds' if holds else 'FAILS'}  {sentence}")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
