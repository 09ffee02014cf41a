"""How near readings of the paper's protocol come to its published figures.

``python -m datacollab_experiments.readings.protocol central --data-dir DIR --seeds 5``
    Central with 2 and 64 parties: rows dealt out at random, half of the rows, and a mix of classes for each party.
``python -m datacollab_experiments.readings.protocol lti --data-dir DIR --seeds 5``
    LTI in RQ4 under PCA and kernel PCA: half of the rows, labels 3 to 9 only, both, and a mix of classes.
``python -m datacollab_experiments.readings.protocol attack --data-dir DIR --seeds 5``
    Reconstruction under PCA and kernel PCA of one further party of 1,000 rows, for both widths of kernel PCA.
``python -m datacollab_experiments.readings.protocol scale --data-dir DIR --seeds 2``
    RQ4 under PCA: γ of 1 and of 1/2, representations standardised by their anchors, and a forest on raw columns.
``python -m datacollab_experiments.readings.protocol cells output/protocol docs/results``
    Accuracies and reconstruction of RQ4 in results of ``datacollab experiment run``, or in a folder with ``rows.csv``.

The settings are those of ``datacollab_experiments.paper.Condition``; ``protocol.toml`` is a definition
with the reading of the preset ``paper``.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from datacollab.analyst import KTI, LTI, BaseIntegrator, TargetSimilarityGraph
from datacollab.datasets import load

from ..claims import find_published, interval
from ..paper import Attacks, Condition, Trial, draw_trial, read_results, score_method
from ..paper._attack import make_target, score_attack
from ..paper._trial import draw_rows

DATASETS = ("mnist", "fashion-mnist")
CENTRAL, INTEGRATION, TRADE_OFF = "fig:num-existing", "tab:rq4-integration-accuracy-wide", "tab:rq4-tradeoff-main-wide"
_SKEWED: dict[str, dict[str, Any]] = {
    f"label-skew {c:g}": {"split": "label-skew", "concentration": c} for c in (1.0, 1.5, 2.0)
}

_SCALES = ((1.0, False, False), (0.5, False, False), (0.5, False, True), (1.0, True, False))
"""Gamma, whether the anchors standardise representations, and whether the forest takes columns as they are."""


def central(datasets: Mapping[str, Any], seeds: Sequence[int], parties: Sequence[int]) -> None:
    """Print Central's accuracy under each reading beside the published one."""
    readings: dict[str, dict[str, Any]] = {"iid": {}, "half of the rows": {"n_per_party": 50}, **_SKEWED}
    for name, data in datasets.items():
        for n_parties in parties:
            printed = find_published(CENTRAL, dataset=name, name="Central", n_parties=n_parties)
            print(f"{name}, K = {n_parties}: published {printed.mean if printed else float('nan'):.3f}")
            for reading, settings in readings.items():
                condition = Condition(dataset=name, n_parties=n_parties, n_test=max(1000, n_parties * 100), **settings)
                trials = (draw_rows(condition, data, seed) for seed in seeds)
                found = interval([score_method(t, "Central", condition, "classification").value for t in trials])
                print(f"    {reading:<20} {found.mean:.3f} ± {found.half_width:.3f}", flush=True)


def lti(datasets: Mapping[str, Any], seeds: Sequence[int]) -> None:
    """Print LTI's accuracies under each reading, cell by cell, and how far each is from the published ones."""
    away: dict[str, list[tuple[float, bool]]] = {}
    for name, data in datasets.items():
        for kind in ("pca", "kernel-pca"):
            for width in (4, 16, 64):
                condition = Condition(dataset=name, obfuscator=kind, n_components=width, n_sources=None)
                values: dict[str, list[float]] = {}
                for seed in seeds:
                    for reading, value in _lti_readings(draw_trial(condition, data, seed)).items():
                        values.setdefault(reading, []).append(value)
                    for reading, settings in _SKEWED.items():
                        skewed = replace(condition, kernel_width="median", **settings)
                        score = score_method(draw_trial(skewed, data, seed), "LTI", skewed, "classification")
                        values.setdefault(reading, []).append(score.value)
                where = {"dataset": name, "obfuscator": kind, "n_components": width}
                _print_cell(INTEGRATION, where, "LTI", values, away)
    _print_distances(away)


