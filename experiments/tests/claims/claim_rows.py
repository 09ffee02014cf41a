"""Rows of worlds in which one knows what is true."""

from itertools import product

import numpy as np

from datacollab_experiments.claims import check_claims
from datacollab_experiments.paper import Condition, Row

PARTIES = (2, 4, 8, 16, 32, 64)
LINEAR = ("MPP", "GEP", "ODC", "LTI")
EXTENDED = ("KTI", "KTI+Center", "KTI+GL", "KTI+TSL", "KTI+GL+Center", "KTI+TSL+Center")
LEVEL = {
    "Local": 0.5, "MPP": 0.4, "ODC": 0.41, "GEP": 0.45, "LTI": 0.452, "KTI": 0.55, "KTI+Center": 0.56,
    "KTI+GL": 0.57, "KTI+GL+Center": 0.58, "KTI+TSL": 0.62, "KTI+TSL+Center": 0.66,
}  # fmt: skip


def kernel(name):
    return name.startswith("KTI")


def row(experiment, condition, name, seed, *, kind="method", error=None, seconds=None, **scores):
    return Row(
        experiment=experiment, condition=condition, kind=kind, name=name, seed=seed, cell="", scores=scores,
        seconds=seconds or {}, error=error,
    )  # fmt: skip


def the_papers_world():
    """Expected scores under which everything holds that the paper says: (condition, kind, name, scores, seconds)."""
    for dataset in ("mnist", "fashion-mnist"):
        for K in PARTIES:
            condition = Condition(dataset=dataset, n_parties=K, hyperparameters="paper")
            for name in ("Local", *LINEAR, "KTI"):
                yield "rq1", condition, "method", name, LEVEL[name] + 0.02 * kernel(name) * np.log2(K), {}
            for name in EXTENDED:
                yield "rq2", condition, "method", name, LEVEL[name] + 0.02 * np.log2(K), {}
        sizes = [(n, 100) for n in (100, 200, 400, 800, 1600)] + [(1000, n) for n in (10, 30, 100, 300, 1000)]
        for (n_anchors, n_sources), name in product(sizes, (*LINEAR, "KTI", "KTI+TSL")):
            condition = Condition(dataset=dataset, n_anchors=n_anchors, n_sources=n_sources, hyperparameters="paper")
            gain = np.log10(n_anchors) + 2 * np.log10(n_sources)
            seconds = {"construct": n_anchors ** (3.0 if kernel(name) else 1.0), "represent": n_anchors ** kernel(name)}
            yield "rq3", condition, "method", name, LEVEL[name] + (0.04 if kernel(name) else 0.01) * gain, seconds
        accuracy = {
            "pca": {"LTI": 0.6, "KTI": 0.5, "KTI+TSL": 0.65},
            "kernel-pca": {"LTI": 0.45, "KTI": 0.5, "KTI+TSL": 0.6},
            "umap": {"LTI": 0.4, "KTI": 0.45, "KTI+TSL": 0.5},
        }
        attacks = {
            "pca": {"LR": 0.4, "MLP": 0.38, "PINV": 0.45},
            "kernel-pca": {"LR": 0.4, "MLP": 0.35, "PINV": 0.3},
            "umap": {"LR": 0.17, "MLP": 0.15, "PINV": 0.14},
        }
        for obfuscator, d in product(("pca", "kernel-pca", "umap"), (4, 16, 64)):
            condition = Condition(
                dataset=dataset, obfuscator=obfuscator, n_components=d, n_sources=None, hyperparameters="paper"
            )
            for name, level in accuracy[obfuscator].items():
                yield "rq4", condition, "method", name, level + 0.05 * np.log2(d), {}
            for name, level in attacks[obfuscator].items():
                yield "rq4", condition, "attack", name, level + 0.05 * np.log2(d) * (obfuscator != "umap"), {}
    for name, obfuscator in product((*LINEAR, "KTI", "KTI+GL", "KTI+TSL"), ("pca", "kernel-pca", "umap")):
        error = {"pca": 13 if kernel(name) else 10, "kernel-pca": 10 if kernel(name) else 11}.get(
            obfuscator, 10 if kernel(name) else 12
        )
        for experiment, dataset, n in (("regression", "ujiindoorloc", 10), ("slice", "slice-localization", 4)):
            condition = Condition(dataset=dataset, obfuscator=obfuscator, n_parties=n, hyperparameters="paper")
            yield experiment, condition, "method", name, float(error), {}


def rows_of(world, *, n_seeds=12, common=0.1, noise=0.003, sign=1, seed=0):
    """Rows with an effect that all rows of a seed share, much larger than what they have of their own."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=n_seeds)
    shared -= shared.mean()
    rows = {}
    for experiment, condition, kind, name, level, seconds in world:
        measure = {"regression": "rmse", "slice": "rmse"}.get(experiment, "accuracy")
        measure = "reconstruction_accuracy" if kind == "attack" else measure
        scale = 10 if measure == "rmse" else 1
        for trial in range(n_seeds):
            level_of_seed = (level if sign > 0 else 2 * scale - level) + scale * common * shared[trial]
            times = {key: time**sign * np.exp(shared[trial] + 0.05 * rng.normal()) for key, time in seconds.items()}
            score = level_of_seed + scale * noise * rng.normal()
            rows.setdefault(experiment, []).append(
                row(experiment, condition, name, trial, kind=kind, seconds=times, **{measure: score})
            )
    return rows


def verdicts_of(rows, **given):
    return {verdict.claim.id: verdict for verdict in check_claims(rows, **given)}


def two_methods(first, second, conditions=None, experiment="rq2", names=("KTI+TSL", "KTI")):
    """Rows of two methods in conditions that differ in K; a score per condition and seed."""
    return {
        experiment: [
            row(experiment, Condition(n_parties=K, hyperparameters="paper"), name, seed, accuracy=score)
            for name, table in zip(names, (first, second), strict=True)
            for K, scores in zip(PARTIES, table, strict=False)
            for seed, score in enumerate(scores)
        ]
    }
