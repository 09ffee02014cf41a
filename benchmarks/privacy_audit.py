"""What the attacks find on MNIST, and what the defences leave of it, beside what they must find.

For every seed one party of 100 rows is attacked, with 1,000 real anchor rows (100 of each digit), 5,000 other public
rows with labels, and 500 rows of nobody; 16 columns unless said.  PCA works on raw pixels; before UMAP a party
standardises its pixels; 10 neighbours, min_dist 0.4, the metric cosine, euclidean or correlation by the seed.  "fixed"
is the mean of what kernel ridge regression and the label-informed emulator reconstruct; "strongest" the most that
these, linear regression and label-informed kernel ridge regression reach.  Beside UMAP as umap-learn applies it to new
rows stands the row-wise rule.

    python benchmarks/privacy_audit.py [--data-dir DIR] [--seeds 0 1 2] [--output FILE]

Prints a table, and exits with 1 where a figure is out of its range.  About ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import machine, markdown
from mnist_parties import load_table
from numpy.typing import NDArray
from scipy.stats import ortho_group
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import datacollab as dc
from datacollab.errors import DataCollabWarning
from datacollab.party import Microaggregation, UMAPObfuscator, gaussian_sigma
from datacollab.risk.attacks import (
    EmulatorAttack,
    KernelRidgeAttack,
    LinearRegressionAttack,
    ProcrustesAttack,
    ReconstructionAttack,
    class_means,
    explained,
    linked,
    membership,
    nearest_ranks,
    one_run_epsilon,
    reconstruction_distance_scores,
    representation_distance_scores,
    subspace_scores,
)
from datacollab.risk.audit import audit

Array = NDArray[np.float64]
METRICS = ("cosine", "euclidean", "correlation")
SIGMAS = {0.5: 7.032, 1: 3.731, 2: 1.994, 4: 1.081, 8: 0.600, 16: 0.344, 64: 0.127}
"""Noise of the analytic Gaussian mechanism for sensitivity 1, delta 1e-5, by epsilon."""
ONE_RUN = {(1000, 1000): 5.782, (900, 1000): 2.021, (600, 1000): 0.297, (500, 1000): 0.0, (100, 100): 3.465}
"""Bound on epsilon by right guesses and guesses, of 1,000 canaries, delta 1e-5."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows and their labels."""

    X: Array
    y: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Draw:
    """One party and all other rows of a seed."""

    seed: int
    own: Rows
    anchor: Rows
    public: Rows
    outsiders: Rows


@dataclass(frozen=True)
class Check:
    """A figure, seed by seed, and the range that its mean, or each of them, must lie in."""

    name: str
    low: float
    high: float
    values: tuple[float, ...]
    beside: tuple[float, ...] = ()
    each: bool = False

    @property
    def holds(self) -> bool:
        judged = self.values if self.each else (float(np.mean(self.values)),)
        # A hundred rows: means are multiples of 1/300, which rounding must not decide on.
        return all(self.low - 1e-9 <= value <= self.high + 1e-9 for value in judged)

    @property
    def wanted(self) -> str:
        if self.low == -np.inf and self.high == np.inf:
            return "for comparison"
        if self.high == np.inf:
            return f">= {self.low:g}"
        if self.low == -np.inf:
            return f"<= {self.high:g}"
        return f"{self.low:g} to {self.high:g}" if self.low < self.high else f"{self.low:g}"

    def cells(self) -> list[str]:
        beside = f"{np.mean(self.beside):.3f}" if self.beside else ""
        seeds = ", ".join(f"{value:.3f}" for value in self.values) if len(self.values) > 1 else ""
        return [
            self.name,
            self.wanted + (", each" if self.each else ""),
            f"{np.mean(self.values):.3f}",
            seeds,
            beside,
            "yes" if self.holds else "**no**",
        ]


def draw(X: Array, y: NDArray[np.int64], seed: int) -> Draw:
    """A party with ten rows of each digit."""
    order = np.random.RandomState(seed).permutation(len(X))
    anchor = np.concatenate([order[y[order] == digit][:100] for digit in range(10)])
    own = np.concatenate([order[y[order] == digit][100:110] for digit in range(10)])
    rest = order[~np.isin(order, np.concatenate([anchor, own]))]
    parts = anchor, np.random.RandomState(seed).permutation(own), rest[:5000], rest[5000:5500]
    anchors, own, public, outsiders = (Rows(X[part], y[part]) for part in parts)
    return Draw(seed, own, anchors, public, outsiders)


