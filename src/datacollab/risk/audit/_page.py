"""The page for a data protection officer: the essentials on one printed sheet; see `_appendix` for the rest."""

from __future__ import annotations

from ._appendix import appendix_html
from ._bar import bar_svg
from ._criteria import LIGHTS, Criterion, criterion_of
from ._facts import AuditFacts
from ._html import bullets, light_badge, light_class, shape_html, table_html, text_html
from ._metrics import AMBER_LIMIT, CRITERIA, GREEN_LIMIT, OPEN_WORLD_LIMIT
from ._sentences import Sentence, sentence_of
from ._style import STYLE
from ._text import STOPPED_EARLY, facts, proven_text
from ._wording import decimal, grouped, joined, percent

__all__ = ["audit_page"]

_LIMITS = (
    "Limits. “At most” is over the attacks tried (the appendix names them) and their intervals{proven}, for attackers "
    "who hold what is said and no more. A better attack may exist: a low figure says what these attacks reached, and "
    "no more. Intervals are too narrow, since the rows of a party share one obfuscator: {repeats}, and another audit "
    "may give another light where a figure is near its limit. Averages hide single records."
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
        "alone, which shows nothing; whoever holds more can also do what is done with less. Any light but green calls",
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
    """The lights in one sentence, worst first."""
    told = []
    for light in LIGHTS:
        names = [criterion.name for criterion in criteria if criterion.light == light]
        if names:
            told.append(f"{light} for {joined(names)}")
    sentence = "; ".join(told)
    return text_html(sentence[:1].upper() + sentence[1:] + ".")


def _card(result: AuditFacts, criterion: Criterion) -> str:
    by_level = [
        (level.name, criterion_of([one for one in result.findings if one.level == level.name], criterion.name).light)
        for level in result.levels
    ]
    lights = " ".join(
        f"<span>{text_html(name)}\u00a0{shape_html(light)}</span>" for name, light in by_level if light != "not tested"
    )
    levels = f'<p class="levels">{lights}</p>' if lights else ""
    return (
        f'<article class="card {light_class(criterion.light)}"><h3>{text_html(criterion.name.capitalize())} '
        f'{light_badge(criterion.light)}</h3><p class="question">{text_html(CRITERIA[criterion.name])}</p>'
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
