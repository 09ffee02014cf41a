"""The result of an audit, and its JSON, sentences, figure and page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._notebooks import card, chain
from ..._validation import require
from ._findings import (
    AMBER_LIMIT,
    CRITERIA,
    GREEN_LIMIT,
    OPEN_WORLD_LIMIT,
    RATINGS,
    Criterion,
    DefenceEffect,
    Finding,
    Level,
    Record,
    criterion_of,
    decimal,
    grouped,
    joined,
    metric_of,
    percent,
    rating_of,
    shown,
    strength,
)
from ._page import STYLE, bar_svg, bullets, findings_html, rating_badge, rating_class, shape_html, table_html, text_html

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORMAT = 1
_PARTS = {"findings": Finding, "levels": Level, "worst_records": Record, "defences": DefenceEffect}


def _made(kind: type, part: dict[str, Any]) -> Any:
    """Make one of the dataclasses: lists become tuples, and a value that is null becomes NaN."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in part.items()}
    if "value" in {field.name for field in fields(kind)} and values["value"] is None:
        values["value"] = math.nan
    if "per_seed" in values:
        values["per_seed"] = tuple(math.nan if value is None else value for value in values["per_seed"])
    return kind(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    # NumPy's numbers are none to the json module.
    return value.item() if hasattr(value, "item") else value


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult:
    """Findings of the attacks of an audit at one party.

    Attributes
    ----------
    party, obfuscator : str
        The party's name, and its f_k in words.
    n_rows, n_attacked : int
        Rows of the party's table, and those under attack in every seed.
    n_candidates, n_open_candidates : int
        Rows among which the attacker looks for the right one: the originals, and with strangers among them.
    n_anchors, n_components : int
        Rows of the anchor, columns of the representation.
    findings : tuple of Finding
    levels : tuple of Level
        Threat levels tried, in the order of the page.
    worst_records : tuple of Record
        Those singled out best, worst first.
    assumptions, not_tested : tuple of str
        Sentences.
    defences : tuple of DefenceEffect
    seeds : tuple of int or None
    seconds : float
    version : str
        Of this library.
    complete : bool
        False if the time budget ended it early.
    guarantee : str or None
        The statement of a differential-privacy guarantee, if the party can give one.
    proven : dict of str to float
        Proven bounds on any attack on the share, by measure.
    """

    party: str
    obfuscator: str
    n_rows: int
    n_attacked: int
    n_candidates: int
    n_open_candidates: int
    n_anchors: int
    n_components: int
    findings: tuple[Finding, ...]
    levels: tuple[Level, ...]
    worst_records: tuple[Record, ...] = ()
    assumptions: tuple[str, ...] = ()
    not_tested: tuple[str, ...] = ()
    defences: tuple[DefenceEffect, ...] = ()
    seeds: tuple[int, ...] | None = None
    seconds: float
    version: str
    complete: bool = True
    guarantee: str | None = None
    proven: dict[str, float] = field(default_factory=dict)

    @property
    def n_repetitions(self) -> int:
        """Count how often the attacks were made."""
        return 1 if self.seeds is None else len(self.seeds)

    def headline(self, criterion: str) -> Finding | None:
        """Return the finding that decides a criterion, if any: of the worst rated, the farthest above the labels."""
        return self.criterion(criterion).finding

    def criterion(self, name: str) -> Criterion:
        """Judge "singling out", "linkability", "inference" or "membership".

        The rating is green if the finding that decides exceeds the labels alone by .05 at most, amber up to .20, and
        red above, all at the upper end of the 95 % interval.  With strangers among the candidates, the share itself may
        not be above .09 for green and .20 for amber either.  It is "inconclusive" if no attack did better than the
        labels alone: all were too weak to show anything.

        Raises
        ------
        ValueError
            If there is no such criterion.
        """
        if name not in CRITERIA:
            raise ValueError(f"Unknown criterion {name!r}; choose one of {', '.join(CRITERIA)}.")
        return criterion_of(self.findings, name)

    def criteria(self) -> tuple[Criterion, Criterion, Criterion]:
        """Judge the three criteria of the Article 29 Working Party: singling out, linkability and inference."""
        return self.all_criteria()[:3]

    def all_criteria(self) -> tuple[Criterion, Criterion, Criterion, Criterion]:
        """Judge the three criteria, and membership beside them."""
        singling_out, linkability, inference, membership = map(self.criterion, CRITERIA)
        return singling_out, linkability, inference, membership

    def rows(self) -> list[dict[str, Any]]:
        """List all findings, one dictionary each."""
        return [
            {"label_only" if name == "baseline" else name: value for name, value in vars(finding).items()}
            | {
                "per_seed": " ".join(f"{value:.4g}" for value in finding.per_seed),
                "criterion": metric_of(finding.metric).criterion or "",
                "light": rating_of(finding) if metric_of(finding.metric).criterion else "",
            }
            for finding in self.findings
        ]

    def table(self) -> Any:
        """Return all findings as a pandas data frame."""
        return require("pandas", "cli").DataFrame(self.rows())

    def plot(self, ax: ArrayLike | None = None) -> NDArray[np.object_]:
        """Draw, for every measure, the strongest attack of each level and leak, beside labels alone and guessing.

        Parameters
        ----------
        ax : array-like of matplotlib Axes, optional
            One for each measure; by default those of a new figure, which no window shows.

        Returns
        -------
        ndarray of matplotlib Axes, shape (n_measures,)

        Raises
        ------
        ValueError
            If there is no finding to draw, or there are fewer Axes than measures.
        """
        measured = [finding for finding in self.findings if finding.is_measured]
        attributes = dict.fromkeys(one.metric for one in measured if one.metric.startswith("attribute "))
        metrics = [name for name in (*_PANELS, *attributes) if any(one.metric == name for one in measured)]
        if not metrics:
            raise ValueError("This audit measured nothing that can be drawn; raise its time budget.")
        places = list(dict.fromkeys((one.level, one.leak) for one in measured if one.metric in metrics))
        panels = _new_panels(len(metrics), len(places)) if ax is None else np.ravel(np.asarray(ax, dtype=object))
        if len(panels) < len(metrics):
            raise ValueError(f"There are {len(metrics)} measures to draw, but {len(panels)} Axes; give one for each.")
        panels = panels[: len(metrics)]
        handles: dict[str, Any] = {}
        for axes, metric in zip(panels, metrics, strict=True):
            handles |= _draw(axes, metric, [one for one in measured if one.metric == metric], places)
        for axes in panels:
            axes.set_yticks(range(len(places)), [f"{level}: {leak}" for level, leak in places])
            axes.set_ylim(len(places) - 0.5, -0.5)
        shown = list(handles.values()), list(handles)
        if ax is None:
            panels[0].get_figure().legend(
                *shown, loc="outside lower center", ncols=len(handles), frameon=False, fontsize=9
            )
        else:
            panels[0].legend(*shown, fontsize=8)
        return panels

    def sentences(self) -> dict[str, str]:
        """Say in natural frequencies what every threat level comes to, keyed by its name."""
        return {level.name: sentence_of(self, level).text for level in self.levels}

    def summary(self) -> str:
        """Say in plain lines what was found."""
        lines = [f"Privacy audit of party {self.party!r}", f"  {'; '.join(facts(self))}"]
        if not self.complete:
            lines.append(f"  {STOPPED_EARLY}")
        lines.append("")
        for criterion in self.all_criteria():
            reason = criterion.reason + proven_text(self, criterion.name)
            lines.append(f"  {criterion.name:<13} {criterion.rating.upper():<13} {reason}")
        lines.append("")
        lines += [f"  {level.name:<4} {sentence_of(self, level).text}" for level in self.levels]
        worst = ", ".join(str(record.index) for record in self.worst_records) or "none listed"
        lines += ["", f"  Worst-placed records (positions): {worst}"]
        if self.guarantee is not None:
            lines.append(f"  Guarantee: {self.guarantee}")
        lines += [f"  Not tested: {what}" for what in self.not_tested]
        return "\n".join(lines)

    def to_html(self, path: str | Path | None = None) -> str:
        """Write the page for a data protection officer, and return it.

        The page needs nothing from outside: the essentials on one printed sheet, then an appendix.
        """
        return _written(_page(self), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Write the result as JSON, and return it."""
        plain = {"format": _FORMAT, **_plain(asdict(self))}
        return _written(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)

    @classmethod
    def from_json(cls, source: str | Path) -> Self:
        """Read a result back from the text that `to_json` returned, or the `Path` of the file that it wrote.

        Raises
        ------
        ValueError
            If it is not the JSON of an audit.
        """
        text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
        expected = {each.name for each in fields(cls)}
        try:
            read = json.loads(text)
        except ValueError:
            raise ValueError(
                "This cannot be read as JSON. Give the text of an audit.json, or its path as a pathlib.Path."
            ) from None
        if not isinstance(read, dict) or read.get("format") != _FORMAT:
            found = read.get("format") if isinstance(read, dict) else None
            raise ValueError(
                f"This is not the JSON of an audit in format {_FORMAT}; found format {found!r}. Give the text of an "
                "audit.json that this version of datacollab wrote."
            )
        del read["format"]
        if set(read) != expected:
            raise ValueError(f"The JSON of this audit lacks fields, or has others: {sorted(set(read) ^ expected)}.")
        try:
            for name, kind in _PARTS.items():
                read[name] = tuple(_made(kind, part) for part in read[name])
            for name in ("assumptions", "not_tested", "seeds"):
                read[name] = None if read[name] is None else tuple(read[name])
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(
                f"A part of this audit's JSON is not what it should be ({type(error).__name__})."
            ) from None
        return cls(**read)

    def __repr__(self) -> str:
        ratings = ", ".join(f"{criterion.name}: {criterion.rating}" for criterion in self.all_criteria())
        return f"<AuditResult of party {self.party!r}: {ratings}>"

    def _repr_html_(self) -> str:
        stopped = f"<p>{STOPPED_EARLY}</p>" if not self.complete else ""
        ratings = "".join(
            f"<tr><th>{criterion.name}</th><td>{rating_badge(criterion.rating)}</td>"
            f"<td>{text_html(criterion.reason + proven_text(self, criterion.name))}</td></tr>"
            for criterion in self.all_criteria()
        )
        return card(
            f"Privacy audit of party {self.party}",
            chain(held=["shared"], rows=f"{self.n_rows} rows", f=self.obfuscator, shared="under attack"),
            stopped,
            f"<table>{ratings}</table>",
            f"<small>{text_html('; '.join(facts(self)))}. to_html() writes the page for a data protection officer."
            "</small>",
        )


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    return text


_OPEN = ("open-world linkage", "open-world re-identification")
_SUMMED_UP = (
    ("linkage", "re-identification@1"),
    _OPEN,
    ("membership AUC",),
    ("membership TPR",),
    ("training rows in files",),
)
"""Measures by which a threat level is summed up, the first that were taken."""


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """Summary of a threat level in words, its finding (None if the level was not tried), and how many of `base`."""

    text: str
    finding: Finding | None = None
    count: str = ""
    base: int = 100


def sentence_of(result: AuditResult, level: Level) -> Sentence:
    """Say what the strongest attack of a threat level would achieve."""
    findings = [finding for finding in result.findings if finding.level == level.name and finding.is_measured]

    def strongest(metrics: Sequence[str]) -> Finding | None:
        return max((one for one in findings if one.metric in metrics), key=strength, default=None)

    finding = next((one for one in map(strongest, _SUMMED_UP) if one is not None), None)
    if finding is None:
        return Sentence(text="Not tested.")
    metric, base = finding.metric, 100
    records = f"every 100 of your records, sought among {grouped(result.n_candidates)} at a time"
    if result.n_candidates == result.n_attacked == result.n_rows and metric != "membership AUC":
        base, records = result.n_rows, f"your {grouped(result.n_rows)} records"

    def count(share: float) -> str:
        return grouped(round(share * base))

    here = "" if finding.leak in ("nothing", "", *level.holds) else f" (here: {finding.leak})"
    attacker = f"an attacker who holds {joined(level.holds)}{here}"
    reached = count(finding.value)
    if metric == "training rows in files":
        text = f"Of {records}, {reached} stand as plain numbers in what {attacker} has: no attack is needed."
        if finding.value <= 0:
            text = f"None of {records} was found as plain numbers in what {attacker} has; a search can miss."
        return Sentence(text=text, finding=finding, count=reached, base=base)
    interval = ""
    if finding.low is not None and finding.high is not None:
        interval = f" (95 % interval {count(finding.low)} to {count(finding.high)})"
    without = f"by guessing, {count(finding.floor)}"
    if finding.baseline is not None:
        without = f"knowing labels alone, {count(finding.baseline)}"
    if metric == "membership AUC":
        text = (
            f"Shown one of your records and one of a stranger, {attacker} would tell which is yours {reached} times "
            f"out of 100{interval}; {without}."
        )
    elif metric == "membership TPR":
        text = (
            f"Of {records}, {attacker} would recognise {reached} as belonging to your table{interval}, taking 1 "
            f"stranger in 100 for one of them; {without}."
        )
    else:
        text = f"Of {records}, {attacker} would correctly point to {reached}{interval}; {without}."
        strangers = result.n_open_candidates - result.n_candidates
        if metric in _OPEN:
            text += f" The candidates are {grouped(result.n_open_candidates)}, strangers among them."
        elif (hidden := strongest(_OPEN)) is not None and strangers > 0:
            text += f" With {grouped(strangers)} strangers among the candidates, to {count(hidden.value)}."
    if finding.is_inconclusive:
        text += " Inconclusive: the attack was too weak to show anything."
    return Sentence(text=text, finding=finding, count=reached, base=base)


STOPPED_EARLY = "The time budget ended this audit early: what was not tried may be worse than what was."


def facts(result: AuditResult) -> list[str]:
    """List what was audited, in a few short phrases."""
    attacked = "" if result.n_attacked >= result.n_rows else f", {grouped(result.n_attacked)} of them under attack"
    return [
        f"{grouped(result.n_rows)} records{attacked}",
        f"obfuscator {result.obfuscator}",
        f"{grouped(result.n_components)} columns shared",
        f"{grouped(result.n_anchors)} anchor rows",
    ]


def proven_text(result: AuditResult, criterion: str) -> str:
    """Say what no attack exceeds, after a criterion's reason; empty if nothing is proven about it."""
    said = [
        f"{metric.partition(' ')[2]} {shown(bound, metric)}"
        for metric, bound in result.proven.items()
        if metric_of(metric).criterion == criterion
    ]
    return f" Proven, for any attack on the share: {', '.join(said)} at most." if said else ""


_PANELS = ("re-identification@1", "linkage", "open-world linkage", "membership AUC")

# Shapes and fills tell them apart in grey print.
_REFERENCES: tuple[tuple[str, Callable[[Finding], float | None], dict[str, Any]], ...] = (
    ("labels alone", lambda one: one.baseline, {"marker": "D", "facecolors": "white", "edgecolors": "black", "s": 34}),
    ("guessing", lambda one: one.chance, {"marker": "|", "color": "black", "s": 90}),
    ("mean row", lambda one: one.mean_reconstruction, {"marker": "x", "color": "0.35", "s": 30}),
    ("other rows", lambda one: one.control, {"marker": "s", "facecolors": "white", "edgecolors": "#0072B2", "s": 34}),
)


def _new_panels(n_panels: int, n_places: int) -> NDArray[np.object_]:
    """Make the Axes of a new figure."""
    n_columns = min(3, n_panels)
    n_rows = -(-n_panels // n_columns)
    figure = require("matplotlib.figure", "plots").Figure(
        figsize=(2.4 + 2.9 * n_columns, n_rows * (1.0 + 0.36 * n_places) + 0.7), layout="constrained"
    )
    panels: NDArray[np.object_] = figure.subplots(n_rows, n_columns, sharey=True, squeeze=False).ravel()
    for axes in panels[n_panels:]:
        axes.set_visible(False)
    return panels


def _draw(axes: Axes, metric: str, findings: Sequence[Finding], places: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Draw one measure, and return its handles for the legend."""
    strongest: dict[int, Finding] = {}
    for finding in findings:
        row = places.index((finding.level, finding.leak))
        strongest[row] = max(strongest.get(row, finding), finding, key=strength)
    rows, best = list(strongest), list(strongest.values())
    reach = [
        [one.value - (one.value if one.low is None else one.low) for one in best],
        [one.upper - one.value for one in best],
    ]
    handles: dict[str, Any] = {
        "strongest attack, 95 % interval": axes.errorbar(
            [one.value for one in best], rows, xerr=reach, fmt="o", color="#0072B2", ecolor="black", capsize=3, zorder=3
        )
    }
    for name, value_of, look in _REFERENCES:
        known = [(value, row) for row, one in strongest.items() if (value := value_of(one)) is not None]
        if known:
            handles[name] = axes.scatter(*zip(*known, strict=True), zorder=2, **look)
    axes.set_title(metric, fontsize=10)
    axes.set_xlim(min(-0.03, *(one.value - 0.05 for one in best)), 1.03)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.3, linewidth=0.6)
    axes.tick_params(labelsize=9)
    return handles


_LIMITS = (
    "Limits. “At most” is over the attacks tried (the appendix names them) and their intervals{proven}, for attackers "
    "who hold what is said and no more. A better attack may exist: a low figure says what these attacks reached, and "
    "no more. Intervals are too narrow, since the rows of a party share one obfuscator: {repeats}, and another audit "
    "may give another rating where a figure is near its limit. Averages hide single records."
)
_RULE = " ".join(
    (
        f"{shape_html('green')} green: at the upper end of its 95\u00a0% interval, the strongest attack gains at most",
        f"{100 * GREEN_LIMIT:.0f} points over labels alone, and re-identifies at most",
        f"{100 * OPEN_WORLD_LIMIT:.0f}\u00a0% among strangers. {shape_html('amber')} amber: at most",
        f"{100 * AMBER_LIMIT:.0f} of either.",
        f"{shape_html('red')} red: more. {shape_html('inconclusive')} inconclusive: no attack did better than labels",
        "alone, which shows nothing; an attacker with more can also do what is done with less. Any rating but green",
        "calls for a documented risk analysis. Membership is not one of the three criteria; it is judged alike.",
    )
)
_CAPTION = (
    "Bold: the findings that decide a rating. Other rows: the same attack on rows that are "
    "not the party’s; what exceeds them is what the obfuscator memorised."
)


def _page(result: AuditResult) -> str:
    """Build the page: HTML that needs nothing from outside."""
    criteria = result.all_criteria()
    stopped = "" if result.complete else f'<p class="stopped">{STOPPED_EARLY}</p>'
    n = result.n_repetitions
    limits = _LIMITS.format(
        proven=", but for what is called proven" if result.proven else "",
        repeats="the attacks were made once" if n == 1 else f"the attacks were made {n} times",
    )
    by_rating = {rating: [one.name for one in criteria if one.rating == rating] for rating in RATINGS}
    verdict = "; ".join(f"{rating} for {joined(names)}" for rating, names in by_rating.items() if names)
    guarantee = ""
    if result.guarantee is not None:
        guarantee = _section("guarantee", "Differential privacy", f"<p>{text_html(result.guarantee)}</p>") + "\n"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Privacy audit of party {text_html(result.party)}</title><style>{STYLE}</style></head><body>
<main>
<header><p class="kicker">Privacy audit · for the data protection officer</p>
<h1>Party {text_html(result.party)}</h1>
<p class="facts">{text_html(" · ".join(facts(result)))}</p></header>
{stopped}<section aria-labelledby="lights"><h2 id="lights" class="verdict">{
        text_html(verdict[:1].upper() + verdict[1:] + ".")
    }</h2>
<div class="cards">{"".join(_card(result, criterion) for criterion in criteria)}</div>
<p class="note">{_RULE}</p></section>
{_attackers(result)}
{_defences(result)}
<div class="columns">
{_records(result)}{_section("assumed", "What was assumed", bullets(result.assumptions))}{
        _section("gaps", "What was not tested", bullets(result.not_tested))
    }</div>
<p class="note">{text_html(limits)}</p>
{guarantee}<p class="signature"><span>Read by</span><span>Date</span><span>Decision and signature</span></p>
</main>
{_appendix(result)}
</body></html>
"""


def _section(name: str, title: str, body: str) -> str:
    return f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>{body}</section>'


def _card(result: AuditResult, criterion: Criterion) -> str:
    ratings = []
    for level in result.levels:
        of_level = [one for one in result.findings if one.level == level.name]
        rating = criterion_of(of_level, criterion.name).rating
        if rating != "not tested":
            ratings.append(f"<span>{text_html(level.name)}\u00a0{shape_html(rating)}</span>")
    levels = f'<p class="levels">{" ".join(ratings)}</p>' if ratings else ""
    return (
        f'<article class="card {rating_class(criterion.rating)}"><h3>{text_html(criterion.name.capitalize())} '
        f'{rating_badge(criterion.rating)}</h3><p class="question">{text_html(CRITERIA[criterion.name])}</p>'
        f'<p class="reason">{text_html(criterion.reason + proven_text(result, criterion.name))}</p>{levels}</article>'
    )


def _attackers(result: AuditResult) -> str:
    items = []
    for level in result.levels:
        sentence, bar = sentence_of(result, level), ""
        if sentence.finding is not None:
            # It repeats the sentence, and so is hidden from screen readers.
            reached = f"<b>{text_html(sentence.count)}</b> of {grouped(sentence.base)}"
            bar = f'<div class="reached" aria-hidden="true"><span>{reached}</span>{bar_svg(sentence.finding)}</div>'
        said = f'<span class="title">{text_html(level.title)}</span>{text_html(sentence.text)}'
        items.append(f'<li><span class="name">{text_html(level.name)}</span><p>{said}</p>{bar}</li>')
    among = ""
    if result.n_open_candidates > result.n_candidates:
        among = f"; or from {grouped(result.n_open_candidates)}, with strangers among them"
    note = (
        f"Pointing to a record: telling it from {grouped(result.n_candidates)} candidates, the records themselves"
        f"{among}. Bars: what is reached, its 95 % interval, and, dashed, labels alone or guessing."
    )
    listed = f'<ol class="attackers">{"".join(items)}</ol><p class="note">{text_html(note)}</p>'
    return _section("attackers", "What each kind of attacker would achieve", listed)


def _defences(result: AuditResult) -> str:
    if not result.defences:
        return ""
    utility = next((defence.utility_name for defence in result.defences if defence.utility_name), "utility")
    names = ["Defence", "What it does", utility.capitalize(), "Linked", "Singled out", "Membership AUC"]
    rows = []
    for each in result.defences:
        figures = [decimal(each.utility), percent(each.linkage), percent(each.reidentification)]
        rows.append(("", [each.name, each.description, *figures, decimal(each.membership)]))
    caption = "Risks with the defence in place, and what the data are then still good for. AUC: .5 is guessing."
    table = table_html(names, rows, caption=caption, n_texts=2, kind="stacked")
    return _section("defences", "What each defence would change, and cost", table)


def _records(result: AuditResult) -> str:
    items = "".join(f"<li>{one.index} <small>{text_html(one.level)}</small></li>" for one in result.worst_records)
    listed = f'<ol class="records">{items}</ol>' if items else "<p>None listed.</p>"
    note = "Positions in the table, the first being 0, and who singles them out best."
    return _section("records", "Worst-placed records", f'{listed}<p class="note">{note}</p>')


def _appendix(result: AuditResult) -> str:
    """Build the appendix, with all that a reader needs to check the page."""
    metrics = dict.fromkeys(
        "attribute" if one.metric.startswith("attribute ") else one.metric for one in result.findings
    )
    meanings = "".join(f"<dt>{text_html(name)}</dt><dd>{text_html(metric_of(name).meaning)}</dd>" for name in metrics)
    repeats = "One repetition" if result.n_repetitions == 1 else f"Means of {result.n_repetitions} repetitions"
    facts_of_audit = (
        f"{repeats}. Rows under attack: {grouped(result.n_attacked)} of {grouped(result.n_rows)}. Candidates: "
        f"{grouped(result.n_candidates)}, with strangers {grouped(result.n_open_candidates)}. "
        f"{result.seconds:.0f} s, datacollab {result.version}."
    )
    rows = [
        ("", [level.name, level.title, "; ".join(level.holds), "; ".join(level.attacks)]) for level in result.levels
    ]
    caption = "Who attacks, with what in hand, and how."
    levels = table_html(["Level", "Who", "Holds", "Attacks"], rows, caption=caption, n_texts=4, kind="stacked named")
    deciding = [criterion.finding for criterion in result.all_criteria()]
    strongest: dict[tuple[str, str, str], Finding] = {}
    for one in result.findings:
        aim = one.level, one.leak, one.metric
        strongest[aim] = max(strongest.get(aim, one), one, key=strength)
    return f"""<section class="appendix" aria-labelledby="appendix"><h2 id="appendix">Technical appendix</h2>
<p class="note">{text_html(facts_of_audit)}</p>
<h3>Measures</h3><dl>{meanings}</dl>
<h3>Threat levels</h3>
{levels}
<h3>The strongest attack on each measure</h3>
{findings_html(strongest.values(), deciding, _CAPTION)}
<h3>All findings</h3>
<details><summary>All {len(result.findings)} findings; printed if opened</summary>
{findings_html(result.findings, deciding, "Every attack that was made.")}</details>
</section>"""
