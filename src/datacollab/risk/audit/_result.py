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

__all__ = ["AuditResult", "proven_text"]


_FORMAT = 1
_PARTS = {"findings": Finding, "levels": Level, "worst_records": Record, "defences": DefenceEffect}


def fields_of(text: str, expected: set[str]) -> dict[str, Any]:
    """Read the fields of a result from JSON, which must have exactly those."""
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
        raise ValueError(f"A part of this audit's JSON is not what it should be ({type(error).__name__}).") from None
    return read


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
        return _written(audit_page(self), path)

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
        return cls(**fields_of(text, {each.name for each in fields(cls)}))

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


_CLOSED = ("linkage", "re-identification@1")
_OPEN = ("open-world linkage", "open-world re-identification")
Count = Callable[[float], str]


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """Summary of a threat level in words, and the finding that it puts into words (None if the level was not tried)."""

    level: Level
    text: str
    finding: Finding | None
    base: int = 100

    @property
    def count(self) -> str:
        """Return how many out of `base`."""
        return "" if self.finding is None else _counter(self.base)(self.finding.value)


def sentence_of(result: AuditResult, level: Level) -> Sentence:
    """Say what the strongest attack of a threat level would achieve."""
    findings = [finding for finding in result.findings if finding.level == level.name and finding.is_measured]
    for metrics, say in (
        (_CLOSED, _pointing),
        (_OPEN, _pointing),
        (("membership AUC",), _telling_apart),
        (("membership TPR",), _recognising),
        (("training rows in files",), _finding_rows),
    ):
        strongest = _strongest(findings, metrics)
        if strongest is not None:
            text = say(result, level, strongest)
            if strongest.is_inconclusive and say is not _finding_rows:
                text += " Inconclusive: the attack was too weak to show anything."
            base = 100 if say is _telling_apart else _base(result)[0]
            return Sentence(level=level, text=text, finding=strongest, base=base)
    return Sentence(level=level, text="Not tested.", finding=None)


def _strongest(findings: Sequence[Finding], metrics: Sequence[str]) -> Finding | None:
    return max((one for one in findings if one.metric in metrics), key=strength, default=None)


def _pointing(result: AuditResult, level: Level, finding: Finding) -> str:
    base, records = _base(result)
    count = _counter(base)
    text = (
        f"Of {records}, {_attacker(level, finding)} would correctly point to {count(finding.value)}"
        f"{_interval(finding, count)}; {_without(finding, count)}."
    )
    strangers = result.n_open_candidates - result.n_candidates
    if finding.metric in _OPEN:
        return f"{text} The candidates are {grouped(result.n_open_candidates)}, strangers among them."
    hidden = _strongest([one for one in result.findings if one.level == level.name and one.is_measured], _OPEN)
    if hidden is None or strangers <= 0:
        return text
    return f"{text} With {grouped(strangers)} strangers among the candidates, to {count(hidden.value)}."


def _telling_apart(result: AuditResult, level: Level, finding: Finding) -> str:
    count = _counter(100)
    return (
        f"Shown one of your records and one of a stranger, {_attacker(level, finding)} would tell which is yours "
        f"{count(finding.value)} times out of 100{_interval(finding, count)}; {_without(finding, count)}."
    )


def _recognising(result: AuditResult, level: Level, finding: Finding) -> str:
    base, records = _base(result)
    count = _counter(base)
    return (
        f"Of {records}, {_attacker(level, finding)} would recognise {count(finding.value)} as belonging to your table"
        f"{_interval(finding, count)}, taking 1 stranger in 100 for one of them; {_without(finding, count)}."
    )


def _finding_rows(result: AuditResult, level: Level, finding: Finding) -> str:
    base, records = _base(result)
    if finding.value <= 0:
        return (
            f"None of {records} was found as plain numbers in what {_attacker(level, finding)} has; a search can miss."
        )
    stored = _counter(base)(finding.value)
    return (
        f"Of {records}, {stored} stand as plain numbers in what {_attacker(level, finding)} has: no attack is needed."
    )


def _base(result: AuditResult) -> tuple[int, str]:
    """Return how many records a sentence counts by, and their name."""
    if result.n_candidates == result.n_attacked == result.n_rows:
        return result.n_rows, f"your {grouped(result.n_rows)} records"
    return 100, f"every 100 of your records, sought among {grouped(result.n_candidates)} at a time"


def _counter(base: int) -> Count:
    """Turn shares into whole numbers of records out of a base."""
    return lambda share: grouped(round(share * base))


def _attacker(level: Level, finding: Finding) -> str:
    holds = joined(level.holds)
    if finding.leak in ("nothing", "") or finding.leak in level.holds:
        return f"an attacker who holds {holds}"
    return f"an attacker who holds {holds} (here: {finding.leak})"


