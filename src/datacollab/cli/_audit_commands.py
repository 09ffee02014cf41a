"""``datacollab audit``: attacks on a party's share, before anything leaves."""

from __future__ import annotations

import time
from collections.abc import Mapping
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
        features = replace(features, adjusted=(*remarks, *features.adjusted))
        attributes = _find_attributes(options["attribute"] or [], target, features, private)
        targets = {path: table[target].to_numpy() for path, table in tables.items() if target in table.columns}
        from sklearn.utils import check_random_state

        random = check_random_state(options["seed"])
        known = _gather_known(features, targets, private, anchor, public, random)
        # Strangers are kept out of the rows that the map is fitted on, or it would know them.
        others = known.get("public", features.matrices[anchor])
        party = _make_party(features, private, others, targets[private], options)
        _warn_of_columns(features, options["components"], tables[private])
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
    from ..agreement import usual_components
    from ..party import SharingPlan

    X = features.matrices[private]
    n_components = options["components"]
    if n_components is None:
        n_components = usual_components(features.n_free)
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


def _warn_of_columns(features: Features, components: int | None, table: Any) -> None:
    """Say which entries did not fit, which column may be no feature, and whether anything is reduced."""
    from ..table import column_questions

    numbers = [name for name, place in features.positions.items() if isinstance(place, int)]
    questions = column_questions(table, numbers, "leave it out, with --without")
    for sentence in (*features.adjusted, *questions):
        typer.echo(sentence, err=True)
    # A linear map onto as many columns can be undone: it is a rotation with stretching.
    if components is not None and components >= features.n_free > 1:
        typer.echo(
            f"{features.n_free} numbers tell a row, so a linear map onto {components} components turns the table and "
            "hides nothing. Take fewer --components.",
            err=True,
        )


@dataclass(frozen=True)
class Features:
    """Matrices of numbers, and where every column of the tables stands in them."""

    matrices: dict[Path, FloatArray]
    positions: dict[str, int | list[int]]
    """A column of numbers has one position, a category one per category."""
    n_free: int
    """Numbers that tell a row: the zeros and ones of a category add up to one, and "other" is rare."""
    adjusted: tuple[str, ...]
    """Sentences on missing or unknown entries, one for each table that has any."""


def encode(tables: Mapping[Path, Any], reference: Path, ignored: str) -> Features:
    """Encode tables alike, the private one first; only the reference says which categories there are, and fills gaps.

    As in a project that is drafted from that table, the median or the most frequent category stands for a missing
    entry, and unknown categories count as "other", as long as they are exceptions.
    """
    private = next(iter(tables))
    names = [name for name in tables[private].columns if name != ignored]
    for path, table in tables.items():
        _check_columns(path, private, list(table.columns.drop(ignored, errors="ignore")), names)
    unknown = dict.fromkeys(tables, 0)
    blocks: dict[Path, list[Any]] = {path: [] for path in tables}
    positions: dict[str, int | list[int]] = {}
    n_features = n_free = 0
    for name in names:
        known = tables[reference][name].dropna()
        if known.empty:
            raise ValueError(f"{reference}: column {name!r} is empty, so nothing can be filled in. Leave it out.")
        columns = {path: table[name] for path, table in tables.items()}
        # The reference alone says how a gap is filled: filled by the party's own rows, it would tell of them.
        if _is_numeric(columns, name):
            encoded = _encode_numbers(columns, float(np.median(known.to_numpy(float))))
            positions[name] = n_features
            n_free += 1
        else:
            categories = sorted(known.unique(), key=str)
            usual = known.value_counts().index[0]
            columns = {path: column.where(column.notna(), usual) for path, column in columns.items()}
            for path, column in columns.items():
                unknown[path] += _n_unknown(column, categories, path, reference)
            encoded = _encode_categories(columns, categories)
            positions[name] = list(range(n_features, n_features + encoded[private].shape[1]))
            n_free += max(1, len(categories) - 1)
        for path, block in encoded.items():
            blocks[path].append(block)
        n_features += encoded[private].shape[1]
    matrices = {path: np.hstack(block) for path, block in blocks.items()}
    missing = {path: int(table[names].isna().sum().sum()) for path, table in tables.items()}
    return Features(matrices, positions, n_free, _describe_adjusted(missing, unknown, reference))


def _describe_adjusted(missing: dict[Path, int], unknown: dict[Path, int], reference: Path) -> tuple[str, ...]:
    sentences = []
    for path, n_missing in missing.items():
        parts = []
        if n_missing:
            parts.append(f"{n_missing} missing entries became the median or the most frequent category of {reference}")
        if unknown[path]:
            parts.append(f"{unknown[path]} entries of categories that it lacks count as other")
        if parts:
            sentences.append(f"{path}: {', and '.join(parts)}.")
    return tuple(sentences)


def _encode_numbers(columns: Mapping[Path, Any], usual: float) -> dict[Path, FloatArray]:
    encoded = {}
    for path, column in columns.items():
        numbers = column.to_numpy(dtype=np.float64)[:, None]
        encoded[path] = np.where(np.isnan(numbers), usual, numbers)
    return encoded


def _encode_categories(columns: Mapping[Path, Any], categories: list[Any]) -> dict[Path, FloatArray]:
    """Return a column of zeros and ones for each category, and one for others if any table has some."""
    encoded = {
        path: np.column_stack([(column == category).to_numpy(dtype=np.float64) for category in categories])
        for path, column in columns.items()
    }
    others = {path: 1.0 - block.sum(axis=1, keepdims=True) for path, block in encoded.items()}
    if any(other.any() for other in others.values()):
        return {path: np.hstack([block, others[path]]) for path, block in encoded.items()}
    return encoded


def _check_columns(path: Path, private: Path, columns: list[str], names: list[str]) -> None:
    lacking = [name for name in names if name not in columns]
    surplus = [name for name in columns if name not in names]
    if lacking:
        raise ValueError(
            f"{path} lacks columns that {private} has: {list_names(lacking)}. Give the same columns in all files."
        )
    if surplus:
        raise ValueError(
            f"{path} has columns that {private} lacks: {list_names(surplus)}. Give the same columns in all files."
        )


def _is_numeric(columns: Mapping[Path, Any], name: str) -> bool:
    # Truth values with gaps come as objects.
    kinds = {path: column.dropna().infer_objects().dtype.kind in "biuf" for path, column in columns.items()}
    if len(set(kinds.values())) > 1:
        numeric = list_names(path for path, kind in kinds.items() if kind)
        others = list_names(path for path, kind in kinds.items() if not kind)
        raise ValueError(
            f"Column {name!r} holds numbers in {numeric}, but not in {others}. Make it the same in all files."
        )
    return all(kinds.values())


def _n_unknown(column: Any, categories: list[Any], path: Path, reference: Path) -> int:
    """Count entries of other categories, which may be exceptions only."""
    from ..table import MOST_OUTSIDE

    unknown = int((~column.isin(categories)).sum())
    # As in a project: a single row may always be an exception, and more only up to a share of the rows.
    if unknown > 1 and unknown > MOST_OUTSIDE * len(column):
        raise ValueError(
            f"{path}: column {column.name!r} has categories, in {unknown} of {len(column)} rows, that {reference} "
            f"lacks; more than {MOST_OUTSIDE:.0%} are no exceptions that could count as other. Give public rows with "
            "every category, or leave the column out, with --without, if it holds identifiers, dates or free text."
        )
    return unknown
