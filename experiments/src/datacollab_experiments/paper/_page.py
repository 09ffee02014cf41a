"""One self-contained HTML page with a comparison's table and pictures."""

from __future__ import annotations

import base64
import io
import math
from html import escape
from typing import TYPE_CHECKING

from ._comparison import Comparison
from ._methods import BASELINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["comparison_page", "verdicts"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; } th, td { padding: .3rem .9rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } tr.baseline td { color: #666; }
img { max-width: 100%; } .wide { overflow-x: auto; } .note { color: #555; font-size: .92rem; }
code { background: #f3f3f3; padding: 0 .25rem; overflow-wrap: anywhere; }
"""


def comparison_page(comparison: Comparison, figures: dict[str, Figure], command: str) -> str:
    """Write a comparison as one HTML page without outside references.

    Parameters
    ----------
    comparison : Comparison
    figures : dict of caption to matplotlib.figure.Figure
        Embedded as PNG.
    command : str
        What reproduces the page.

    Returns
    -------
    str
    """
    condition = comparison.condition
    anchors = (
        f"{condition.n_anchors} real rows"
        if condition.n_sources is None
        else f"{condition.n_anchors} rows, made by SMOTE from {condition.n_sources} real ones"
    )
    pictures = "".join(
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{_png(figure)}">'
        f'<figcaption class="note">{escape(caption)}</figcaption></figure>'
        for caption, figure in figures.items()
    )
    findings = "".join(f"<li>{escape(sentence)}</li>" for sentence in verdicts(comparison))
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>datacollab: {escape(condition.dataset)}</title>
<style>{_STYLE}</style></head><body>
<h1>What data collaboration buys on {escape(condition.dataset)}</h1>
<p>{condition.n_parties} parties hold {condition.n_per_party} rows each and may not pool them. Each obfuscates its
rows with <b>{escape(_obfuscation(comparison))}</b> ({condition.n_components} columns), together with a common anchor
({anchors}), and sends the result once. The analyst aligns the representations by the methods below and trains a
random forest on their standardised columns; each party then predicts {condition.n_test} common test rows through its
own obfuscator.</p>
<ul>{findings}</ul>
{_table(comparison)}
{pictures}
<h2>How to read this</h2>
<p class="note"><b>Local</b>: every party alone, on its own raw rows. <b>Local+Public</b>: the same, with the real
public rows that the anchor consists of or was made from, and their targets, added to each party's own; it shows what
these rows are worth by themselves, and is only possible where public rows have targets. <b>Central</b>: all raw rows of
the parties in one place, which is what privacy forbids. The {escape(comparison.measure)} is the mean over parties;
{_intervals(comparison)}, and <b>gain over Local</b> compares the methods on the same draws. The collaborating methods
use the anchor, and those with TSL its targets; Local and Central do not. {_hyperparameters(comparison)}
Times are wall times of integration, training and prediction on the machine at hand, without obfuscation.</p>
<p class="note">This page says nothing about privacy. The analyst sees targets as they are, and row-level
representations that an attacker with outside knowledge may link to persons or invert. Obfuscation is not differential
privacy.</p>
<p class="note">Reproduce with <code>{escape(command)}</code></p>
</body></html>
"""


def verdicts(comparison: Comparison) -> list[str]:
    """Say in words how the methods stand to Local and Central, claiming only what the intervals support."""
    collaborating = [name for name in comparison.methods if name not in BASELINES]
    sentences = []
    if "Local" in comparison.methods and collaborating:
        better = [name for name in collaborating if _is_clear(comparison.gain(name, "Local"))]
        worse = [name for name in collaborating if _is_clear(comparison.gain(name, "Local"), sign=-1)]
        open_ = [name for name in collaborating if name not in better and name not in worse]
        for names, verb in ((better, "better than Local"), (worse, "worse than Local")):
            if names:
                sentences.append(f"{_joined(names)}: {verb}, beyond chance at the 95 % level.")
        if open_:
            sentences.append(f"{_joined(open_)}: not told apart from Local by these trials.")
    if collaborating:
        sign = 1 if comparison.task == "classification" else -1
        best = max(collaborating, key=lambda name: sign * comparison.interval(name)[0])
        mean = comparison.interval(best)[0]
        sentence = f"Highest mean: {best}" if sign == 1 else f"Lowest mean: {best}"
        sentence += f", {comparison.measure} {_number(mean)}"
        if "Central" in comparison.methods:
            sentence += f"; Central, which no party may build, has {_number(comparison.interval('Central')[0])}"
        sentences.append(f"{sentence}.")
        if "Local+Public" in comparison.methods:
            stands = _standing(comparison.gain(best, "Local+Public"))
            sentences.append(
                f"{best} is {stands} Local+Public ({_number(comparison.interval('Local+Public')[0])}), a party alone "
                "that also trains on the real public rows behind the anchor and their targets."
            )
    return sentences


def _standing(gain: tuple[float, float]) -> str:
    if _is_clear(gain):
        return "better than"
    return "worse than" if _is_clear(gain, sign=-1) else "not told apart from"


def _is_clear(gain: tuple[float, float], sign: int = 1) -> bool:
    mean, half_width = gain
    # Without an interval, of one trial, this compares with NaN and is False.
    return sign * mean > half_width


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.2f}"


def _with_interval(interval: tuple[float, float], sign: str = "") -> str:
    mean, half_width = interval
    text = f"{mean:{sign}.3f}" if abs(mean) < 10 else f"{mean:{sign}.2f}"
    return text if math.isnan(half_width) else f"{text} ± {_number(half_width)}"


def _obfuscation(comparison: Comparison) -> str:
    condition = comparison.condition
    if condition.obfuscator != "umap":
        return condition.obfuscator
    return "UMAP, row by row" if condition.out_of_sample == "row-wise" else "UMAP with umap-learn's own transform"


def _intervals(comparison: Comparison) -> str:
    drawn = "of parties, anchors and test rows"
    if len(comparison.seeds) == 1:
        return f"there are no intervals, for one random draw {drawn} tells nothing of chance"
    return f"intervals are Student's t over {len(comparison.seeds)} random draws {drawn}"


def _hyperparameters(comparison: Comparison) -> str:
    preset = comparison.condition.hyperparameters
    text = f"Hyperparameters of KTI: preset <code>{escape(preset)}</code>."
    if preset == "recommended" and "KTI+TSL+Center" in comparison.methods:
        text += (
            " It gives KTI+TSL+Center a width and a penalty of its own, chosen in a small search on MNIST and "
            "Fashion-MNIST."
        )
    return text


def _table(comparison: Comparison) -> str:
    rows = []
    for name in comparison.methods:
        baseline = name in BASELINES
        gain = "" if name == "Local" or "Local" not in comparison.methods else _gain(comparison, name)
        rows.append(
            f'<tr class="{"baseline" if baseline else "method"}"><td>{escape(name)}</td>'
            f"<td>{_with_interval(comparison.interval(name))}</td><td>{gain}</td>"
            f"<td>{comparison.seconds(name):.2f} s</td></tr>"
        )
    return (
        '<div class="wide"><table><tr><th>method</th>'
        f"<th>{escape(comparison.measure)}, 95 % interval</th><th>gain over Local</th>"
        f"<th>time</th></tr>{''.join(rows)}</table></div>"
    )


def _gain(comparison: Comparison, name: str) -> str:
    return _with_interval(comparison.gain(name, "Local"), sign="+")


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
