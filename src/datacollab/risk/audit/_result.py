"""The result of an audit: its table, sentences and JSON, and the page for a data protection officer."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from ..._notebooks import card, chain
from ..._validation import require
from ._findings import (
    AMBER_LIMIT,
    CRITERIA,
    GREEN_LIMIT,
    NOT_FOUND,
    OPEN_WORLD_LIMIT,
    RATINGS,
    Criterion,
    Finding,
    Level,
    Rating,
    Record,
    criterion_of,
    decimal,
    format_value,
    join_words,
    kind_of,
    metric_of,
    rating_of,
    strength,
)

_FORMAT = 1


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditResult:
    """Findings of the attacks of an audit at one party.

    Attributes
    ----------
    party, obfuscator : str
        The party's name, and its f_k in words.
    n_rows, n_attacked, n_candidates, n_open_candidates, n_anchors, n_components : int
        Rows of the table, those under attack, candidates without and with strangers, anchor rows, and columns shared.
    findings : tuple of Finding
    levels : tuple of Level
        Threat levels tried, in the order of the page.
    worst_records : tuple of Record
        Those singled out best, worst first.
    assumptions, not_tested : tuple of str
        Sentences.
    seeds : tuple of int or None
    seconds, version, complete : float, str, bool
        Duration, version of this library, and whether it ended before the time budget did.
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
    seeds: tuple[int, ...] | None = None
    seconds: float
    version: str
    complete: bool = True
    guarantee: str | None = None
    proven: dict[str, float] = field(default_factory=dict)

    def headline(self, criterion: str) -> Finding | None:
        """Return the finding that decides a criterion, if any: of the worst rated, the farthest above the labels."""
        return self.criterion(criterion).finding

    def criterion(self, name: str) -> Criterion:
        """Judge "singling out", "linkability", "inference" or "membership"; ValueError for any other name.

        The rating is green if the finding that decides exceeds the labels alone by .05 at most, amber up to .20, and
        red above, all at the upper end of the 95 % interval; it is "inconclusive" if no attack did better than these.
        """
        if name not in CRITERIA:
            raise ValueError(f"Unknown criterion {name!r}; choose one of {', '.join(CRITERIA)}.")
        return criterion_of(self.findings, name)

    def all_criteria(self) -> tuple[Criterion, ...]:
        """Judge the three criteria of the Article 29 Working Party, and membership beside them."""
        return tuple(map(self.criterion, CRITERIA))

    def table(self) -> Any:
        """Return all findings as a pandas data frame."""
        rows = [
            {"label_only" if name == "baseline" else name: value for name, value in vars(finding).items()}
            | {
                "per_seed": " ".join(f"{value:.4g}" for value in finding.per_seed),
                "criterion": metric_of(finding.metric).criterion or "",
                "light": _light(finding),
            }
            for finding in self.findings
        ]
        return require("pandas", "cli").DataFrame(rows)

    def sentences(self) -> dict[str, str]:
        """Say in natural frequencies how far each threat level gets, keyed by its name."""
        return {level.name: _sentence_of(self, level)[0] for level in self.levels}

    def summary(self) -> str:
        """Sum up the findings in plain lines."""
        worst = ", ".join(str(record.index) for record in self.worst_records) or _NONE_WORST
        return "\n".join(
            [
                f"Privacy audit of party {self.party!r}",
                f"  {'; '.join(_facts(self))}",
                *([] if self.complete else [f"  {_STOPPED_EARLY}"]),
                "",
                *(f"  {one.name:<13} {one.rating.upper():<13} {_reason(self, one)}" for one in self.all_criteria()),
                "",
                *(f"  {name:<4} {sentence}" for name, sentence in self.sentences().items()),
                "",
                f"  Worst-placed records (positions): {worst}",
                *([] if self.guarantee is None else [f"  Guarantee: {self.guarantee}"]),
                *(f"  Not tested: {gap}" for gap in self.not_tested),
            ]
        )

    def to_html(self, path: str | Path | None = None) -> str:
        """Write the page for a data protection officer, which needs nothing from outside, and return it."""
        return _write(_page(self), path)

    def to_json(self, path: str | Path | None = None) -> str:
        """Write the result as JSON, and return it."""
        plain = {"format": _FORMAT, **_plain(asdict(self))}
        return _write(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)

    def __repr__(self) -> str:
        ratings = ", ".join(f"{criterion.name}: {criterion.rating}" for criterion in self.all_criteria())
        return f"<AuditResult of party {self.party!r}: {ratings}>"

    def _repr_html_(self) -> str:
        ratings = "".join(
            f"<tr><th>{one.name}</th><td>{rating_badge(one.rating)}</td><td>{_text(_reason(self, one))}</td></tr>"
            for one in self.all_criteria()
        )
        return card(
            f"Privacy audit of party {self.party}",
            chain(held=["shared"], rows=f"{self.n_rows} rows", f=self.obfuscator, shared="under attack"),
            "" if self.complete else f"<p>{_STOPPED_EARLY}</p>",
            f"<table>{ratings}</table>",
            f"<small>{_text('; '.join(_facts(self)))}. to_html() writes the page for a data protection officer."
            "</small>",
        )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    # JSON has no word for NaN and infinity.
    if isinstance(value, float) and not math.isfinite(value):
        return None
    # NumPy's numbers are none to the json module.
    if hasattr(value, "item"):
        return value.item()
    return value