def attack(datasets: Mapping[str, Any], seeds: Sequence[int]) -> None:
    """Print the reconstruction accuracy of the stronger of LR and PINV for a party of 1,000 rows, cell by cell."""
    attacks = Attacks(names=("LR", "PINV"), n_attacked=1000)
    away: dict[str, list[tuple[float, bool]]] = {}
    for name, data in datasets.items():
        for kind, kernel_widths in (("pca", ("median",)), ("kernel-pca", ("median", "median-squared"))):
            for width in (4, 16, 64):
                values: dict[str, list[float]] = {}
                for kernel_width in kernel_widths:
                    condition = Condition(
                        dataset=name, obfuscator=kind, n_components=width, n_sources=None, kernel_width=kernel_width,
                        split="label-skew",
                    )  # fmt: skip
                    found: dict[str, list[float]] = {attack: [] for attack in attacks.names}
                    for seed in seeds:
                        rows = draw_rows(condition, data, seed)
                        trial = replace(rows, anchor=rows.X_public, anchor_target=rows.y_public)
                        target = make_target(trial, attacks, data, condition)
                        for each in attacks.names:
                            scores = score_attack(trial, target, each).scores
                            found[each].append(scores["reconstruction_accuracy"])
                    strongest = max(found.values(), key=np.mean)
                    values[f"{kind}, {kernel_width}" if kind == "kernel-pca" else kind] = strongest
                where = {"dataset": name, "obfuscator": kind, "n_components": width}
                _print_cell(TRADE_OFF, where, "reconstruction", values, away)
    _print_distances(away)


def scale(datasets: Mapping[str, Any], seeds: Sequence[int], concentration: float = 2.0) -> None:
    """Print LTI, KTI and KTI+TSL under PCA for readings of the scale of representations and of the kernel's width."""
    graph = TargetSimilarityGraph(10)
    away: dict[str, list[tuple[float, bool]]] = {}
    for name, data in datasets.items():
        for width in (4, 16, 64):
            condition = Condition(
                dataset=name, obfuscator="pca", n_components=width, n_sources=None, split="label-skew",
                concentration=concentration,
            )  # fmt: skip
            found: dict[str, dict[str, list[float]]] = {"LTI": {}, "KTI": {}, "KTI+TSL": {}}
            for seed in seeds:
                trial = draw_trial(condition, data, seed)
                for gamma, by_anchors, raw in _SCALES:
                    reading = f"gamma {gamma:g}" + ", by anchors" * by_anchors + ", raw columns" * raw
                    for method, integrator in {
                        "LTI": LTI(n_components=width),
                        "KTI": KTI(n_components=width, gamma=gamma, alpha=1.0),
                        "KTI+TSL": KTI(n_components=width, gamma=gamma, alpha=1.0, graph=graph),
                    }.items():
                        value = _scaled_accuracy(trial, integrator, by_anchors=by_anchors, raw=raw)
                        found[method].setdefault(f"{method}, {reading}", []).append(value)
            for method, values in found.items():
                where = {"dataset": name, "obfuscator": "pca", "n_components": width}
                _print_cell(INTEGRATION, where, method, values, away)
    _print_distances(away)


def _scaled_accuracy(trial: Trial, integrator: BaseIntegrator, *, by_anchors: bool, raw: bool) -> float:
    """Accuracy with representations that each party's anchor representations standardise, or as they are."""
    scalers = {s.party: StandardScaler().fit(s.anchor_representation) for s in trial.shares} if by_anchors else {}

    def scaled(party: Any, rows: Any) -> Any:
        return scalers[party].transform(rows) if scalers else rows

    integrator.fit(
        {s.party: scaled(s.party, s.anchor_representation) for s in trial.shares}, trial.shares[0].anchor_target
    )
    own = integrator.transform({s.party: scaled(s.party, s.representation) for s in trial.shares})
    forest = RandomForestClassifier(random_state=trial.seed)
    model = forest if raw else make_pipeline(StandardScaler(), forest)
    model.fit(np.vstack(list(own.values())), np.concatenate([s.target for s in trial.shares]))
    tested = integrator.transform({p: scaled(p, rows) for p, rows in trial.test_representations.items()})
    return accuracy_on(model, tested, trial.y_test)


def accuracy_on(
    model: Any, represented: Mapping[Any, Any], y: Any, counts: Callable[[Any], Any] = lambda y: np.isfinite(y)
) -> float:
    """Mean over parties of the accuracy on those test rows whose label counts."""
    kept = counts(np.asarray(y))
    return float(np.mean([np.mean(model.predict(rows[kept]) == y[kept]) for rows in represented.values()]))


