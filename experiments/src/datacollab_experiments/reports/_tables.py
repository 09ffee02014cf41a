"""The tables of a report: pure functions from rows."""

from collections.abc import Iterable, Mapping, Sequence

from ..claims import Estimate, anchor_series, by_axes, by_seed, estimate, in_order, slope
from ..paper import AUDIT, Row
from ._table import (
    INTERVALS,
    OBFUSCATORS,
    TEXTS,
    Line,
    ReportTable,
    TableCell,
    by_name,
    cell,
    comparison_note,
    find_value,
    headings_of,
    join_sentences,
    mark_best,
    methods_line,
    methods_table,
    size_note,
    slug,
)

# The method whose accuracy stands for utility in the trade-off.
UTILITY = "KTI+TSL"

TRADE_OFF = "tab:rq4-tradeoff-main-wide"
INTEGRATION = "tab:rq4-integration-accuracy-wide"
_OBFUSCATION_HEADINGS = ("data set", "obfuscator", "dimension")
_OBFUSCATION = ("dataset", "obfuscator", "n_components")


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
    lines = tuple(_trade_off_line(headings_of(*key), part) for key, part in by_axes(rows, *_OBFUSCATION).items())
    note = (
        f"{INTERVALS} Accuracy: of {UTILITY}. Reconstruction: share of the strongest attack's reconstructions that a "
        "judge puts into the class of the original. Largest class: share that the judge puts into one and the same "
        "class; near 1, the attack tells nothing about single rows."
    )
    columns = ("accuracy", "reconstruction", "strongest attack", "largest class")
    caption = f"RQ4: accuracy and reconstruction, {where}"
    note = join_sentences(note, comparison_note(lines), size_note(rows, ["n_components"]))
    return ReportTable(name, "rq4", caption, TRADE_OFF, _OBFUSCATION_HEADINGS, columns, lines, note)


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
    groups = by_axes(rows, *_OBFUSCATION).items()
    lines = [methods_line(headings_of(*key), names, part, "accuracy", INTEGRATION) for key, part in groups]
    caption = f"RQ4: accuracy of integration methods, {where}"
    return methods_table(
        name, "rq4", caption, INTEGRATION, _OBFUSCATION_HEADINGS, names, lines, size_note(rows, ["n_components"])
    )


def _attacks(name: str, where: str, rows: Sequence[Row]) -> ReportTable:
    names = in_order(row.name for row in rows)
    lines = []
    for key, part in by_axes(rows, *_OBFUSCATION).items():
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
    return ReportTable(name, "rq4", caption, TRADE_OFF, _OBFUSCATION_HEADINGS, columns, tuple(lines), note)


_UTILITY = "KTI+TSL+Center"
_AXES = ("dataset", "obfuscator", "n_components", "out_of_sample", "defence")
_HEADINGS = ("data set", "obfuscator", "dimension", "new rows", "defence")
_NEW_ROWS = {"umap": "umap-learn’s transform", "row-wise": "row by row"}
# Scores of the audit, and how the table calls them.
_RISKS = {
    "linkage": "linkage",
    "linkage_labels": "labels alone",
    "open_world_linkage": "open-world linkage",
    "r2c": "R2c",
    "membership_auc": "membership, share",
    "map_membership_auc": "membership, f alone",
    "zero_leak_reidentification": "zero-leak re-identification",
}


def risk_tables(rows: Sequence[Row]) -> list[ReportTable]:
    """For each experiment and preset of hyperparameters: utility, the paper's measure, and the audit's.

    Parameters
    ----------
    rows : sequence of Row
        Rows of experiments with the attack "audit".
    """
    tables = []
    for experiment in sorted({row.experiment for row in rows}):
        of_experiment = [row for row in rows if row.experiment == experiment]
        for (preset,), group in by_axes(of_experiment, "hyperparameters").items():
            tables.append(_risk_table(experiment, preset, group))
    return tables


def _risk_table(experiment: str, preset: str, rows: Sequence[Row]) -> ReportTable:
    measure = "accuracy"
    if any("rmse" in row.scores for row in rows):
        measure = "rmse"
    reconstructed = bool(papers_attacks(rows))
    lines = tuple(_line(measure, reconstructed, part) for part in by_axes(rows, *_AXES).values())
    utility = "accuracy"
    if measure == "rmse":
        utility = "RMSE"
    columns = (utility, *["reconstruction"][:reconstructed], *_RISKS.values())
    note = join_sentences(
        INTERVALS,
        f"{utility[0].upper()}{utility[1:]}: of {_UTILITY}.",
        TEXTS["reconstruction_note"] * reconstructed,
        TEXTS["audit_note"],
        comparison_note(lines),
        size_note(rows, ["n_components"]),
    )
    caption = f"RQ4 extended: utility and risk, {preset} hyperparameters"
    source = TRADE_OFF if reconstructed else ""
    return ReportTable(slug(f"{experiment}_{preset}"), experiment, caption, source, _HEADINGS, columns, lines, note)


def _line(measure: str, reconstructed: bool, rows: Sequence[Row]) -> Line:
    condition = rows[0].condition
    by_umap = condition.obfuscator == "umap"
    # The paper has no defence, and knows one way for UMAP to map new rows.
    in_paper = condition.defence == "none" and not (by_umap and condition.out_of_sample != "umap")
    headings = (
        condition.dataset,
        OBFUSCATORS.get(condition.obfuscator, condition.obfuscator),
        str(condition.n_components),
        _NEW_ROWS[condition.out_of_sample] * by_umap,
        condition.defence,
    )
    utility = [row for row in rows if row.kind == "method" and row.name == _UTILITY]
    cells = [cell(utility, measure, INTEGRATION * in_paper)]
    if reconstructed:
        cells.append(_reconstruction(rows, in_paper))
    audited = [row for row in rows if row.kind == "attack" and row.name == AUDIT]
    first, *others = (estimate(audited, score) for score in _RISKS)
    # All scores of a row fail together, and are to be counted once.
    cells += [TableCell(first), *(TableCell(Estimate(found.interval)) for found in others)]
    return Line(headings, tuple(cells), decimals=2 if measure == "rmse" else 3)