def _light(finding: Finding) -> str:
    """Return a finding's rating, or "" for a measure that counts for no criterion."""
    if not metric_of(finding.metric).criterion:
        return ""
    return rating_of(finding)


def _write(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", newline="\n")
    return text


_STOPPED_EARLY = "The time budget ended this audit early: what was not tried may be worse than what was."
_NONE_WORST = "none is pointed to more often than by chance"
_POINTED = ("linkage", "re-identification@1")
_OPEN = ("open-world linkage", "open-world re-identification")
_SUMMED_UP = (_POINTED, _OPEN, ("membership AUC",), ("membership TPR",), ("training rows in files",))
"""Measures by which a threat level is summed up, the first that were taken."""


def _sentence_of(result: AuditResult, level: Level) -> tuple[str, Finding | None, int]:
    """Say how far the strongest attack of a threat level would get; return its finding, and of how many it counts."""
    findings = [finding for finding in result.findings if finding.level == level.name and finding.is_measured]

    def strongest(metrics: Sequence[str]) -> Finding | None:
        return max((one for one in findings if one.metric in metrics), key=strength, default=None)

    finding = next((one for one in map(strongest, _SUMMED_UP) if one is not None), None)
    if finding is None:
        return "Not tested.", None, 100
    metric = finding.metric
    base = 100
    records = f"every 100 of your records, sought among {result.n_candidates:,} at a time"
    # Where all records were attacked in one world, their true number says more than "of 100".
    if result.n_candidates == result.n_attacked == result.n_rows and metric != "membership AUC":
        base = result.n_rows
        records = f"your {result.n_rows:,} records"

    def count(share: float) -> str:
        return f"{round(share * base):,}"

    here = ""
    if finding.leak not in ("nothing", "", *level.holds):
        here = f" (here: {finding.leak})"
    without = f"by guessing, {count(finding.floor)}"
    if finding.baseline is not None:
        without = f"knowing labels alone, {count(finding.baseline)}"
    interval = ""
    reached = count(finding.value)
    if finding.low is not None and finding.high is not None:
        interval = f" (95 % interval {count(finding.low)} to {count(finding.high)})"
    is_search = metric_of(metric).is_search
    attacker = f"an attacker who holds {join_words(level.holds)}{here}"
    text = metric_of(metric).sentence
    if is_search and finding.value <= 0:
        text = NOT_FOUND
    text = text.format(records=records, attacker=attacker, reached=reached, interval=interval, without=without)
    strangers = result.n_open_candidates - result.n_candidates
    if metric in _OPEN:
        text += f" The candidates are {result.n_open_candidates:,}, strangers among them."
    elif metric in _POINTED and (hidden := strongest(_OPEN)) is not None and strangers > 0:
        text += f" With {strangers:,} strangers among the candidates, to {count(hidden.value)}."
    if finding.is_inconclusive and not is_search:
        text += " Inconclusive: the attack was too weak to show anything."
    return text, finding, base


def _facts(result: AuditResult) -> list[str]:
    """List the sizes of the audit and the obfuscator, in a few short phrases."""
    records = f"{result.n_rows:,} records"
    if result.n_attacked < result.n_rows:
        records += f", {result.n_attacked:,} of them under attack"
    return [
        records,
        f"obfuscator {result.obfuscator}",
        f"{result.n_components:,} columns shared",
        f"{result.n_anchors:,} anchor rows",
    ]


def _reason(result: AuditResult, criterion: Criterion) -> str:
    """Return a criterion's reason, and the bounds proven for it, if any."""
    bounds = [
        f"{metric.partition(' ')[2]} {format_value(bound, metric)}"
        for metric, bound in result.proven.items()
        if metric_of(metric).criterion == criterion.name
    ]
    if not bounds:
        return criterion.reason
    return f"{criterion.reason} Proven, for any attack on the share: {', '.join(bounds)} at most."


_TEMPLATE = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
# Every rating has a shape and a word besides its colour; borders, not fills, carry it through a printer without ink.
_STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")
_SHAPES: dict[Rating, str] = {"red": "■", "amber": "▲", "green": "●", "inconclusive": "?", "not tested": "○"}


def rating_badge(rating: Rating) -> str:
    """Return a rating as shape, word and colour, in HTML."""
    shape = f'<span aria-hidden="true">{_SHAPES[rating]}\u00a0</span>'
    return f'<span class="light {rating.replace(" ", "-")}">{shape}{rating}</span>'


def _shape(rating: Rating) -> str:
    """Return a rating's shape, with its word for screen readers."""
    name = rating.replace(" ", "-")
    return f'<span class="shape {name}" aria-hidden="true">{_SHAPES[rating]}</span><span class="unseen">{rating}</span>'


def _text(text: object) -> str:
    """Escape a text; a number keeps its per cent sign where a line breaks."""
    return html.escape(str(text)).replace(" %", "\u00a0%")


def _bullets(items: Sequence[str]) -> str:
    if not items:
        return "<p>Nothing stated.</p>"
    listed = "".join(f"<li>{_text(item)}</li>" for item in items)
    return f"<ul>{listed}</ul>"


def _page(result: AuditResult) -> str:
    """Build the page: HTML that needs nothing from outside."""
    criteria = result.all_criteria()
    n = 1
    if result.seeds is not None:
        n = len(result.seeds)
    among = f"; or from {result.n_open_candidates:,}, with strangers among them"
    sizes = {name: f"{getattr(result, name):,}" for name in vars(result) if name.startswith("n_")}
    records = "".join(f"<li>{one.index} <small>{_text(one.level)}</small></li>" for one in result.worst_records)
    by_rating = {rating: [one.name for one in criteria if one.rating == rating] for rating in RATINGS}
    verdict = "; ".join(f"{rating} for {join_words(names)}" for rating, names in by_rating.items() if names)
    guarantee = (
        '<section aria-labelledby="guarantee"><h2 id="guarantee">Differential privacy</h2>'
        f"<p>{_text(result.guarantee)}</p></section>\n"
    )
    metrics = dict.fromkeys(kind_of(one.metric) for one in result.findings)
    levels = _table(
        ["Level", "Who", "Holds", "Attacks"],
        [("", [one.name, one.title, "; ".join(one.holds), "; ".join(one.attacks)]) for one in result.levels],
        caption="Who attacks, with what in hand, and how.",
        kind="stacked named",
    )
    deciding = [criterion.finding for criterion in criteria]
    strongest: dict[tuple[str, str, str], Finding] = {}
    for one in result.findings:
        aim = one.level, one.leak, one.metric
        strongest[aim] = max(strongest.get(aim, one), one, key=strength)
    compared = (
        "Bold: the findings that decide a rating. Other rows: the same attack on rows that are not the party’s; what "
        "exceeds them is what the obfuscator memorised."
    )
    return _TEMPLATE.substitute(
        party=_text(result.party),
        style=_STYLE,
        facts=_text(" · ".join(_facts(result))),
        stopped="" if result.complete else f'<p class="stopped">{_STOPPED_EARLY}</p>',
        verdict=_text(verdict[:1].upper() + verdict[1:] + "."),
        cards="".join(_card(result, criterion) for criterion in criteria),
        **{rating: _shape(rating) for rating in RATINGS if rating != "not tested"},
        green_limit=f"{100 * GREEN_LIMIT:.0f}",
        amber_limit=f"{100 * AMBER_LIMIT:.0f}",
        open_limit=f"{100 * OPEN_WORLD_LIMIT:.0f}",
        attackers="".join(_attacker(result, level) for level in result.levels),
        among=among if result.n_open_candidates > result.n_candidates else "",
        records=f'<ol class="records">{records}</ol>' if records else f"<p>{_NONE_WORST.capitalize()}.</p>",
        assumed=_bullets(result.assumptions),
        gaps=_bullets(result.not_tested),
        proven=", but for what is called proven" if result.proven else "",
        repeats="the attacks were made once" if n == 1 else f"the attacks were made {n} times",
        guarantee="" if result.guarantee is None else guarantee,
        repetitions="One repetition" if n == 1 else f"Means of {n} repetitions",
        **sizes,
        seconds=f"{result.seconds:.0f}",
        version=_text(result.version),
        meanings="".join(f"<dt>{_text(name)}</dt><dd>{_text(metric_of(name).meaning)}</dd>" for name in metrics),
        levels=levels,
        strongest=_findings(strongest.values(), deciding, compared),
        n_findings=len(result.findings),
        findings=_findings(result.findings, deciding, "Every attack that was made."),
    )


def _card(result: AuditResult, criterion: Criterion) -> str:
    ratings: dict[str, Rating] = {}
    for level in result.levels:
        of_level = [one for one in result.findings if one.level == level.name]
        ratings[level.name] = criterion_of(of_level, criterion.name).rating
    tried = [f"<span>{_text(each)}\u00a0{_shape(of)}</span>" for each, of in ratings.items() if of != "not tested"]
    levels = ""
    if tried:
        levels = f'<p class="levels">{" ".join(tried)}</p>'
    return (
        f'<article class="card {criterion.rating.replace(" ", "-")}"><h3>{_text(criterion.name.capitalize())} '
        f'{rating_badge(criterion.rating)}</h3><p class="question">{_text(CRITERIA[criterion.name])}</p>'
        f'<p class="reason">{_text(_reason(result, criterion))}</p>{levels}</article>'
    )


def _attacker(result: AuditResult, level: Level) -> str:
    (text, finding, base) = _sentence_of(result, level)
    bar = ""
    if finding is not None:
        # It repeats the sentence, and so is hidden from screen readers.
        reached = f"<b>{round(finding.value * base):,}</b> of {base:,}"
        bar = f'<div class="reached" aria-hidden="true"><span>{reached}</span>{_bar(finding)}</div>'
    said = f'<span class="title">{_text(level.title)}</span>{_text(text)}'
    return f'<li><span class="name">{_text(level.name)}</span><p>{said}</p>{bar}</li>'


def _bar(finding: Finding) -> str:
    """Draw a share as SVG, hidden from screen readers, since the text beside it says the same."""

    def at(share: float) -> str:
        return f"{6 + 240 * min(max(share, 0.0), 1.0):.1f}"

    parts = [
        '<rect class="track" x="6" y="5" width="240" height="12"/>',
        *(f'<line class="tick" x1="{x}" x2="{x}" y1="5" y2="17"/>' for x in (186, 126, 66)),
        f'<rect class="filled" x="6" y="5" width="{240 * min(max(finding.value, 0.0), 1.0):.1f}" height="12"/>',
    ]
    if finding.low is not None and finding.high is not None:
        low = at(finding.low)
        high = at(finding.high)
        ends = f"M{low} 7v8M{high} 7v8M{low} 11H{high}"
        parts += [f'<path class="whisker halo" d="{ends}"/>', f'<path class="whisker" d="{ends}"/>']
    x = at(finding.floor)
    parts += [f'<line class="{name}" x1="{x}" x2="{x}" y1="1" y2="21"/>' for name in ("halo", "without")]
    return f'<svg class="bar" viewBox="0 0 252 22" aria-hidden="true" focusable="false">{"".join(parts)}</svg>'


def _table(names: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], *, caption: str, kind: str) -> str:
    """Build a table of rows (class, entries); the first four columns are texts, the first of them a heading."""

    def cell(position: int, entry: str) -> str:
        if position == 0:
            return f'<th scope="row">{_text(entry)}</th>'
        numeric = ' class="number"' * (position >= 4)
        # On a narrow page the style puts each entry on a line of its own, after the name of its column.
        return f'<td{numeric} data-name="{_text(names[position])}">{_text(entry)}</td>'

    head = "".join(
        f'<th scope="col"{" class=number" * (position >= 4)}>{_text(name)}</th>' for position, name in enumerate(names)
    )
    body = "".join(
        f"<tr{f' class={_text(name)}' if name else ''}>{''.join(cell(*pair) for pair in enumerate(entries))}</tr>"
        for name, entries in rows
    )
    return (
        f'<div class="wide" role="region" aria-label="{_text(caption)}" tabindex="0"><table class="{kind}">'
        f"<caption>{_text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


_COLUMNS = (
    *("Level", "Leaked besides", "Measure", "Attack", "Value", "95 % interval", "Labels alone", "Guessing", "Mean row"),
    *("Other rows", "Rows", "By seed", "Rating"),
)


def _findings(findings: Iterable[Finding], deciding: Sequence[Finding | None], caption: str) -> str:
    """Build the table of findings, those that decide a criterion in bold."""
    rows = []
    for one in findings:
        compared = (one.baseline, one.chance, one.mean_reconstruction, one.control)
        value, low, high, *others = (
            format_value(each, one.metric) for each in (one.value, one.low, one.high, *compared)
        )
        interval = "–"
        if one.low is not None and one.high is not None:
            interval = f"{low.removesuffix(' %')} to {high}"
        entries = [
            *(one.level, one.leak, one.metric, one.attack, value, interval),
            *(*others, f"{one.n:,}", " ".join(decimal(each) for each in one.per_seed) or "–"),
            _light(one) or "reported",
        ]
        rows.append(("headline" if one in deciding else "", entries))
    return _table(_COLUMNS, rows, caption=caption, kind="findings")
