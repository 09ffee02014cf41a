"""``datacollab audit``: attacks on a party's share, before anything leaves."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from ._output import Report, list_names, make_private_file, one_line_errors
from ._progress import shown_progress

if TYPE_CHECKING:
    from .._validation import FloatArray
    from ..party import Party
    from ..table import Column


def audit(
    report: Report,
    private: Path,
    anchor: Path,
    target: str,
    public: Path | None,
    output: Path,
    quiet: bool,
    **options: Any,
) -> None:
    with one_line_errors("Nothing was written; run the command again, with a --time-budget if it takes too long."):
        from ..table import read_table

        files = [path for path in (private, anchor, public) if path is not None]
        tables = _drop_columns({path: read_table(path) for path in files}, options["without"] or [])
        if target not in tables[private].columns:
            raise ValueError(f"{private} has no column {target!r}; it has {list_names(tables[private].columns)}.")
        tables, remarks = _drop_unlabelled(tables, private, anchor, target)
        features = encode(tables, public or anchor, target)
        attributes = _find_attributes(options["attribute"] or [], target, features, private)
        targets = {path: table[target].to_numpy() for path, table in tables.items() if target in table.columns}
        from sklearn.utils import check_random_state

        random = check_random_state(options["seed"])
        known = _gather_known(features, targets, private, anchor, public, random)
        # Strangers are kept out of the rows that the map is fitted on, or it would know them.
        others = known.get("public", features.matrices[anchor])
        party = _make_party(features, private, others, targets[private], options)
        for sentence in (*remarks, *features.remarks, *_warn_of_rotation(features, options["components"])):
            typer.echo(sentence, err=True)
        output.mkdir(parents=True, exist_ok=True)
        from ..risk.audit import audit as run_audit

        start = time.perf_counter()
        with shown_progress(quiet) as progress:
            result = run_audit(
                party,
                features.matrices[private],
                features.matrices[anchor],
                y=targets[private],
                **known,
                attributes=attributes,
                n_seeds=options["seeds"],
                random_state=random,
                time_budget=options["time_budget"],
                progress=lambda done, total, name: progress(f"attack {done + 1} of {total}: {name}", done / total),
            )
    with one_line_errors(f"The files in {output} may be incomplete; run the command again."):
        # Findings are about single rows: the files are closed to others before anything is in them.
        written = [make_private_file(output / f"audit.{each}") for each in ("html", "json", "csv")]
        page, result_file, table = written
        result.to_html(page)
        result.to_json(result_file)
        table.write_text(result.table().to_csv(index=False), encoding="utf-8", newline="")
        done = f"Done in {time.perf_counter() - start:.0f} s."
        typer.echo("\n".join([result.summary(), "", *(f"  {path}" for path in written), done]))


def _drop_columns(tables: dict[Path, Any], names: list[str]) -> dict[Path, Any]:
    """Drop columns, which need not be in all tables."""
    if unknown := [name for name in names if all(name not in table.columns for table in tables.values())]:
        path, table = next(iter(tables.items()))
        raise ValueError(f"--without {list_names(unknown)}: no file has that; {path} has {list_names(table.columns)}.")
    return {path: table.drop(columns=names, errors="ignore") for path, table in tables.items()}


def _drop_unlabelled(
    tables: dict[Path, Any], private: Path, anchor: Path, target: str
) -> tuple[dict[Path, Any], list[str]]:
    """Return tables in which all rows or none have a target, and a sentence on each that was changed."""
    even = dict(tables)
    remarks = []
    for path, table in tables.items():
        if path == private or target not in table.columns or (known := table[target].notna()).all():
            continue
        # To an attacker, half of the rows with targets are worth more than all without.  An anchor stays whole.
        if path != anchor and known.mean() >= 0.5:
            even[path] = table[known]
            used = "the others are left out"
        else:
            even[path] = table.drop(columns=target)
            used = "all rows are used without targets"
        remarks.append(f"{path}: {int(known.sum())} of {len(table)} rows have a target; {used}.")
    return even, remarks


def _gather_known(
    features: Features, targets: dict[Path, Any], private: Path, anchor: Path, public: Path | None, random: Any
) -> dict[str, Any]:
    """Return rows besides the party's own, as `audit` takes them: strangers are a part of the public ones."""
    from ..anchor import find_private_rows
    from ..risk.audit import split_public

    own_in_anchor = find_private_rows(features.matrices[anchor], features.matrices[private]).size
    if own_in_anchor:
        raise ValueError(
            f"{own_in_anchor} rows of {anchor} are rows of {private}; every party sees the anchor as it is, so nothing "
            "may be shared with it. Make a new one from public rows."
        )
    known: dict[str, Any] = {"anchor_target": targets.get(anchor)}
    if public is not None:
        parts = split_public(features.matrices[public], targets.get(public), random)
        known |= dict(zip(("public", "public_target", "control", "control_target"), parts, strict=True))
    return known