def half_of(n_rows: int, seed: int) -> Any:
    """Numbers of a random half of the rows."""
    return np.random.RandomState(seed).permutation(n_rows)[: n_rows // 2]


def _lti_readings(trial: Trial) -> dict[str, float]:
    integrator = LTI(n_components=trial.shares[0].representation.shape[1])
    integrator.fit({share.party: share.anchor_representation for share in trial.shares})
    own = np.vstack(list(integrator.transform({s.party: s.representation for s in trial.shares}).values()))
    y = np.concatenate([share.target for share in trial.shares])
    scaler = StandardScaler().fit(own)
    represented = {p: scaler.transform(x) for p, x in integrator.transform(trial.test_representations).items()}
    found = {}
    for rows, prefix in ((np.arange(len(y)), "all rows"), (half_of(len(y), trial.seed), "half of the rows")):
        model = RandomForestClassifier(random_state=trial.seed).fit(scaler.transform(own[rows]), y[rows])
        found[prefix] = accuracy_on(model, represented, trial.y_test)
        found[f"{prefix}, labels 3-9"] = accuracy_on(model, represented, trial.y_test, lambda y: y >= 3)
    return found


def cells(folders: Sequence[Path]) -> None:
    """Print every accuracy and reconstruction of RQ4 that the results hold, and how far they are from the paper's."""
    for folder in folders:
        print(f"\n{folder}")
        away: dict[str, list[tuple[float, bool]]] = {}
        for (where, name), values in _scores(folder).items():
            table = TRADE_OFF if name == "reconstruction" else INTEGRATION
            _print_cell(table, dict(where), name, {f"{name}, {dict(where)['obfuscator']}": values}, away)
        _print_distances(away)


def _scores(folder: Path) -> dict[tuple[tuple[tuple[str, Any], ...], str], list[float]]:
    """Scores by cell, those of the strongest attack for reconstruction; the paper's hyperparameters only."""
    if (folder / "rows.csv").is_file():
        with (folder / "rows.csv").open(encoding="utf-8", newline="") as file:
            rows = [line for line in csv.DictReader(file) if line["experiment"] in ("rq4", "protocol")]
    else:
        rows = [
            {**row.condition.as_dict(), "kind": row.kind, "name": row.name, **row.scores}
            for part in read_results(folder).rows.values()
            for row in part
            if row.error is None
        ]
    found: dict[Any, list[float]] = {}
    for row in rows:
        measure = "accuracy" if row["kind"] == "method" else "reconstruction_accuracy"
        if row["hyperparameters"] == "paper" and row.get(measure):
            where = (row["dataset"], row["obfuscator"], int(row["n_components"]))
            found.setdefault((where, row["kind"], row["name"]), []).append(float(row[measure]))
    scores: dict[Any, list[float]] = {}
    for (where, kind, name), values in sorted(found.items()):
        key = tuple(zip(("dataset", "obfuscator", "n_components"), where, strict=True))
        if kind == "method":
            scores[key, name] = values
        elif np.mean(values) > np.mean(scores.get((key, "reconstruction"), [-1])):
            scores[key, "reconstruction"] = values
    return scores


def _print_cell(
    table: str, where: Mapping[str, Any], name: str, values: Mapping[str, Sequence[float]], away: dict[str, Any]
) -> None:
    # A variant's name goes on after a comma.
    printed = find_published(table, name=name.partition(",")[0], **where)
    if printed is None:
        return
    texts = []
    for reading, of_seeds in values.items():
        found = interval(of_seeds)
        half_width = found.half_width if len(of_seeds) > 1 else 0.0
        difference = found.mean - printed.mean
        inside = abs(difference) <= (printed.half_width or 0.0) + half_width
        away.setdefault(reading, []).append((abs(difference), inside))
        texts.append(f"{reading} {found.mean:.3f} ± {half_width:.3f} ({len(of_seeds)})")
    print(f"{' '.join(map(str, where.values()))}: published {printed.mean:.3f}; {'; '.join(texts)}", flush=True)


def _print_distances(away: Mapping[str, Sequence[tuple[float, bool]]]) -> None:
    for reading, found in away.items():
        differences, inside = zip(*found, strict=True)
        print(
            f"{reading}: mean absolute difference {np.mean(differences):.3f}, {sum(inside)} of {len(inside)} inside "
            "the published interval ± ours"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("central", "lti", "attack", "scale", "cells"))
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--data-dir", type=Path, default=None)
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--parties", nargs="+", type=int, default=(2, 64))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--concentration", type=float, default=2.0, help="of `scale`")
    given = parser.parse_args(arguments)
    if given.what == "cells":
        cells(given.folders)
        return
    datasets = {name: load(name, data_dir=given.data_dir) for name in given.datasets}
    if given.what == "central":
        central(datasets, range(given.seeds), given.parties)
    elif given.what == "attack":
        attack(datasets, range(given.seeds))
    elif given.what == "scale":
        scale(datasets, range(given.seeds), given.concentration)
    else:
        lti(datasets, range(given.seeds))


if __name__ == "__main__":
    main()
