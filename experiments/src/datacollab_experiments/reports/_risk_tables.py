"""Utility beside attackers' success: by the paper's measure, and by those of the audit."""

from collections.abc import Sequence

from ..claims import Estimate, by_axes, estimate
from ..paper import AUDIT, Row
from ._cells import INTERVALS, OBFUSCATORS, TEXTS, cell, comparison_note, find_value, join_sentences, size_note, slug
from ._privacy_tables import INTEGRATION, TRADE_OFF, papers_attacks, strongest_attack
from ._table import Line, ReportTable, TableCell

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
