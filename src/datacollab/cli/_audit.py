"""``datacollab audit``: attacks on a party's share, before anything leaves."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ._output import Report, closed_file, listed, one_line_errors
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
    without: list[str] | None,
    obfuscator: str | None,
    components: int | None,
    preset: str | None,
    standardize: bool,
    attribute: list[str] | None,
    seeds: int,
    seed: int | None,
    time_budget: float | None,
    output: Path,
    quiet: bool,
) -> None:
    with one_line_errors("Nothing was written; run the command again, with a --time-budget if it takes too long."):
        from ..table import read_table

        files = [path for path in (private, anchor, public) if path is not None]
        tables = _without({path: read_table(path) for path in files}, without or [])
        if target not in tables[private].columns:
            raise ValueError(f"{private} has no column {target!r}; it has {listed(tables[private].columns)}.")
        tables, remarks = _labelled(tables, private, target)
        features = encode(tables, public or anchor, target)
        features = replace(features, adjusted=(*remarks, *features.adjusted))
        attributes = _attributes(attribute or [], target, features, private)
        targets = {path: table[target].to_numpy() for path, table in tables.items() if target in table.columns}
        from sklearn.utils import check_random_state

        random = check_random_state(seed)
        known = _known(features, targets, private, anchor, public, random)
        # Strangers are kept out of what the map is fitted on, or it would know them.
        others = features.matrices[anchor] if public is None else known["public"]
        party = _party(features, private, others, targets[private], preset, obfuscator, components, standardize)
        _say(features, components, tables[private])
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
                n_seeds=seeds,
                random_state=random,
                time_budget=time_budget,
                progress=lambda done, total, name: progress(f"attack {done + 1} of {total}: {name}", done / total),
            )
    with one_line_errors(f"The files in {output} may be incomplete; run the command again."):
        page, result_file, table = written = [closed_file(output / f"audit.{each}") for each in ("html", "json", "csv")]
        result.to_html(page)
        result.to_json(result_file)
        table.write_text(result.table().to_csv(index=False), encoding="utf-8", newline="")
        done = f"Done in {time.perf_counter() - start:.0f} s."
        typer.echo("\n".join([result.summary(), "", *(f"  {path}" for path in written), done]))


def _without(tables: dict[Path, Any], names: list[str]) -> dict[Path, Any]:
    """Drop columns, which need not be in all tables."""
    if unknown := [name for name in names if all(name not in table.columns for table in tables.values())]:
        path, table = next(iter(tables.items()))
        raise ValueError(f"--without {listed(unknown)}: no file has that; {path} has {listed(table.columns)}.")
    return {path: table.drop(columns=names, errors="ignore") for path, table in tables.items()}


def _labelled(tables: dict[Path, Any], private: Path, target: str) -> tuple[dict[Path, Any], list[str]]:
    """Return tables in which all rows or none have a target, and a sentence on each that was changed."""
    left, remarks = dict(tables), []
    for path, table in tables.items():
        if path == private or target not in table.columns or (known := table[target].notna()).all():
            continue
        # Half of the rows with what they tell are more to an attacker than all without.  An anchor stays whole.
        is_kept = path != list(tables)[1] and known.mean() >= 0.5
        left[path] = table[known] if is_kept else table.drop(columns=target)
        taken = "the others are left out" if is_kept else "all rows are used without targets"
        remarks.append(f"{path}: {int(known.sum())} of {len(table)} rows have a target; {taken}.")
    return left, remarks


def _known(
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


def _attributes(names: list[str], target: str, features: Features, private: Path) -> dict[str, int | list[int]]:
    if target in names:
        raise ValueError(f"{target!r} is the target; the analyst gets it as it is, so there is nothing to infer.")
    unknown = [name for name in names if name not in features.positions]
    if unknown:
        raise ValueError(
            f"{private} has no column {listed(unknown)} to be an attribute; it has "
            f"{listed(features.positions)}, besides the target."
        )
    return {name: features.positions[name] for name in names}


def _party(
    features: Features,
    private: Path,
    others: Any,
    y: Any,
    preset: str | None,
    kind: str | None,
    components: int | None,
    standardize: bool,
) -> Party:
    """Make the party as it would be, fitted; named after its file."""
    from ..agreement import usual_components
    from ..party import SharingPlan

    X = features.matrices[private]
    n_components = usual_components(features.n_free) if components is None else components
    if n_components > X.shape[1]:
        raise ValueError(
            f"--components {n_components} is more than the {X.shape[1]} columns that {private} has once its categories "
            "are encoded."
        )
    plan = SharingPlan.of(
        preset=preset or "none",
        obfuscator=kind,
        n_components=n_components,
        standardize=standardize,
        is_regression=y.dtype.kind == "f",  # as for the attacks
        largest=X.shape[1],
    )
    return plan.party(private.stem, others).fit(X, y)


def _say(features: Features, components: int | None, table: Any) -> None:
    """Say which entries did not fit, which column may be no feature, and whether anything is reduced."""
    numbers = [name for name, place in features.positions.items() if isinstance(place, int)]
    from ..table import column_questions

    questions = column_questions(table, numbers, "leave it out, with --without")
    for sentence in (*features.adjusted, *questions):
        typer.echo(sentence, err=True)
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
    import numpy as np

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
        if _is_numeric(tables, name):
            positions[name], width = n_features, 1
            n_free += 1
            for path, table in tables.items():
                numbers = table[[name]].to_numpy(dtype=np.float64)
                blocks[path].append(np.where(np.isnan(numbers), float(np.median(known.to_numpy(float))), numbers))
        else:
            categories = sorted(known.unique(), key=str)
            usual = known.value_counts().index[0]
            filled = {path: table[name].where(table[name].notna(), usual) for path, table in tables.items()}
            for path, column in filled.items():
                unknown[path] += _n_unknown(column, categories, path, reference)
            encoded = {
                path: np.column_stack([(column == category).to_numpy(dtype=np.float64) for category in categories])
                for path, column in filled.items()
            }
            others = {path: 1.0 - block.sum(axis=1, keepdims=True) for path, block in encoded.items()}
            if any(other.any() for other in others.values()):
                encoded = {path: np.hstack([block, others[path]]) for path, block in encoded.items()}
            width = encoded[private].shape[1]
            positions[name] = list(range(n_features, n_features + width))
            n_free += max(1, len(categories) - 1)
            for path, block in encoded.items():
                blocks[path].append(block)
        n_features += width
    adjusted = []
    for path, table in tables.items():
        parts = []
        if n_missing := int(table[names].isna().sum().sum()):
            parts.append(f"{n_missing} missing entries became the median or the most frequent category of {reference}")
        if unknown[path]:
            parts.append(f"{unknown[path]} entries of categories that it lacks count as other")
        if parts:
            adjusted.append(f"{path}: {', and '.join(parts)}.")
    matrices = {path: np.hstack(block) for path, block in blocks.items()}
    return Features(matrices, positions, n_free, tuple(adjusted))


def _check_columns(path: Path, private: Path, found: list[str], names: list[str]) -> None:
    lacking, further = [name for name in names if name not in found], [name for name in found if name not in names]
    if lacking:
        raise ValueError(
            f"{path} lacks columns that {private} has: {listed(lacking)}. Give the same columns in all files."
        )
    if further:
        raise ValueError(
            f"{path} has columns that {private} lacks: {listed(further)}. Give the same columns in all files."
        )


def _is_numeric(tables: Mapping[Path, Any], name: str) -> bool:
    # Truth values with gaps come as objects.
    kinds = {path: table[name].dropna().infer_objects().dtype.kind in "biuf" for path, table in tables.items()}
    if len(set(kinds.values())) > 1:
        numeric = listed(path for path, kind in kinds.items() if kind)
        others = listed(path for path, kind in kinds.items() if not kind)
        raise ValueError(
            f"Column {name!r} holds numbers in {numeric}, but not in {others}. Make it the same in all files."
        )
    return all(kinds.values())


def _n_unknown(column: Any, categories: list[Any], path: Path, reference: Path) -> int:
    """Count entries of other categories, which may be exceptions only."""
    from ..table import MOST_OUTSIDE

    unknown = int((~column.isin(categories)).sum())
    if unknown > 1 and unknown > MOST_OUTSIDE * len(column):
        raise ValueError(
            f"{path}: column {column.name!r} has categories, in {unknown} of {len(column)} rows, that {reference} "
            f"lacks; more than {MOST_OUTSIDE:.0%} are no exceptions that could count as other. Give public rows with "
            "every category, or leave the column out, with --without, if it holds identifiers, dates or free text."
        )
    return unknown
