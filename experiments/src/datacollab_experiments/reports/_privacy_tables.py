"""Utility and reconstruction side by side, and every attack in full."""

from collections.abc import Iterable, Sequence

from ..claims import Estimate, by_axes, by_seed, estimate, in_order
from ..paper import AUDIT, Row
from ._cells import (
    INTERVALS,
    by_name,
    cell,
    comparison_note,
    find_value,
    headings_of,
    join_sentences,
    methods_line,
    methods_table,
    size_note,
    slug,
)
from ._table import Line, ReportTable, TableCell, mark_best

# The method whose accuracy stands for utility in the trade-off.
UTILITY = "KTI+TSL"

TRADE_OFF = "tab:rq4-tradeoff-main-wide"
INTEGRATION = "tab:rq4-integration-accuracy-wide"
_HEADINGS = ("data set", "obfuscator", "dimension")
_AXES = ("dataset", "obfuscator", "n_components")


def privacy_tables(rows: Sequence[Row]) -> list[ReportTable]:
    """For each preset of hyperparameters: the trade-off, the integration methods, and all attacks."""
    tables = []
    for (preset,), group in by_axes(rows, "hyperparameters").items():
        where = f"{preset} hyperparameters"
        methods = [row for row in group if row.kind == "method"]
        attacks = papers_attacks(group)
        if attacks:
            tables.append(_trade_off(slug(f"rq4_trade-off_{preset}"), where, group))
        if methods:
            tables.append(_integration(f"rq4_integration_{preset}", where, methods))
        if attacks:
            tables.append(_attacks(slug(f"rq4_attacks_{preset}"), where, attacks))
    return tables


def papers_attacks(rows: Iterable[Row]) -> list[Row]:
    """Rows of attacks that a judge looks at; the audit has measures of its own."""
    return [row for row in rows if row.kind == "attack" and row.name != AUDIT]


def strongest_attack(rows: Sequence[Row]) -> tuple[str, list[Row]] | None:
    """The attack with the highest mean reconstruction accuracy, and its rows; None where no attack has a value."""
    attacks = by_name(papers_attacks(rows))
    intervals = {name: estimate(attack, "reconstruction_accuracy").interval for name, attack in attacks.items()}
    means = {name: interval.mean for name, interval in intervals.items() if interval is not None}
    if not means:
        return None
    strongest = max(means, key=lambda name: means[name])
    return strongest, attacks[strongest]


def _trade_off(name: str, where: str, rows: Sequence[Row]) -> ReportTable:
    lines = tuple(_trade_off_line(headings_of(*key), part) for key, part in by_axes(rows, *_AXES).items())
    note = (
        f"{INTERVALS} Accuracy: of {UTILITY}. Reconstruction: share of the strongest attack's reconstructions that a "
        "judge puts into the class of the original. Largest class: share that the judge puts into one and the same "
        "class; near 1, the attack tells nothing about single rows."
    )
    columns = ("accuracy", "reconstruction", "strongest attack", "largest class")
    caption = f"RQ4: accuracy and reconstruction, {where}"
    note = join_sentences(note, comparison_note(lines), size_note(rows, ["n_components"]))
    return ReportTable(name, "rq4", caption, TRADE_OFF, _HEADINGS, columns, lines, note)


def _trade_off_line(headings: tuple[str, ...], rows: Sequence[Row]) -> Line:
    published = find_value(TRADE_OFF, rows[0].condition, "reconstruction")
    # The paper names the strongest attack beside each of its values.
    their_attack = (published.attack or "") if published is not None else ""
    found = strongest_attack(rows)
    if found is None:
        n_failed = len(papers_attacks(rows))
        risk = [
            TableCell(Estimate(None, n_failed), published=published),
            TableCell(published_text=their_attack),
            TableCell(),
        ]
    else:
        strongest, attack = found
        risk = [
            TableCell(estimate(attack, "reconstruction_accuracy"), published=published),
            TableCell(text=strongest, published_text=their_attack),
            TableCell(Estimate(estimate(attack, "most_common_share").interval)),
        ]
    # Utility and risk are of one trial each: the same parties, maps and anchor.
    utility = [row for row in rows if row.kind == "method" and row.name == UTILITY]
    return Line(headings, (cell(utility, "accuracy", TRADE_OFF), *risk))


def _integration(name: str, where: str, rows: Sequence[Row]) -> ReportTable:
    names = in_order(row.name for row in rows)
    groups = by_axes(rows, *_AXES).items()
    lines = [methods_line(headings_of(*key), names, part, "accuracy", INTEGRATION) for key, part in groups]
    caption = f"RQ4: accuracy of integration methods, {where}"
    return methods_table(name, "rq4", caption, INTEGRATION, _HEADINGS, names, lines, size_note(rows, ["n_components"]))


def _attacks(name: str, where: str, rows: Sequence[Row]) -> ReportTable:
    names = in_order(row.name for row in rows)
    lines = []
    for key, part in by_axes(rows, *_AXES).items():
        attacks = by_name(part)
        cells = [cell(attacks.get(attack, []), "reconstruction_accuracy") for attack in names]
        # Every attack of a trial carries the two baselines; the one with fewest failures has most of them.
        whole = max(attacks.values(), key=lambda attack: len(by_seed(attack, "original_accuracy")))
        cells += [TableCell(Estimate(estimate(whole, measure).interval))
                  for measure in ("mean_image_accuracy", "original_accuracy")]  # fmt: skip
        lines.append(mark_best(Line(headings_of(*key), tuple(cells)), [True] * len(names) + [False, False]))
    note = (
        f"{INTERVALS} Mean image: a reconstruction that always is the mean leaked row. Originals: the judge on the "
        "original rows themselves. Bold: the strongest attack, ties included."
    )
    caption = f"RQ4: reconstruction accuracy of every attack, {where}"
    columns = (*names, "mean image", "originals")
    return ReportTable(name, "rq4", caption, TRADE_OFF, _HEADINGS, columns, tuple(lines), note)
