"""The tables of a report: pure functions from rows."""

from collections.abc import Mapping, Sequence

from ..claims import Estimate, anchor_series, by_axes, in_order, slope
from ..paper import Row
from ._cells import INTERVALS, by_name, cell, headings_of, methods_line, methods_table, size_note, slug
from ._privacy_tables import privacy_tables
from ._risk_tables import risk_tables
from ._table import Line, ReportTable, TableCell

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
