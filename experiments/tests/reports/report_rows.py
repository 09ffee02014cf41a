"""Rows of all experiments, made up: each method has a level, each seed an effect of its own."""

import zlib
from dataclasses import replace
from itertools import product

import numpy as np

from datacollab_experiments.paper import BASELINES, METHODS, Condition, Row

PRESETS = ("paper", "recommended")
LINEAR = ("MPP", "GEP", "ODC", "LTI")
EXTENDED = ("KTI", "KTI+Center", "KTI+GL", "KTI+TSL", "KTI+GL+Center", "KTI+TSL+Center")
LEVELS = {
    "Local": 0.50, "Local+Public": 0.66, "Central": 0.85, "MPP": 0.40, "GEP": 0.45, "ODC": 0.38, "LTI": 0.452,
    "KTI": 0.55, "KTI+Center": 0.555, "KTI+GL": 0.56, "KTI+TSL": 0.61, "KTI+GL+Center": 0.565, "KTI+TSL+Center": 0.63,
}  # fmt: skip
AUDITED = {
    "linkage": 0.9, "linkage_labels": 0.1, "open_world_linkage": 0.5, "reidentification": 0.8,
    "reidentification_labels": 0.1, "r2c": 0.6, "membership_auc": 0.95, "map_membership_auc": 0.85,
    "zero_leak_reidentification": 0.7,
}  # fmt: skip
VERSIONS = {"numpy": "2.4.0", "python": "3.13.1"}


def noise(*key):
    """A number that only depends on the key."""
    return np.random.default_rng(zlib.crc32(repr(key).encode())).normal()


def row(experiment, condition, name, seed, *, kind="method", error=None, **scores):
    cell = f"{zlib.crc32(repr((condition, name)).encode()):08x}"
    return Row(
        experiment=experiment, condition=condition, kind=kind, name=name, seed=seed, cell=cell, scores=scores,
        error=error, versions=VERSIONS, commit="0123abc",
    )  # fmt: skip


def scored(experiment, condition, names, seeds, measure="accuracy", gain=0.0):
    for name, seed in product(names, range(seeds)):
        value = LEVELS.get(name, 0.5) + gain + 0.01 * noise(condition, name, seed)
        made = row(experiment, condition, name, seed, **{measure: 30 * (1 - value) if measure == "rmse" else value})
        if experiment == "rq3":
            kernel = name.startswith("KTI")
            times = {"construct": 1e-9 * condition.n_anchors ** (2.8 if kernel else 1.1) * (1 if kernel else 50)}
            times["represent"] = 1e-6 * (condition.n_anchors if kernel else 20)
            made = replace(made, seconds={key: time * (1 + 0.05 * noise(name, seed)) for key, time in times.items()})
        yield made


def all_rows(seeds=3, datasets=("mnist", "fashion-mnist"), regression=("ujiindoorloc", "slice-localization")):
    rows = {name: [] for name in ("rq1", "rq2", "rq3", "rq4", "regression", "slice")}
    for dataset, preset in product(datasets, PRESETS):
        common = Condition(dataset=dataset, hyperparameters=preset)
        for n_parties in (2, 4, 8, 16, 32, 64):
            condition = Condition(dataset=dataset, hyperparameters=preset, n_parties=n_parties)
            gain = 0.02 * np.log2(n_parties)
            rows["rq1"] += scored("rq1", condition, (*BASELINES, *LINEAR, "KTI"), seeds, gain=gain)
            rows["rq2"] += scored("rq2", condition, EXTENDED, seeds, gain=gain)
        sizes = [(size, 100) for size in (100, 200, 400, 800, 1600)] + [(1000, n) for n in (10, 30, 100, 300, 1000)]
        for n_anchors, n_sources in sizes:
            condition = replace(common, n_anchors=n_anchors, n_sources=n_sources)
            gain = 0.02 * np.log2(n_anchors / 100) + 0.05 * np.log10(n_sources / 100)
            rows["rq3"] += scored("rq3", condition, (*LINEAR, "KTI", "KTI+TSL"), seeds, gain=gain)
        for kind, n_components in product(("pca", "kernel-pca", "umap"), (4, 16, 64)):
            condition = replace(common, obfuscator=kind, n_components=n_components, n_sources=None)
            gain = 0.08 * np.log2(n_components / 4) / 2 - (0.15 if kind == "umap" else 0)
            methods = (*BASELINES, "LTI", "KTI", "KTI+TSL", "KTI+TSL+Center")
            rows["rq4"] += scored("rq4", condition, methods, seeds, gain=gain)
            rows["rq4"] += attacks(condition, seeds)
    for dataset, kind, preset in product(regression, ("pca", "kernel-pca", "umap"), PRESETS):
        name = "slice" if dataset == "slice-localization" else "regression"
        size = {"n_parties": 5, "n_per_party": 20} if name == "slice" else {}
        condition = Condition(dataset=dataset, obfuscator=kind, hyperparameters=preset, **size)
        rows[name] += scored(name, condition, (*BASELINES, *METHODS), seeds, "rmse")
    return {name: part for name, part in rows.items() if part}


def attacks(condition, seeds):
    strength = {"pca": 0.2, "kernel-pca": 0.1, "umap": 0.0}[condition.obfuscator] * np.log2(condition.n_components) / 2
    for name, seed in product(("LR", "MLP", "PINV"), range(seeds)):
        bonus = {"LR": 0.02, "MLP": 0.0, "PINV": 0.03 if condition.obfuscator == "pca" else -0.02}[name]
        yield row(
            "rq4", condition, name, seed, kind="attack",
            reconstruction_accuracy=0.15 + strength + bonus + 0.005 * noise(condition, name, seed),
            most_common_share=0.9 - strength + 0.01 * noise(name, seed),
            mean_image_accuracy=0.143, original_accuracy=0.9 + 0.002 * noise(seed),
        )  # fmt: skip


def risks(experiment, conditions, seeds, measure="accuracy", names=("LR", "PINV")):
    """Rows of an experiment with the audit: a defence takes away most of what it finds."""
    for condition in conditions:
        yield from scored(experiment, condition, ("Local", "LTI", "KTI+TSL+Center"), seeds, measure)
        level = 1.0 if condition.defence == "none" else 0.2
        for name, seed in product(names, range(seeds)):
            value = {"LR": 0.3, "PINV": 0.5}[name] + 0.01 * noise(condition, name, seed)
            scores = {"reconstruction_accuracy": value, "most_common_share": 0.4}
            yield row(experiment, condition, name, seed, kind="attack", **scores)
        for seed in range(seeds):
            scores = {key: share * level + 0.01 * noise(condition, key, seed) for key, share in AUDITED.items()}
            yield row(experiment, condition, "audit", seed, kind="attack", **scores)


def failed(rows, choose):
    """The same rows, those that `choose` picks failed."""
    return [
        replace(row, scores={}, seconds={}, error="NumericalError: the pencil is singular; raise alpha.")
        if choose(row)
        else row
        for row in rows
    ]
