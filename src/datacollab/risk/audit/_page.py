"""The page for a data protection officer: the essentials on one sheet, then an appendix."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from ._criteria import (
    RATINGS,
    Criterion,
    Rating,
    criterion_of,
    decimal,
    grouped,
    joined,
    percent,
    rating_of,
    shown,
    strength,
)
from ._facts import AuditFacts
from ._findings import AMBER_LIMIT, CRITERIA, GREEN_LIMIT, OPEN_WORLD_LIMIT, Finding, metric_of
from ._sentences import STOPPED_EARLY, Sentence, facts, proven_text, sentence_of

__all__ = ["audit_page", "rating_badge", "text_html"]

# Every rating has a shape and a word besides its colour; borders, not fills, carry it through a printer without ink.
STYLE = """
:root { --ink: #1d2329; --soft: #55606b; --line: #d5dbe1; --panel: #f6f8fa;
  --red: #a3260f; --amber: #8a5a00; --green: #00664b; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink);
  max-width: 66rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 0; } .appendix h3 { margin-top: 1.4rem; }
p { margin: .4rem 0; }
.kicker { text-transform: uppercase; letter-spacing: .08em; font-size: .75rem; color: var(--soft); margin: 0 0 .2rem; }
.facts, .note { color: var(--soft); font-size: .88rem; overflow-wrap: anywhere; }
.verdict { font-size: 1.3rem; margin: 1.1rem 0 .8rem; }
.stopped { border: 2px solid var(--ink); padding: .5rem .8rem; font-weight: 600; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(14rem, 1fr)); gap: .8rem; }
.card { border: 1px solid var(--line); border-top-width: 5px; border-radius: .35rem; padding: .7rem .8rem; }
.card h3 { display: flex; flex-wrap: wrap; justify-content: space-between; align-items: baseline;
  gap: 0 .5rem; }
.card h3::first-letter { text-transform: uppercase; }
.card .question { color: var(--soft); font-size: .85rem; margin: .15rem 0 .4rem; }
.card .reason { font-size: .88rem; overflow-wrap: anywhere; }
.card .levels { font-size: .85rem; margin-bottom: 0; display: flex; flex-wrap: wrap; gap: 0 .8rem; }
.light { font-weight: 700; font-size: .85rem; white-space: nowrap; border: 1.5px solid; border-radius: 1rem;
  padding: .05rem .55rem; color: var(--soft); }
.card.red { border-top-color: var(--red); } .card.amber { border-top-color: var(--amber); }
.card.green { border-top-color: var(--green); }
.card.inconclusive, .card.not-tested { border-top: 5px dashed var(--soft); }
.light.red { color: #fff; background: var(--red); border-color: var(--red); }
.light.amber { color: var(--amber); border-color: var(--amber); }
.light.green { color: var(--green); border-color: var(--green); }
.attackers { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line); }
.attackers li { display: grid; grid-template-columns: 2.6rem minmax(0, 1fr) 13rem; gap: .2rem 1rem; padding: .65rem 0;
  border-bottom: 1px solid var(--line); break-inside: avoid; }