def _interval(finding: Finding, count: Count) -> str:
    if finding.low is None or finding.high is None:
        return ""
    return f" (95 % interval {count(finding.low)} to {count(finding.high)})"


def _without(finding: Finding, count: Count) -> str:
    if finding.baseline is not None:
        return f"knowing labels alone, {count(finding.baseline)}"
    return f"by guessing, {count(finding.floor)}"


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


def appendix_html(result: AuditResult) -> str:
    """Build the appendix, with all that a reader needs to check the page."""
    metrics = dict.fromkeys(
        "attribute" if one.metric.startswith("attribute ") else one.metric for one in result.findings
    )
    meanings = "".join(f"<dt>{text_html(name)}</dt><dd>{text_html(metric_of(name).meaning)}</dd>" for name in metrics)
    repeats = "One repetition" if result.n_repetitions == 1 else f"Means of {result.n_repetitions} repetitions"
    levels = [
        ("", [level.name, level.title, "; ".join(level.holds), "; ".join(level.attacks)]) for level in result.levels
    ]
    deciding = [criterion.finding for criterion in result.all_criteria()]
    strongest: dict[tuple[str, str, str], Finding] = {}
    for one in result.findings:
        aim = one.level, one.leak, one.metric
        strongest[aim] = max(strongest.get(aim, one), one, key=strength)
    return f"""<section class="appendix" aria-labelledby="appendix"><h2 id="appendix">Technical appendix</h2>
<p class="note">{
        text_html(
            f"{repeats}. Rows under attack: {grouped(result.n_attacked)} of {grouped(result.n_rows)}. Candidates: "
            f"{grouped(result.n_candidates)}, with strangers {grouped(result.n_open_candidates)}. "
            f"{result.seconds:.0f} s, datacollab {result.version}."
        )
    }</p>
<h3>Measures</h3><dl>{meanings}</dl>
<h3>Threat levels</h3>
{
        table_html(
            ["Level", "Who", "Holds", "Attacks"],
            levels,
            caption="Who attacks, with what in hand, and how.",
            n_texts=4,
            kind="stacked named",
        )
    }
<h3>The strongest attack on each measure</h3>
{findings_html(strongest.values(), deciding, _CAPTION)}
<h3>All findings</h3>
<details><summary>All {len(result.findings)} findings; printed if opened</summary>
{findings_html(result.findings, deciding, "Every attack that was made.")}</details>
</section>"""


_CAPTION = (
    "Bold: the findings that decide a rating. Other rows: the same attack on rows that are "
    "not the party’s; what exceeds them is what the obfuscator memorised."
)


_LIMITS = (
    "Limits. “At most” is over the attacks tried (the appendix names them) and their intervals{proven}, for attackers "
    "who hold what is said and no more. A better attack may exist: a low figure says what these attacks reached, and "
    "no more. Intervals are too narrow, since the rows of a party share one obfuscator: {repeats}, and another audit "
    "may give another rating where a figure is near its limit. Averages hide single records."
)