def umap(seed: int, rule: str, n_components: int = 16) -> Any:
    metric = METRICS[seed % 3]
    random = np.random.RandomState(seed)
    return make_pipeline(
        StandardScaler(),
        UMAPObfuscator(
            n_components, n_neighbors=10, min_dist=0.4, metric=metric, out_of_sample=rule, random_state=random
        ),
    )


@dataclass(frozen=True, eq=False)
class View:
    """A party's representations."""

    Z: Array
    anchor: Array

    @classmethod
    def of(cls, f: Any, drawn: Draw) -> View:
        f.fit(drawn.own.X)
        return cls(f.transform(drawn.own.X), f.transform(drawn.anchor.X))

    @classmethod
    def of_share(cls, share: dc.Share) -> View:
        return cls(share.representation, share.anchor_representation)


def leaks(drawn: Draw) -> dict[str, NDArray[np.intp]]:
    random = np.random.RandomState(drawn.seed)
    n = len(drawn.anchor.y)
    return {
        "all": np.arange(n),
        "labels 0-2": np.flatnonzero(drawn.anchor.y <= 2),
        "30": random.choice(n, 30, replace=False),
    }


def by_linear_regression(drawn: Draw, view: View, rows: NDArray[np.intp]) -> Array:
    return LinearRegressionAttack().fit(view.anchor[rows], drawn.anchor.X[rows]).reconstruct(view.Z)


def by_kernel_ridge(drawn: Draw, view: View, rows: NDArray[np.intp]) -> Array:
    return KernelRidgeAttack().fit(view.anchor[rows], drawn.anchor.X[rows]).reconstruct(view.Z)


def with_labels(attack: ReconstructionAttack, drawn: Draw, view: View, rows: NDArray[np.intp]) -> Array:
    attack.fit(
        view.anchor[rows],
        drawn.anchor.X[rows],
        target=drawn.anchor.y[rows],
        public=drawn.public.X,
        public_target=drawn.public.y,
    )
    return attack.reconstruct(view.Z, target=drawn.own.y)


def by_emulator(drawn: Draw, view: View, rows: NDArray[np.intp]) -> Array:
    return with_labels(EmulatorAttack(), drawn, view, rows)


def by_fixed(drawn: Draw, view: View, rows: NDArray[np.intp]) -> Array:
    return (by_kernel_ridge(drawn, view, rows) + by_emulator(drawn, view, rows)) / 2


def strongest_linkage(drawn: Draw, view: View, rows: NDArray[np.intp]) -> float:
    """The most of linear regression, kernel ridge without and with labels, the emulator, and the fixed attack."""
    ridge, emulator = by_kernel_ridge(drawn, view, rows), by_emulator(drawn, view, rows)
    others = by_linear_regression(drawn, view, rows), with_labels(KernelRidgeAttack(), drawn, view, rows)
    return max(linkage(drawn, guesses) for guesses in (ridge, emulator, (ridge + emulator) / 2, *others))


def by_procrustes(drawn: Draw, view: View) -> Array:
    attack = ProcrustesAttack(random_state=drawn.seed).fit(
        view.Z,
        drawn.own.y,
        public=drawn.public.X,
        public_target=drawn.public.y,
        anchor_representation=view.anchor,
        anchor_target=drawn.anchor.y,
    )
    return attack.reconstruct(view.Z, target=drawn.own.y)


def linkage(drawn: Draw, reconstructions: Array) -> float:
    return float(linked(drawn.own.X, reconstructions, random_state=drawn.seed).mean())


def reidentification(drawn: Draw, reconstructions: Array) -> float:
    return float((nearest_ranks(drawn.own.X, reconstructions, random_state=drawn.seed) == 1).mean())


def label_means(drawn: Draw) -> Array:
    return class_means(drawn.public.X, drawn.public.y, drawn.own.y)


def membership_auc(drawn: Draw, view: View) -> float:
    """The larger of two: by distances between representations, and between reconstructions and rows."""
    people = np.vstack([drawn.own.X, drawn.outsiders.X])
    emulator = KernelRidgeAttack().fit(drawn.anchor.X, view.anchor)
    fixed = by_fixed(drawn, view, leaks(drawn)["all"])
    scores = (
        representation_distance_scores(people, view.Z, emulator.reconstruct),
        reconstruction_distance_scores(people, fixed, drawn.public.X),
    )
    n = len(drawn.own.X)
    return max(membership(score[:n], score[n:]).auc for score in scores)


def membership_of_map(drawn: Draw, view: View) -> float:
    """From the anchor and its representation alone."""
    people = np.vstack([drawn.own.X, drawn.outsiders.X])
    scores = subspace_scores(people, drawn.anchor.X, view.anchor, drawn.public.X)
    n = len(drawn.own.X)
    return membership(scores[:n], scores[n:]).auc


