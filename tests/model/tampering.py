"""What a malicious analyst could do to a model file: everything, for whoever signs can hash again."""

import json
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
from model_examples import CLASSIFIERS, N_INTERMEDIATE, REGRESSORS, ROW_CARRIERS, bundle_of_objects, fitted, targets
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

from datacollab.errors import ExchangeError
from datacollab.model import model_from
from datacollab.model._skops_archive import Archive, read_archive, write_archive
from datacollab.model.isolated import _process

_process.MOST_SECONDS = 60

NEW_ROWS = np.random.default_rng(1).normal(size=(5, N_INTERMEDIATE))
WORDS = [0, 1, -1, 2, 7, 2**31, 2**40, -(2**62), 2**63 - 1]


def archive_of(bundle):
    """The outline and arrays of its estimator, both free to be changed."""
    archive = read_archive(bundle.members["h.skops"])
    return json.loads(json.dumps(archive.outline)), {name: array.copy() for name, array in archive.arrays.items()}


def with_archive(bundle, outline, arrays):
    """The bundle as the analyst would hash and sign it again."""
    data = write_archive(Archive(outline=outline, arrays=arrays))
    return replace(bundle, members=bundle.members | {"h.skops": data})


def outcome(bundle):
    """Of loading it and predicting: "loaded", or the code of the refusal.  Everything else is let through."""
    try:
        model_from(bundle, objects=True).predict(NEW_ROWS)
    except ExchangeError as error:
        return error.code
    return "loaded"


def nodes_of(outline, loader):
    """All nodes of a kind in an outline."""
    if isinstance(outline, dict):
        if outline.get("__loader__") == loader:
            yield outline
        for value in outline.values():
            yield from nodes_of(value, loader)
    elif isinstance(outline, list):
        for value in outline:
            yield from nodes_of(value, loader)


def mutate_array(array, generator):
    """Flip a bit, or write a telling number, somewhere in an array."""
    raw = bytearray(array.tobytes())
    if not raw:
        return array
    if generator.random() < 0.5:
        raw[generator.integers(len(raw))] ^= 1 << int(generator.integers(8))
    else:
        start = int(generator.integers(max(1, len(raw) // 8))) * 8
        if generator.random() < 0.2:
            word = np.float64([np.nan, np.inf, -np.inf, 1e308][generator.integers(4)]).tobytes()
        else:
            word = np.int64(WORDS[generator.integers(len(WORDS))]).tobytes()
        raw[start : start + 8] = word[: len(raw) - start]
    return np.frombuffer(bytes(raw), array.dtype).reshape(array.shape)


def mutate_json(outline, generator):
    """Change a number or a text that skops would take as the value of an attribute."""
    nodes = list(nodes_of(outline, "JsonNode"))
    values = ["null", "true", "-1", "0", "3", "1000000000", "1e400", '"poly"', '"precomputed"', "[]", "{", "NaN"]
    nodes[generator.integers(len(nodes))]["content"] = values[generator.integers(len(values))]


def reshape_array(arrays, generator):
    """Cut an array, or give it another type."""
    name = sorted(arrays)[generator.integers(len(arrays))]
    array = arrays[name]
    kinds = [lambda a: a[:-1], lambda a: np.concatenate([a, a]), lambda a: a.astype("f4"), lambda a: a[..., None]]
    try:
        arrays[name] = np.asarray(kinds[generator.integers(4)](array))
    except (IndexError, TypeError, ValueError):
        return


MODELS = {
    "forest": lambda: fitted(RandomForestClassifier(1, max_depth=3, random_state=0)),
    "regression forest": lambda: fitted(
        RandomForestRegressor(1, max_depth=3, random_state=0), y=targets(regression=True)
    ),
    "gradient boosting": lambda: fitted(GradientBoostingClassifier(n_estimators=1, max_depth=2, random_state=0)),
    "histogram boosting": lambda: fitted(HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=9)),
    "network": lambda: fitted(clone(CLASSIFIERS["network by lbfgs"])),
    "logistic": lambda: fitted(clone(CLASSIFIERS["logistic"])),
    "ridge": lambda: fitted(clone(REGRESSORS["ridge"]), y=targets(regression=True)),
    "bagging": lambda: fitted(clone(CLASSIFIERS["bagging"])),
    "svc": lambda: fitted(clone(ROW_CARRIERS["svc"])),
    "k-nn": lambda: fitted(clone(ROW_CARRIERS["k-nn"])),
    "k-nn by brute force": lambda: fitted(clone(ROW_CARRIERS["k-nn by brute force"])),
    "radius": lambda: fitted(clone(ROW_CARRIERS["nearest in a radius"])),
}


def fuzz(names, n_times, seed):
    """Mutate each of the models many times, and count what comes of it."""
    generator = np.random.default_rng(seed)
    counts = Counter()
    for name in names:
        bundle = bundle_of_objects(MODELS[name]())
        for _ in range(n_times):
            outline, arrays = archive_of(bundle)
            what = generator.random()
            if what < 0.7:
                chosen = sorted(arrays)[generator.integers(len(arrays))]
                arrays[chosen] = mutate_array(arrays[chosen], generator)
            elif what < 0.85:
                mutate_json(outline, generator)
            else:
                reshape_array(arrays, generator)
            counts[outcome(with_archive(bundle, outline, arrays))] += 1
    return counts


if __name__ == "__main__":
    n_times, seed, *names = sys.argv[1:]
    print(json.dumps(fuzz(names, int(n_times), int(seed))))  # noqa: T201