def audit_page(result: AuditResult) -> str:
    """Build the page: HTML that needs nothing from outside."""
    criteria = result.all_criteria()
    stopped = "" if result.complete else f'<p class="stopped">{STOPPED_EARLY}</p>'
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Privacy audit of party {text_html(result.party)}</title><style>{STYLE}</style></head><body>
<main>
<header><p class="kicker">Privacy audit · for the data protection officer</p>
<h1>Party {text_html(result.party)}</h1>
<p class="facts">{text_html(" · ".join(facts(result)))}</p></header>
{stopped}<section aria-labelledby="lights"><h2 id="lights" class="verdict">{_verdict(criteria)}</h2>
<div class="cards">{"".join(_card(result, criterion) for criterion in criteria)}</div>
<p class="note">{_RULE}</p></section>
{_attackers(result)}
{_defences(result)}
<div class="columns">
{_records(result)}{_assumed(result)}{_gaps(result)}</div>
<p class="note">{text_html(_limits(result))}</p>
{_guarantee(result)}<p class="signature"><span>Read by</span><span>Date</span><span>Decision and signature</span></p>
</main>
{appendix_html(result)}
</body></html>
"""


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


def _limits(result: AuditResult) -> str:
    """Say what the figures leave open."""
    proven = ", but for what is called proven" if result.proven else ""
    n = result.n_repetitions
    repeats = "the attacks were made once" if n == 1 else f"the attacks were made {n} times"
    return _LIMITS.format(proven=proven, repeats=repeats)


def _verdict(criteria: tuple[Criterion, ...]) -> str:
    """Give the ratings in one sentence, worst first."""
    said = []
    for rating in RATINGS:
        names = [criterion.name for criterion in criteria if criterion.rating == rating]
        if names:
            said.append(f"{rating} for {joined(names)}")
    sentence = "; ".join(said)
    return text_html(sentence[:1].upper() + sentence[1:] + ".")


def _card(result: AuditResult, criterion: Criterion) -> str:
    by_level = [
        (level.name, criterion_of([one for one in result.findings if one.level == level.name], criterion.name).rating)
        for level in result.levels
    ]
    ratings = " ".join(
        f"<span>{text_html(name)}\u00a0{shape_html(rating)}</span>"
        for name, rating in by_level
        if rating != "not tested"
    )
    levels = f'<p class="levels">{ratings}</p>' if ratings else ""
    return (
        f'<article class="card {rating_class(criterion.rating)}"><h3>{text_html(criterion.name.capitalize())} '
        f'{rating_badge(criterion.rating)}</h3><p class="question">{text_html(CRITERIA[criterion.name])}</p>'
        f'<p class="reason">{text_html(criterion.reason + proven_text(result, criterion.name))}</p>{levels}</article>'
    )


def _attackers(result: AuditResult) -> str:
    items = []
    for level in result.levels:
        sentence = sentence_of(result, level)
        bar = "" if sentence.finding is None else _reached(sentence)
        said = f'<span class="title">{text_html(level.title)}</span>{text_html(sentence.text)}'
        items.append(f'<li><span class="name">{text_html(level.name)}</span><p>{said}</p>{bar}</li>')
    strangers = result.n_open_candidates - result.n_candidates
    note = (
        f"Pointing to a record: telling it from {grouped(result.n_candidates)} candidates, the records themselves"
        + (f"; or from {grouped(result.n_open_candidates)}, with strangers among them" if strangers > 0 else "")
        + ". Bars: what is reached, its 95 % interval, and, dashed, labels alone or guessing."
    )
    return (
        '<section aria-labelledby="attackers"><h2 id="attackers">What each kind of attacker would achieve</h2>'
        f'<ol class="attackers">{"".join(items)}</ol><p class="note">{text_html(note)}</p></section>'
    )


def _reached(sentence: Sentence) -> str:
    """Show the sentence at a glance, hidden from screen readers, since the text beside it says the same."""
    assert sentence.finding is not None
    reached = f"<b>{text_html(sentence.count)}</b> of {grouped(sentence.base)}"
    return f'<div class="reached" aria-hidden="true"><span>{reached}</span>{bar_svg(sentence.finding)}</div>'


def _records(result: AuditResult) -> str:
    items = "".join(
        f"<li>{record.index} <small>{text_html(record.level)}</small></li>" for record in result.worst_records
    )
    listed = f'<ol class="records">{items}</ol>' if items else "<p>None listed.</p>"
    return (
        f'<section aria-labelledby="records"><h2 id="records">Worst-placed records</h2>{listed}<p class="note">'
        "Positions in the table, the first being 0, and who singles them out best.</p></section>"
    )


def _defences(result: AuditResult) -> str:
    if not result.defences:
        return ""
    utility = next((defence.utility_name for defence in result.defences if defence.utility_name), "utility")
    names = ["Defence", "What it does", utility.capitalize(), "Linked", "Singled out", "Membership AUC"]
    rows = [
        (
            "",
            [
                defence.name,
                defence.description,
                decimal(defence.utility),
                percent(defence.linkage),
                percent(defence.reidentification),
                decimal(defence.membership),
            ],
        )
        for defence in result.defences
    ]
    caption = "Risks with the defence in place, and what the data are then still good for. AUC: .5 is guessing."
    return (
        '<section aria-labelledby="defences"><h2 id="defences">What each defence would change, and cost</h2>'
        f"{table_html(names, rows, caption=caption, n_texts=2, kind='stacked')}</section>"
    )


def _assumed(result: AuditResult) -> str:
    items = bullets(result.assumptions) if result.assumptions else "<p>Nothing stated.</p>"
    return f'<section aria-labelledby="assumed"><h2 id="assumed">What was assumed</h2>{items}</section>'


def _gaps(result: AuditResult) -> str:
    items = bullets(result.not_tested) if result.not_tested else "<p>Nothing stated.</p>"
    return f'<section aria-labelledby="gaps"><h2 id="gaps">What was not tested</h2>{items}</section>'


def _guarantee(result: AuditResult) -> str:
    if result.guarantee is None:
        return ""
    return (
        '<section aria-labelledby="guarantee"><h2 id="guarantee">Differential privacy</h2>'
        f"<p>{text_html(result.guarantee)}</p></section>\n"
    )