def largest_change(drawn: Draw, view: View) -> float:
    """Of what a secret rotation of the representation changes in linkage, re-identification and R2c."""
    rotation = ortho_group.rvs(view.Z.shape[1], random_state=drawn.seed)
    rotated = View(view.Z @ rotation, view.anchor @ rotation)
    rows = leaks(drawn)["all"]

    def figures(of: View) -> list[float]:
        guesses = KernelRidgeAttack(standardize=False).fit(of.anchor[rows], drawn.anchor.X[rows]).reconstruct(of.Z)
        fixed = (guesses + by_emulator(drawn, of, rows)) / 2
        return [f(drawn, fixed) for f in (linkage, reidentification)] + [
            explained(drawn.own.X, fixed, label_means(drawn))
        ]

    return float(np.max(np.abs(np.subtract(figures(view), figures(rotated)))))


def collaboration_accuracy(
    X: Array, y: NDArray[np.int64], seed: int, make: Callable[[str, Array, int], dc.Party]
) -> float:
    """Mean accuracy of ten parties with KTI, a target graph, centring and a random forest."""
    drawn = draw(X, y, seed)
    order = np.random.RandomState([seed, 1]).permutation(len(drawn.public.X) - 1000)
    rows, labels = drawn.public.X[1000:][order], drawn.public.y[1000:][order]
    parties = [
        make(f"party-{k}", drawn.public.X[:1000], seed).fit(rows[100 * k :][:100], labels[100 * k :][:100])
        for k in range(10)
    ]
    shares = [party.share(drawn.anchor.X, drawn.anchor.y) for party in parties]
    integrator = dc.KTI(16, graph=dc.TargetSimilarityGraph(), center=True, alpha=0.1)
    collaboration = dc.Analyst(integrator, RandomForestClassifier(random_state=seed)).fit(shares)
    test, truth = rows[1000:1400], labels[1000:1400]
    predictions = [party.predict(test, collaboration.party_model(party.name)) for party in parties]
    return float(np.mean([(predicted == truth).mean() for predicted in predictions]))


def undefended(name: str, public: Array, seed: int) -> dc.Party:
    return dc.Party(name, dc.obfuscator("pca", n_components=16), random_state=np.random.RandomState(seed))


def by_umap(name: str, public: Array, seed: int) -> dc.Party:
    return dc.Party(name, umap(int(name.rpartition("-")[2]), "umap"), random_state=np.random.RandomState(seed))


def private(name: str, public: Array, seed: int) -> dc.Party:
    f, defences = dc.obfuscator("pca", n_components=16), [Microaggregation(5)]
    return dc.Party(name, f, fit_on=public, defences=defences, random_state=np.random.RandomState(seed))


def checks(X: Array, y: NDArray[np.int64], seeds: list[int]) -> list[Check]:
    draws = [draw(X, y, seed) for seed in seeds]
    told("representations")
    pca = {d: [View.of(dc.obfuscator("pca", n_components=d), drawn) for drawn in draws] for d in (16, 64)}
    rules = {rule: [View.of(umap(drawn.seed, rule), drawn) for drawn in draws] for rule in ("umap", "row-wise")}

    def each(f: Callable[[Draw, View], float], views: list[View]) -> tuple[float, ...]:
        return tuple(f(drawn, view) for drawn, view in zip(draws, views, strict=True))

    def both(name: str, low: float, high: float, f: Callable[[Draw, View], float]) -> Check:
        told(name)
        return Check(name, low, high, each(f, rules["umap"]), each(f, rules["row-wise"]))

    def strongest(leak: str) -> Callable[[Draw, View], float]:
        return lambda drawn, view: strongest_linkage(drawn, view, leaks(drawn)[leak])

    def zero_leak(drawn: Draw, view: View) -> float:
        return reidentification(drawn, by_procrustes(drawn, view))

    result = [
        both("UMAP, all anchors leak: linkage, strongest", 0.95, np.inf, strongest("all")),
        both("UMAP, labels 0-2 leak: linkage, strongest", 0.50, np.inf, strongest("labels 0-2")),
        Check("labels alone: linkage", -np.inf, 0.15, tuple(linkage(drawn, label_means(drawn)) for drawn in draws)),
        both(
            "UMAP, all anchors leak: re-identification, kernel ridge",
            0.48,
            0.64,
            lambda drawn, view: reidentification(drawn, by_kernel_ridge(drawn, view, leaks(drawn)["all"])),
        ),
        both(
            "UMAP, all anchors leak: R2c, emulator + labels",
            0.25,
            0.35,
            lambda drawn, view: explained(
                drawn.own.X, by_emulator(drawn, view, leaks(drawn)["all"]), label_means(drawn)
            ),
        ),
    ]
    for leak in ("30", "labels 0-2", "all"):
        told(f"PCA, leak: {leak}")
        result.append(Check(f"PCA, {leak} leak: linkage, strongest", 1.0, 1.0, each(strongest(leak), pca[16])))
    for d, low in ((64, 0.95), (16, 0.5)):
        told(f"PCA {d}, no leak")
        result.append(
            Check(f"PCA {d}, nothing leaks: re-identification", low, np.inf, each(zero_leak, pca[d]), each=True)
        )
    told("membership")
    result += [
        Check("PCA, all anchors leak: membership AUC", 0.99, np.inf, each(membership_auc, pca[16])),
        both("UMAP, all anchors leak: membership AUC", 0.67, 0.83, membership_auc),
        Check("PCA, what a rotation changes at most", -np.inf, 0.01, each(largest_change, pca[16])),
    ]
    sigma = max(abs(gaussian_sigma(epsilon, 1e-5) - wanted) for epsilon, wanted in SIGMAS.items())
    bound = max(
        abs(one_run_epsilon(right, guesses, 1000, 1e-5) - wanted) for (right, guesses), wanted in ONE_RUN.items()
    )
    result += [
        Check("analytic Gaussian mechanism: sigma off by", -np.inf, 5e-4, (sigma,)),
        Check("one-run audit: epsilon off by", -np.inf, 5e-4, (bound,)),
    ]
    return result + defended(X, y, draws) + [suite_time(draws[0])]


