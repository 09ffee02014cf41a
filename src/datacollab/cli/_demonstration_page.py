"""The demonstration as one self-contained HTML page."""

from __future__ import annotations

import base64
import io
import math
from html import escape
from typing import TYPE_CHECKING

from ._demonstration import (
    N_ANCHORS,
    N_COMPONENTS,
    N_JUDGING,
    N_PUBLIC,
    N_TEST,
    SITUATIONS,
    WAYS,
    Demonstration,
    Situation,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["demonstration_page"]

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .5rem; text-align: right; border-bottom: 1px solid #8886; }
th:first-child, td:first-child { text-align: left; min-width: 9rem; } td + td:not(:last-child) { white-space: nowrap; }
td.pooled { font-weight: 600; }
figure { margin: 1.5rem 0; } img { max-width: 100%; background: #fff; } .note { opacity: .8; font-size: .92rem; }
@media (max-width: 40rem) {
  table { font-size: .78rem; } th, td { padding: .2rem .25rem; } th:first-child, td:first-child { min-width: 5rem; }
  td + td:not(:last-child) { white-space: normal; }
  figure { overflow-x: auto; } img { max-width: none; width: 56rem; }
}
code { background: #8882; padding: 0 .25rem; overflow-wrap: anywhere; }
"""


def demonstration_page(demonstration: Demonstration, dataset: str, figure: Figure, command: str) -> str:
    """Write the demonstration as a page without outside references.

    Parameters
    ----------
    demonstration : Demonstration
    dataset : str
    figure : matplotlib.figure.Figure
    command : str
        What reproduces the page.
    """
    said = "".join(f"<li>{escape(sentence)}</li>" for sentence in demonstration.sentences())
    heads = "".join(f"<th>{escape(way)}</th>" for way in WAYS)
    rows = "".join(_row(demonstration, situation) for situation in SITUATIONS)
    told = "".join(f"<li>{escape(benefit.sentence)}</li>" for benefit in demonstration.benefits[SITUATIONS[2]])
    parties = f"{demonstration.n_parties} parties with {demonstration.n_rows} rows each of {escape(dataset)}"
    drawn = f"{N_JUDGING} parties and {len(demonstration.seeds)} draws"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>datacollab: does collaborating pay?</title><style>{_STYLE}</style></head><body>
<h1>Does collaborating pay? {parties}</h1>
<ul>{said}</ul>
<div class="wide"><table><tr><th>what parties have besides, and how they share</th>{heads}<th>pooled − alone</th>
<th>own rows linked (by targets alone)</th></tr>{rows}</table></div>
<figure><img alt="Rows of three parties as shared and integrated, and accuracies of all situations"
src="data:image/png;base64,{_png(figure)}"><figcaption class="note">Left and middle: rows of three parties (markers)
and three classes (colours), read by one projection. Right: accuracy on {N_TEST} new rows.</figcaption></figure>
<h2>How to read this</h2>
<p class="note"><b>alone</b>: the best that a party has without the others, of forests, kernel ridge and logistic
regressions on its own rows and on the {N_PUBLIC} public rows; where these have no targets, it learns from them by
self-training and label spreading. <b>collaboration</b>: the common model, chosen by the analyst among integration
methods and models. <b>pooled</b>: what the party uses in the end, both of them weighted by what they say of its own
rows when these are left out. <b>all rows in one place</b>: a kernel ridge regression on the raw rows of all parties,
which is what may not be done.</p>
<p class="note"><b>undefended</b>: PCA with {N_COMPONENTS} columns, fitted on the public rows and rotated in secret;
each shared row stands for one of a party's. <b>private</b>: as many of the anchor's rows as the party
has, labelled at the party; no row or target of its own, and nothing proven. The anchor has {N_ANCHORS}
rows, interpolated between the public ones. Means are over {drawn}, intervals Student's t over the draws. Linkage is
that of the first draw and one attacker who holds the anchor; <code>datacollab audit</code> tries more.</p>
<h2>What parties are told</h2>
<p class="note">Without looking at new rows; here with public rows without targets, undefended, in the first draw.</p>
<ul>{told}</ul>
<p class="note">Reproduce with <code>{escape(command)}</code></p>
</body></html>
"""


def _row(demonstration: Demonstration, situation: Situation) -> str:
    cells = "".join(
        f'<td class="{way.partition(" ")[0]}">{_number(*demonstration.interval(situation, way))}</td>' for way in WAYS
    )
    risk = demonstration.linked[situation]
    told = "none stands for one" if risk is None else f"{100 * risk[0]:.0f} % ({100 * risk[1]:.0f} %)"
    gain = _number(*demonstration.gain(situation), sign="+")
    return f"<tr><td>{escape(situation.name)}</td>{cells}<td>{gain}</td><td>{told}</td></tr>"


def _number(mean: float, half_width: float, sign: str = "") -> str:
    return f"{mean:{sign}.3f}" if math.isnan(half_width) else f"{mean:{sign}.3f} ±&nbsp;{half_width:.3f}"


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=144)
    return base64.b64encode(buffer.getvalue()).decode("ascii")