def _reconstruction(rows: Sequence[Row], in_paper: bool) -> TableCell:
    found = strongest_attack(rows)
    if found is None:
        return TableCell(Estimate(None, len(papers_attacks(rows))))
    published = find_value(TRADE_OFF, rows[0].condition, "reconstruction") if in_paper else None
    return TableCell(estimate(found[1], "reconstruction_accuracy"), published=published)


# Figures of the paper about times, by the key of ``Row.seconds``.
TIME_FIGURES = {"construct": "fig:rq3_func_time", "represent": "fig:rq3_repr_time"}

_REGRESSION = "tab:recon-score-2datasets-transposed-se"


def result_tables(rows: Mapping[str, Sequence[Row]]) -> list[ReportTable]:
    """All tables that the rows give, in the order of the experiments.

    Parameters
    ----------
    rows : mapping of str to sequence of Row
        Rows by experiment; experiments that no table is made for are passed over.
    """
    tables = []
    for experiment, source in (("rq1", "fig:num-existing"), ("rq2", "fig:num_2")):
        tables += _by_parties(experiment, source, rows.get(experiment, ()))
    tables += _by_anchors(rows.get("rq3", ()))
    tables += privacy_tables(rows.get("rq4", ()))
    tables += risk_tables([*rows.get("rq4-risks", ()), *rows.get("rq4-risks-table", ())])
    tables += _regression([*rows.get("regression", ()), *rows.get("slice", ())])
    return tables


def _by_parties(experiment: str, source: str, rows: Sequence[Row]) -> list[ReportTable]:
    tables = []
    for (dataset, preset), group in by_axes(rows, "dataset", "hyperparameters").items():
        names = in_order(row.name for row in group)
        lines = [
            methods_line((str(n_parties),), names, part, "accuracy", source)
            for (n_parties,), part in by_axes(group, "n_parties").items()
        ]
        caption = f"{experiment.upper()}: accuracy by number of parties K on {dataset}, {preset} hyperparameters"
        name = f"{experiment}_{dataset}_{preset}"
        tables.append(methods_table(name, experiment, caption, source, ("K",), names, lines))
    return tables


def _by_anchors(rows: Sequence[Row]) -> list[ReportTable]:
    tables = []
    for (dataset, preset), group in by_axes(rows, "dataset", "hyperparameters").items():
        where = f"on {dataset}, {preset} hyperparameters"
        # Two series share conditions: more anchors from as many rows, and as many from more rows.
        quantity, quality = anchor_series(group)
        for what, part, axis, heading, source in (
            ("quantity", quantity, "n_anchors", "anchors", "fig:rq3_size"),
            ("quality", quality, "n_sources", "source rows", "fig:rq3_quality"),
        ):
            names = in_order(row.name for row in part)
            lines = [
                methods_line(("all" if value is None else str(value),), names, points, "accuracy", source)
                for (value,), points in by_axes(part, axis).items()
            ]
            if lines:
                caption = f"RQ3: accuracy by number of {heading} {where}"
                name = f"rq3_{what}_{dataset}_{preset}"
                tables.append(methods_table(name, "rq3", caption, source, (heading,), names, lines))
        for measure, what in (
            ("construct", "seconds to construct all g_k"),
            ("represent", "seconds to represent the test rows of all parties"),
        ):
            # A failed row belongs to every table, so that it is counted there.
            timed = [row for row in quantity if row.error is not None or measure in row.seconds]
            if any(row.error is None for row in timed):
                name = slug(f"rq3_seconds-{measure}_{dataset}_{preset}")
                caption = f"RQ3: {what} by number of anchors {where}"
                tables.append(_times(name, measure, caption, timed))
    return tables


def _times(name: str, measure: str, caption: str, rows: Sequence[Row]) -> ReportTable:
    methods = by_name(rows)
    lines = []
    for (size,), part in by_axes(rows, "n_anchors").items():
        at_size = by_name(part)
        lines.append(Line((str(size),), tuple(cell(at_size.get(method, []), measure) for method in methods), None))
    # A slope has no printed value, and failures are counted in the lines above.
    slopes = (TableCell(Estimate(slope(part, "n_anchors", measure))) for part in methods.values())
    lines.append(Line(("slope",), tuple(slopes), 2))
    note = f"{INTERVALS} Slope: of log seconds over log anchors, least squares for each seed, then over seeds."
    return ReportTable(name, "rq3", caption, TIME_FIGURES[measure], ("anchors",), tuple(methods), tuple(lines), note)


def _regression(rows: Sequence[Row]) -> list[ReportTable]:
    tables = []
    for (preset,), group in by_axes(rows, "hyperparameters").items():
        names = in_order(row.name for row in group)
        lines = [
            methods_line(headings_of(*key), names, part, "rmse", _REGRESSION)
            for key, part in by_axes(group, "dataset", "obfuscator").items()
        ]
        caption = f"Regression: RMSE in units of the target, {preset} hyperparameters"
        tables.append(
            methods_table(f"regression_{preset}", "regression", caption, _REGRESSION, ("data set", "obfuscator"),
                          names, lines, size_note(group))
        )  # fmt: skip
    return tables