def defended(X: Array, y: NDArray[np.int64], draws: list[Draw]) -> list[Check]:
    """The private preset: what it is worth to ten parties, and what is left to find."""
    accuracies = {}
    for name, make in {"private": private, "PCA": undefended, "UMAP": by_umap}.items():
        told(f"accuracy, {name}")
        accuracies[name] = tuple(collaboration_accuracy(X, y, drawn.seed, make) for drawn in draws)
    links, aucs = [], []
    for drawn in draws:
        party = private("party-0", drawn.public.X[:1000], drawn.seed).fit(drawn.own.X, drawn.own.y)
        share, order = party.share_with_order(drawn.anchor.X, drawn.anchor.y)
        own = Rows(drawn.own.X[order], drawn.own.y[order])
        seen = Draw(drawn.seed, own, drawn.anchor, drawn.public, drawn.outsiders)
        view = View.of_share(share)
        links.append(linkage(seen, by_fixed(seen, view, leaks(drawn)["all"])))
        aucs.append(membership_of_map(seen, view))
    return [
        Check("private preset: accuracy of KTI+TSL+Center", 0.74, np.inf, accuracies["private"]),
        Check("undefended PCA: accuracy", -np.inf, np.inf, accuracies["PCA"]),
        Check("undefended UMAP: accuracy", -np.inf, np.inf, accuracies["UMAP"]),
        Check("private preset, all anchors leak: linkage, fixed", -np.inf, 0.20, tuple(links)),
        Check("private preset: membership AUC from f", -np.inf, 0.58, tuple(aucs)),
    ]


def suite_time(drawn: Draw) -> Check:
    told("the audit, T0 to T2")
    party = undefended("party-0", drawn.public.X, drawn.seed).fit(drawn.own.X, drawn.own.y)
    start = time.perf_counter()
    audit(
        party,
        drawn.own.X,
        drawn.anchor.X,
        anchor_target=drawn.anchor.y,
        public=drawn.public.X,
        public_target=drawn.public.y,
        control=drawn.outsiders.X,
        control_target=drawn.outsiders.y,
        levels=("T0", "T1", "T2"),
        random_state=0,
    )
    return Check("audit of T0 to T2, seconds", -np.inf, 60.0, (time.perf_counter() - start,))


def told(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--output", type=Path, default=Path("output/benchmarks/privacy_audit.json"))
    options = parser.parse_args(arguments)
    # Fixed seeds are wanted here, and small classes are no news.
    warnings.simplefilter("ignore", DataCollabWarning)
    found = checks(*load_table("mnist", options.data_dir), options.seeds)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    rows = [{"check": one.name, "wanted": one.wanted, "values": one.values, "row-wise": one.beside} for one in found]
    options.output.write_text(json.dumps({"machine": machine(), "checks": rows}, indent=1) + "\n", encoding="utf-8")
    head = ["check", "wanted", "mean", "seeds", "row-wise UMAP", "holds"]
    print(markdown(head, [one.cells() for one in found]))
    return 0 if all(one.holds for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
