"""Utility against risk: accuracy of ten parties with KTI, and linkage at one of them, for every defence and strength.

The condition is that of privacy_audit.py, with PCA or UMAP (row-wise) of 16 columns; accuracy that of KTI with a
target graph, centring and a random forest; linkage that of the fixed attack with all anchors leaked, and membership
that from f alone.  Intervals are not given: the spread over seeds stands beside the means.

    python benchmarks/defences.py [--data-dir DIR] [--seeds 0 1 2] [--obfuscators pca umap] [--output DIR]

Prints a table and writes a figure.  About five minutes for each obfuscator and seed on two cores.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from measuring import markdown
from mnist_parties import Array, load_table
from numpy.typing import NDArray
from privacy_audit import (
    Draw,
    Rows,
    View,
    by_fixed,
    collaboration_accuracy,
    draw,
    label_means,
    leaks,
    linkage,
    membership_of_map,
    reidentification,
)

import datacollab as dc
from datacollab.errors import DataCollabWarning
from datacollab.party import ClassShift, Defence, GaussianMechanism, GaussianNoise, Microaggregation

FAMILIES: dict[str, list[tuple[str, Sequence[Defence], bool]]] = {
    "none": [("", (), False)],
    "f on public rows": [("", (), True)],
    "noise": [(f"{scale} sd", (GaussianNoise(scale),), False) for scale in (0.5, 1.0, 1.5)],
    "microaggregation": [(f"k={k}", (Microaggregation(k),), False) for k in (3, 5, 10)],
    "f on public rows, microaggregation": [(f"k={k}", (Microaggregation(k),), True) for k in (3, 5, 10)],
    "f on public rows, class shift": [
        (f"epsilon={epsilon}", (ClassShift(float(epsilon)),), True) for epsilon in (1, 4, 8)
    ],
    "f on public rows, Gaussian mechanism": [
        (f"epsilon={epsilon}", (GaussianMechanism(float(epsilon)),), True) for epsilon in (16, 64)
    ],
}
MARKERS = dict(zip(FAMILIES, "o*sD^Pv", strict=True))
N_COMPONENTS = 16
N_PUBLIC = 1000


@dataclass(frozen=True)
class Point:
    """One defence at one strength, with a figure for every seed."""

    obfuscator: str
    family: str
    strength: str
    accuracy: tuple[float, ...]
    linkage: tuple[float, ...]
    reidentification: tuple[float, ...]
    membership: tuple[float, ...]

    def cells(self) -> list[str]:
        figures = (self.accuracy, self.linkage, self.reidentification, self.membership)
        shown = [f"{np.mean(values):.3f} ({min(values):.2f} to {max(values):.2f})" for values in figures]
        return [self.obfuscator, f"{self.family} {self.strength}".strip(), *shown]


def assess(
    X: Array,
    y: NDArray[np.int64],
    seeds: Sequence[int],
    kind: str,
    family: str,
    option: tuple[str, Sequence[Defence], bool],
) -> Point:
    strength, defences, on_public = option
    figures = []
    for seed in seeds:

        def make(name: str, public: Array, seed: int) -> dc.Party:
            random = np.random.RandomState([seed, sum(map(ord, name))])
            f = dc.obfuscator(kind, n_components=N_COMPONENTS, **({} if on_public else {"random_state": random}))
            return dc.Party(name, f, fit_on=public if on_public else None, defences=defences, random_state=random)

        accuracy = collaboration_accuracy(X, y, seed, make)
        drawn = draw(X, y, seed)
        party = make("attacked", drawn.public.X[:N_PUBLIC], seed).fit(drawn.own.X, drawn.own.y)
        share, order = party.share_with_order(drawn.anchor.X, drawn.anchor.y)
        own = Rows(drawn.own.X[order], drawn.own.y[order])
        seen, view = Draw(seed, own, drawn.anchor, drawn.public, drawn.outsiders), View.of_share(share)
        guesses = by_fixed(seen, view, leaks(drawn)["all"])
        figures.append(
            (accuracy, linkage(seen, guesses), reidentification(seen, guesses), membership_of_map(seen, view))
        )
    return Point(kind, family, strength, *map(tuple, zip(*figures, strict=True)))


def drawn_figure(points: Sequence[Point], labels_alone: float) -> Figure:
    """Accuracy against linkage, one panel an obfuscator."""
    kinds = list(dict.fromkeys(point.obfuscator for point in points))
    figure = Figure(figsize=(2.6 + 4.6 * len(kinds), 5.0), layout="constrained")
    for axes, kind in zip(figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0], kinds, strict=True):
        for family, marker in MARKERS.items():
            chosen = [point for point in points if (point.obfuscator, point.family) == (kind, family)]
            places = [(float(np.mean(point.linkage)), float(np.mean(point.accuracy))) for point in chosen]
            if not places:
                continue
            axes.plot(*zip(*places, strict=True), marker=marker, linewidth=1, label=family)
            # One family writes above its marks, the next below, where they come close.
            above = list(MARKERS).index(family) % 2 == 0
            for point, place in zip(chosen, places, strict=True):
                offset = (5, 5 if above else -11)
                axes.annotate(point.strength, place, xytext=offset, textcoords="offset points", fontsize=8)
        axes.axvline(labels_alone, color="0.4", linestyle=":", linewidth=1, label="linkage by labels alone")
        axes.set(title=kind, xlabel="linkage, all anchors leaked", xlim=(0, 1.05))
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3, linewidth=0.6)
    figure.axes[0].set_ylabel("accuracy, KTI+TSL+Center")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=1 + len(kinds), frameon=False, fontsize=9)
    return figure


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="directory that holds MNIST; ../shared/data where it is there")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--obfuscators", nargs="+", default=["pca", "umap"])
    parser.add_argument("--output", type=Path, default=Path("output/benchmarks/defences"))
    options: Any = parser.parse_args(arguments)
    warnings.simplefilter("ignore", DataCollabWarning)
    X, y = load_table("mnist", options.data_dir)
    points = []
    for kind in options.obfuscators:
        for family, strengths in FAMILIES.items():
            for option in strengths:
                print(kind, family, option[0], file=sys.stderr, flush=True)
                points.append(assess(X, y, options.seeds, kind, family, option))
    alone = float(np.mean([linkage(drawn, label_means(drawn)) for drawn in (draw(X, y, s) for s in options.seeds)]))
    options.output.mkdir(parents=True, exist_ok=True)
    drawn_figure(points, alone).savefig(options.output / "utility-risk.png", dpi=110)
    head = ["f", "defence", "accuracy", "linkage", "re-identification", "membership AUC from f"]
    table = markdown(head, [point.cells() for point in points])
    (options.output / "utility-risk.md").write_text(table + "\n", encoding="utf-8")
    print(f"Means, and the range over {len(options.seeds)} seeds; labels alone link {alone:.3f}.\n\n{table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