.attackers .name { font-weight: 700; }
.attackers p { margin: 0; overflow-wrap: anywhere; }
.attackers .title { font-weight: 600; }
.attackers .title::after { content: ". "; }
.bar { width: 100%; height: auto; align-self: center; display: block; }
.bar .track { fill: #fff; stroke: #7b868f; } .bar .filled { fill: #35576f; }
.bar .whisker { stroke: #000; stroke-width: 2; fill: none; }
.bar .halo { stroke: #fff; stroke-width: 5; }
.bar .without { stroke: #000; stroke-width: 2; stroke-dasharray: 3 2; }
.bar .tick { stroke: #b9c1c8; }
.reached { align-self: center; } .reached b { font-size: 1.35rem; }
.unseen { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; white-space: nowrap; }
.shape.red { color: var(--red); } .shape.amber { color: var(--amber); } .shape.green { color: var(--green); }
.columns { display: grid; grid-template-columns: repeat(auto-fit, minmax(16rem, 1fr)); gap: 0 2rem; }
.columns ul { margin: 0; padding-left: 1.1rem; font-size: .9rem; }
.records { display: flex; flex-wrap: wrap; gap: .4rem; list-style: none; padding: 0; margin: .3rem 0; }
.records li { border: 1px solid var(--line); border-radius: .3rem; padding: .1rem .5rem;
  font-variant-numeric: tabular-nums; }
.records small { color: var(--soft); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .4rem; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { border-bottom: 2px solid #7b868f; vertical-align: bottom; }
tbody th { font-weight: 600; }
.number { text-align: right; white-space: nowrap; }
.findings { font-size: .74rem; } .findings th, .findings td { padding: .2rem .35rem; font-weight: 400; }
.findings td:nth-child(3), .findings td:nth-child(2) { min-width: 8rem; }
.findings td:nth-child(12) { white-space: normal; min-width: 5.5rem; }
.findings thead th { font-weight: 600; white-space: normal; }
.findings .headline th, .findings .headline td { font-weight: 700; }
.signature { display: grid; grid-template-columns: 2fr 1fr 2fr; gap: 1.5rem; margin-top: 2.2rem; font-size: .85rem; }
.signature span { border-top: 1px solid #7b868f; padding-top: .2rem; color: var(--soft); margin-top: 1.6rem; }
.appendix { margin-top: 3.5rem; border-top: 3px solid var(--ink); }
dl { display: grid; grid-template-columns: 14rem minmax(0, 1fr); gap: .15rem 1rem; font-size: .88rem; }
dt { font-weight: 600; } dd { margin: 0; }
summary { cursor: pointer; font-size: .88rem; }
@media (max-width: 46rem) {
  body { padding: 1.2rem 1rem 3rem; }
  .attackers li { grid-template-columns: 2.4rem minmax(0, 1fr); }
  .attackers .reached { grid-column: 2; max-width: 20rem; }
  dl { grid-template-columns: minmax(0, 1fr); } dd { margin-bottom: .4rem; }
  .signature { grid-template-columns: minmax(0, 1fr); gap: .2rem; }
  .stacked thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px; overflow: hidden; }
  .stacked tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  .stacked th, .stacked td { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: .1rem 0;
    text-align: left; white-space: normal; }
  .stacked td.number::before { content: attr(data-name); color: var(--soft); }
}
@media screen and (max-width: 46rem) {
  .named td::before { content: attr(data-name); color: var(--soft); flex: 0 0 4.5rem; }
  .named td { justify-content: start; }
  .findings caption { position: sticky; left: 0; max-width: calc(100vw - 2rem); }
  .findings caption::after { content: " The table scrolls sideways."; }
}
@page { size: A4; margin: 9mm 12mm; }
@page appendix { size: A4 landscape; margin: 12mm; }
@media print {
  body { font-size: 7.8pt; line-height: 1.25; max-width: none; padding: 0; }
  h1 { font-size: 13pt; } h2 { font-size: 10pt; margin: 1.6mm 0 .5mm; break-after: avoid; } h3 { font-size: 9pt; }
  p { margin: .5mm 0; } .kicker { font-size: 7pt; margin: 0; } .verdict { font-size: 10.5pt; margin: 1.2mm 0; }
  .facts, .note, .columns ul, table, dl, caption, .card .question, .card .reason, .card .levels { font-size: 7.5pt; }
  caption { padding-bottom: .5mm; }
  .cards { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 2mm; }
  .card { padding: 1.2mm 2mm; border-top-width: 1.2mm; }
  .card .question { margin: .3mm 0 .8mm; } .rating { font-size: 7.5pt; padding: 0 1.4mm; } .card h3 { gap: 0 1mm; }
  .attackers li { grid-template-columns: 7mm minmax(0, 1fr) 22mm; gap: 0 3mm; padding: .6mm 0; }
  .reached b { font-size: 10.5pt; line-height: 1; } .bar { margin-top: .4mm; }
  .columns { grid-template-columns: 6fr 13fr 11fr; gap: 0 4mm; } .columns ul { padding-left: 3mm; }
  .records { gap: .8mm; margin: .5mm 0; } .records li { padding: 0 1mm; }
  th, td { padding: .35mm 1.4mm; } .stacked tbody th { white-space: nowrap; }
  .stacked:not(.named) td:nth-child(2) { width: 50%; }
  .wide { overflow: visible; }
  .signature { margin: 0; gap: 8mm; font-size: 7pt; } .signature span { margin-top: 5mm; padding-top: .4mm; }
  .appendix { page: appendix; break-before: page; margin: 0; border-top: 0; } .appendix h3 { margin-top: 3mm; }
  dl { grid-template-columns: 42mm minmax(0, 1fr); gap: .3mm 4mm; margin: 1mm 0; }
  .findings { font-size: 7pt; } .findings th, .findings td { padding: .25mm 1mm; }
  .findings thead th { white-space: normal; } .findings td:nth-child(12) { white-space: nowrap; }
  thead { display: table-header-group; } tr { break-inside: avoid; }
  .light.red, .bar .filled { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""


_SHAPES: dict[Rating, str] = {"red": "■", "amber": "▲", "green": "●", "inconclusive": "?", "not tested": "○"}


def text_html(text: object) -> str:
    """Escape a text; a number keeps its per cent sign where a line breaks."""
    return html.escape(str(text)).replace(" %", "\u00a0%")


def rating_class(rating: Rating) -> str:
    """Name of a rating's class."""
    return rating.replace(" ", "-")


def shape_html(rating: Rating) -> str:
    """A rating's shape, with its word for screen readers."""
    return (
        f'<span class="shape {rating_class(rating)}" aria-hidden="true">{_SHAPES[rating]}</span>'
        f'<span class="unseen">{rating}</span>'
    )


def rating_badge(rating: Rating) -> str:
    """A rating as shape, word and colour."""
    shape = f'<span aria-hidden="true">{_SHAPES[rating]}\u00a0</span>'
    return f'<span class="light {rating_class(rating)}">{shape}{rating}</span>'


def bullets(items: Iterable[str]) -> str:
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{text_html(item)}</li>' for item in items)}</ul>"


def table_html(
    names: Sequence[str],
    rows: Iterable[tuple[str, Sequence[str]]],
    *,
    caption: str,
    n_texts: int,
    kind: str = "",
) -> str:
    """A table whose first `n_texts` columns are texts, the first of them the row's heading, and the others numbers.

    Parameters
    ----------
    names : sequence of str
    rows : iterable of (str, sequence of str)
        Class of the row, and its entries.
    caption : str
    n_texts : int
    kind : str
        Classes of the table.
    """

    def cell(position: int, entry: str) -> str:
        tag, scope = ("th", ' scope="row"') if position == 0 else ("td", "")
        numeric = ' class="number"' if position >= n_texts else ""
        label = f' data-name="{text_html(names[position])}"' if position else ""
        return f"<{tag}{scope}{numeric}{label}>{text_html(entry)}</{tag}>"

    head = "".join(
        f'<th scope="col"{" class=number" if position >= n_texts else ""}>{text_html(name)}</th>'
        for position, name in enumerate(names)
    )
    body = "".join(
        f"<tr{f' class={text_html(name)}' if name else ''}>{''.join(cell(*pair) for pair in enumerate(entries))}</tr>"
        for name, entries in rows
    )
    return (
        f'<div class="wide" role="region" aria-label="{text_html(caption)}" tabindex="0"><table class="{kind}">'
        f"<caption>{text_html(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


_LEFT, _WIDTH, _TOP, _HEIGHT = 6.0, 240.0, 5.0, 12.0


def bar_svg(finding: Finding) -> str:
    """Draw a share as SVG.  It repeats what the text beside it says, and so is hidden from screen readers."""
    middle, bottom = _TOP + _HEIGHT / 2, _TOP + _HEIGHT
    reached = _at(finding.value) - _LEFT
    parts = [
        f'<rect class="track" x="{_LEFT:g}" y="{_TOP:g}" width="{_WIDTH:g}" height="{_HEIGHT:g}"/>',
        f'<rect class="filled" x="{_LEFT:g}" y="{_TOP:g}" width="{reached:.1f}" height="{_HEIGHT:g}"/>',
    ]
    if finding.low is not None and finding.high is not None:
        low, high = _at(finding.low), _at(finding.high)
        ends = f"M{low:.1f} {middle - 4:g}v8M{high:.1f} {middle - 4:g}v8M{low:.1f} {middle:g}H{high:.1f}"
        parts += [f'<path class="whisker halo" d="{ends}"/>', f'<path class="whisker" d="{ends}"/>']
    x = _at(finding.floor)
    for name in ("halo", "without"):
        parts.append(f'<line class="{name}" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 4:g}" y2="{bottom + 4:g}"/>')
    for share in (0.25, 0.5, 0.75):
        at = _at(share)
        parts.insert(1, f'<line class="tick" x1="{at:g}" x2="{at:g}" y1="{_TOP:g}" y2="{bottom:g}"/>')
    return (
        f'<svg class="bar" viewBox="0 0 {2 * _LEFT + _WIDTH:g} {bottom + _TOP:g}" aria-hidden="true" '
        f'focusable="false">{"".join(parts)}</svg>'
    )


def _at(share: float) -> float:
    return _LEFT + _WIDTH * min(max(share, 0.0), 1.0)


_NAMES = (
    *("Level", "Leaked besides", "Measure", "Attack", "Value", "95 % interval", "Labels alone", "Guessing", "Mean row"),
    *("Other rows", "Rows", "By seed", "Rating"),
)


def appendix_html(result: AuditFacts) -> str:
    """Set what a reader needs to check the page."""
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
    best, every = (
        [("headline" if one in deciding else "", _entries(one)) for one in findings]
        for findings in (strongest.values(), result.findings)
    )
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
{table_html(_NAMES, best, caption=_CAPTION, n_texts=4, kind="findings")}
<h3>All findings</h3>
<details><summary>All {len(every)} findings; printed if opened</summary>
{table_html(_NAMES, every, caption="Every attack that was made.", n_texts=4, kind="findings")}</details>
</section>"""


_CAPTION = (
    "Bold: the findings that decide a rating. Other rows: the same attack on rows that are "
    "not the party’s; what exceeds them is what the obfuscator memorised."
)


def _entries(finding: Finding) -> list[str]:
    def number(value: float | None) -> str:
        return shown(value, finding.metric)

    interval = "–"
    if finding.low is not None and finding.high is not None:
        interval = f"{number(finding.low).removesuffix(' %')} to {number(finding.high)}"
    return [
        finding.level,
        finding.leak,
        finding.metric,
        finding.attack,
        number(finding.value),
        interval,
        number(finding.baseline),
        number(finding.chance),
        number(finding.mean_reconstruction),
        number(finding.control),
        grouped(finding.n),
        " ".join(decimal(value) for value in finding.per_seed) or "–",
        rating_of(finding) if metric_of(finding.metric).criterion else "reported",
    ]


_LIMITS = (
    "Limits. “At most” is over the attacks tried (the appendix names them) and their intervals{proven}, for attackers "
    "who hold what is said and no more. A better attack may exist: a low figure says what these attacks reached, and "
    "no more. Intervals are too narrow, since the rows of a party share one obfuscator: {repeats}, and another audit "
    "may give another rating where a figure is near its limit. Averages hide single records."
)


def audit_page(result: AuditFacts) -> str:
    """Write the page: HTML that needs nothing from outside."""
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
        f"{100 * GREEN_LIMIT:.0f} points over labels alone, and tells at most {100 * OPEN_WORLD_LIMIT:.0f}\u00a0%",
        f"among strangers. {shape_html('amber')} amber: at most {100 * AMBER_LIMIT:.0f} of either.",
        f"{shape_html('red')} red: more. {shape_html('inconclusive')} inconclusive: no attack did better than labels",
        "alone, which shows nothing; whoever holds more can also do what is done with less. Any rating but green calls",
        "for a documented risk analysis. Membership is not one of the three criteria; it is judged alike.",
    )
)


def _limits(result: AuditFacts) -> str:
    """What figures do not say."""
    proven = ", but for what is called proven" if result.proven else ""
    n = result.n_repetitions
    repeats = "the attacks were made once" if n == 1 else f"the attacks were made {n} times"
    return _LIMITS.format(proven=proven, repeats=repeats)


def _verdict(criteria: tuple[Criterion, ...]) -> str:
    """The ratings in one sentence, worst first."""
    told = []
    for rating in RATINGS:
        names = [criterion.name for criterion in criteria if criterion.rating == rating]
        if names:
            told.append(f"{rating} for {joined(names)}")
    sentence = "; ".join(told)
    return text_html(sentence[:1].upper() + sentence[1:] + ".")


def _card(result: AuditFacts, criterion: Criterion) -> str:
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


def _attackers(result: AuditFacts) -> str:
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
    """The sentence at a glance; it repeats the text beside it, and so is hidden from screen readers."""
    assert sentence.finding is not None
    reached = f"<b>{text_html(sentence.count)}</b> of {grouped(sentence.base)}"
    return f'<div class="reached" aria-hidden="true"><span>{reached}</span>{bar_svg(sentence.finding)}</div>'


def _records(result: AuditFacts) -> str:
    items = "".join(
        f"<li>{record.index} <small>{text_html(record.level)}</small></li>" for record in result.worst_records
    )
    listed = f'<ol class="records">{items}</ol>' if items else "<p>None listed.</p>"
    return (
        f'<section aria-labelledby="records"><h2 id="records">Worst-placed records</h2>{listed}<p class="note">'
        "Positions in the table, the first being 0, and who singles them out best.</p></section>"
    )


def _defences(result: AuditFacts) -> str:
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


def _assumed(result: AuditFacts) -> str:
    items = bullets(result.assumptions) if result.assumptions else "<p>Nothing stated.</p>"
    return f'<section aria-labelledby="assumed"><h2 id="assumed">What was assumed</h2>{items}</section>'


def _gaps(result: AuditFacts) -> str:
    items = bullets(result.not_tested) if result.not_tested else "<p>Nothing stated.</p>"
    return f'<section aria-labelledby="gaps"><h2 id="gaps">What was not tested</h2>{items}</section>'


def _guarantee(result: AuditFacts) -> str:
    if result.guarantee is None:
        return ""
    return (
        '<section aria-labelledby="guarantee"><h2 id="guarantee">Differential privacy</h2>'
        f"<p>{text_html(result.guarantee)}</p></section>\n"
    )