def _find_attributes(names: list[str], target: str, features: Features, private: Path) -> dict[str, int | list[int]]:
    """Return the positions of the columns that an attacker would infer."""
    if target in names:
        raise ValueError(f"{target!r} is the target; the analyst gets it as it is, so there is nothing to infer.")
    unknown = [name for name in names if name not in features.positions]
    if unknown:
        raise ValueError(
            f"{private} has no column {list_names(unknown)} to be an attribute; it has "
            f"{list_names(features.positions)}, besides the target."
        )
    return {name: features.positions[name] for name in names}


def _make_party(features: Features, private: Path, others: Any, y: Any, options: dict[str, Any]) -> Party:
    """Make the party as it would be, fitted; named after its file."""
    from ..party import SharingPlan

    X = features.matrices[private]
    n_components = options["components"]
    if n_components is None:
        n_components = features.max_components
    if n_components > X.shape[1]:
        raise ValueError(
            f"--components {n_components} is more than the {X.shape[1]} columns that {private} has once its categories "
            "are encoded."
        )
    plan = SharingPlan.of(
        preset=options["preset"] or "none",
        obfuscator=options["obfuscator"],
        n_components=n_components,
        standardize=options["standardize"],
        is_regression=y.dtype.kind == "f",  # as for the attacks
        largest=X.shape[1],
    )
    return plan.party(private.stem, others).fit(X, y)


def _warn_of_rotation(features: Features, components: int | None) -> list[str]:
    """Say that nothing is hidden: a linear map onto as many columns can be undone, as it turns and stretches rows."""
    if components is None or not components >= features.n_free > 1:
        return []
    return [
        f"{features.n_free} numbers tell a row, so a linear map onto {components} components turns the table and "
        "hides nothing. Take fewer --components."
    ]


@dataclass(frozen=True)
class Features:
    """Matrices of numbers, and where every column of the tables stands in them."""

    matrices: dict[Path, FloatArray]
    positions: dict[str, int | list[int]]
    """A column of numbers has one position, a category one per category."""
    n_free: int
    max_components: int
    """As in a project with these columns."""
    remarks: tuple[str, ...]
    """Sentences on columns, and one on the adjusted entries of each table that has any."""


def encode(tables: Mapping[Path, Any], reference: Path, target: str) -> Features:
    """Encode tables as in a project that is drafted from the reference; the party's own table comes first.

    So the reference alone says which categories there are, and how gaps are filled.
    """
    from ..agreement import usual_components
    from ..table import Schema, adjustments_text, encode_table
    from ._trial_commands import draft, remark_on_columns

    private = next(iter(tables))
    # In the order of the party's table, whichever one the columns are learnt from.
    names = [name for name in tables[private].columns if name != target]
    _check_columns(tables, private, names)
    project = draft(tables[reference][names], task="none")
    schema = Schema(columns=tuple(_flag_gaps(column, tables.values()) for column in project.columns))
    remarks = remark_on_columns(schema, tables[private][names], "leave it out, with --without")
    others = dict.fromkeys(name for table in tables.values() for name in table.columns)
    if surplus := [name for name in others if name not in (target, *names)]:
        remarks.append(f"Columns left out, which {private} lacks: {list_names(surplus)}.")
    matrices = {}
    for path, table in tables.items():
        encoded = encode_table(schema, table, where=str(path))
        matrices[path] = encoded.X
        counts = encoded.adjusted.to_dict()
        if counts["columns"]:
            remarks.append(f"{path}: adjusted by what {reference} has: {adjustments_text(counts)}.")
    positions: dict[str, int | list[int]] = {}
    for column, places in schema.blocks(np.arange(schema.n_features)):
        positions[column.name] = places.tolist() if column.levels else int(places[0])
    return Features(matrices, positions, schema.n_free, usual_components(schema.n_free), tuple(remarks))


def _check_columns(tables: Mapping[Path, Any], private: Path, names: list[str]) -> None:
    """Refuse a table that lacks a column of the party's own."""
    for path, table in tables.items():
        if lacking := [name for name in names if name not in table.columns]:
            raise ValueError(
                f"{path} lacks columns that {private} has: {list_names(lacking)}. Add them, or leave them out of all "
                "files, with --without."
            )


def _flag_gaps(column: Column, tables: Iterable[Any]) -> Column:
    """Return the column with a flag for gaps if some table has many, as an owner would set one for its parties."""
    from ..table import MOST_OUTSIDE

    if any(table[column.name].isna().mean() > MOST_OUTSIDE for table in tables):
        return replace(column, flag_missing=True)
    return column
