"""The page's appendix: measures, threat levels, and every finding."""

from __future__ import annotations

from ._criteria import light_of, strength
from ._facts import AuditFacts
from ._findings import Finding
from ._html import table_html, text_html
from ._metrics import metric_of
from ._wording import decimal, grouped, shown

__all__ = ["appendix_html"]

_NAMES = (
    *("Level", "Leaked besides", "Measure", "Attack", "Value", "95 % interval", "Labels alone", "Guessing", "Mean row"),
    *("Other rows", "Rows", "By seed", "Light"),
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
    "Bold: the findings that decide a light. Other rows: the same attack on rows that are "
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
        light_of(finding) if metric_of(finding.metric).criterion else "reported",
    ]
