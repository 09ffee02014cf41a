"""The comparison as one Markdown table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from draws import N_PARTIES, N_PUBLIC, SPLITS

_HEADINGS = (
    "method", "model", "public rows", "rounds", "moved, MB", "anchor, MB", "seconds", "accuracy, IID",
    "accuracy, label-skewed",
)  # fmt: skip

_N_PIXELS = 784
_ANCHOR_BYTES = N_PARTIES * N_PUBLIC * _N_PIXELS
"""Of 1,000 anchors at every party, a byte a pixel as MNIST has them."""

_PUBLIC = {"labelled": "1,000 with classes", "rows": "1,000 without", "smote": "100 with classes, SMOTE"}


@dataclass(frozen=True)
class Line:
    """What one line of the table shows.

    Attributes
    ----------
    key : str
        Of the measurements.
    method, model, public, rounds : str
    has_anchor : bool
        Whether all parties need the anchor beforehand.
    """

    key: str
    method: str
    model: str
    public: str
    rounds: str
    has_anchor: bool = False


def render(results: dict[str, Any]) -> str:
    """Markdown with one line per method, model and number of rounds; means over draws, and their deviations."""
    measured = results["measured"]
    lines = [_row(line, measured) for line in _lines(list(measured[SPLITS[0]][0]))]
    rule = ["---", "---", "---", *["---:"] * (len(_HEADINGS) - 3)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in (_HEADINGS, rule, *lines))
    n_seeds = len(measured[SPLITS[0]])
    return (
        f"{table}\n\nMeans over {n_seeds} draws, ± the standard deviation over them. Largest difference between "
        "Flower's accuracies and those of a plain loop in one job: "
        f"{results['largest_difference_from_loop']:.4f}.\n"
    )


def _lines(keys: Sequence[str]) -> list[Line]:
    lines = [_line(*key.rsplit("/", 1)) for key in keys]
    order = ("Local", "Local+Public", "FedAvg", "FedAvg+Public")
    collaborations = [line.key for line in lines if line.has_anchor]

    def position(line: Line) -> tuple[int, int]:
        name, last = line.key.rsplit("/", 1)
        if line.has_anchor:
            return len(order), collaborations.index(line.key)
        return (order.index(name), int(last) if last.isdigit() else 0) if name in order else (len(order) + 1, 0)

    return sorted(lines, key=position)


def _line(name: str, last: str) -> Line:
    key = f"{name}/{last}"
    if name.startswith("FedAvg"):
        public = _PUBLIC["labelled"] if name.endswith("+Public") else "none"
        title = "FedAvg, start from public rows" if name.endswith("+Public") else "FedAvg"
        return Line(key, title, "MLP", public, last)
    if name.startswith("DC-"):
        _, obfuscator, n_components, integrator, public = name.split("-")
        title = f"DC, {obfuscator.upper()} {n_components}, {integrator}"
        return Line(key, title, last, _PUBLIC[public], "1", has_anchor=True)
    return Line(key, name, last, _PUBLIC["labelled"] if name.endswith("+Public") else "none", "0")


def _row(line: Line, measured: dict[str, list[dict[str, Any]]]) -> list[str]:
    first = [draw[line.key] for draw in measured[SPLITS[0]]]
    moved = [result["bytes"] for result in first if "bytes" in result]
    megabytes = f"{np.mean(moved) / 1e6:.1f}" if moved else ("all rows" if line.method.startswith("Central") else "0")
    return [
        line.method,
        line.model,
        line.public,
        line.rounds,
        megabytes,
        f"{_ANCHOR_BYTES / 1e6:.1f}" if line.has_anchor else "0",
        f"{np.mean([result['seconds'] for result in first]):.1f}",
        *(_accuracy([draw[line.key]["accuracy"] for draw in measured[split]]) for split in SPLITS),
    ]


def _accuracy(scores: Sequence[float]) -> str:
    mean = f"{np.mean(scores):.3f}"
    return f"{mean} ± {np.std(scores, ddof=1):.3f}" if len(scores) > 1 else mean
