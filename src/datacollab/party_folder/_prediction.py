"""Predictions at home, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from .._require import require
from .._typing import FloatArray
from ..errors import ExchangeError
from ..model import PartyModel
from ..party import LocalParty
from ..project import Adjustments, Project, encode_table, table_batches
from ._installation import are_targets
from ._scores import ClassificationScores, RegressionScores

__all__ = ["predicted_frames", "scored"]

PREDICTION = "prediction"
_ROUNDING = 1e-6


def predicted_frames(
    project: Project,
    party: LocalParty,
    model: PartyModel,
    source: Path,
    *,
    proba: bool,
    keep: Sequence[str],
    batch_rows: int,
    tell: Callable[[Adjustments], None],
) -> Iterator[Any]:
    """Predictions of a file as data frames; see `PartyFolder.predict_batches`."""
    names = _probability_names(model) if proba else []
    if clashing := sorted({PREDICTION, *names} & set(keep)) or sorted(name for name in keep if keep.count(name) > 1):
        raise ValueError(f"{source}: the columns {clashing} would be written twice. Rename them, or do not keep them.")
    return _frames(project, party, model, source, names, list(keep), batch_rows, tell)


def _frames(
    project: Project,
    party: LocalParty,
    model: PartyModel,
    source: Path,
    names: list[str],
    keep: list[str],
    batch_rows: int,
    tell: Callable[[Adjustments], None],
) -> Iterator[Any]:
    pandas = require("pandas", "cli")
    adjusted = Adjustments()
    for table in table_batches(source, batch_rows=batch_rows, project=project):
        if lacking := [name for name in keep if name not in table.columns]:
            raise ExchangeError(
                "SCHEMA_MISSING_COLUMN",
                f"{source} has no column {', '.join(map(repr, lacking))} to keep. Give the names of columns in the "
                "file's header.",
            )
        encoded = encode_table(
            project, table, where=str(source), with_target=False, first_row=adjusted.n_rows, before=adjusted
        )
        adjusted = encoded.adjusted
        columns = {name: table[name].array for name in keep}
        if not encoded.n_rows:
            yield pandas.DataFrame(columns | dict.fromkeys([PREDICTION, *names], ()))
            continue
        representation = party.obfuscate(encoded.X)
        columns[PREDICTION] = _predicted(project, model, representation, source)
        if names:
            columns |= dict(zip(names, _probabilities(model, representation, source).T, strict=True))
        yield pandas.DataFrame(columns)
    tell(adjusted)


def scored(project: Project, party: LocalParty, model: PartyModel, source: Path, *, batch_rows: int) -> dict[str, Any]:
    """How well a file's targets are predicted; see `PartyFolder.evaluate`."""
    is_classification = project.task.kind == "classification"
    scores = ClassificationScores(project.task.classes) if is_classification else RegressionScores()
    adjusted = Adjustments()
    for table in table_batches(source, batch_rows=batch_rows, project=project):
        encoded = encode_table(project, table, where=str(source), first_row=adjusted.n_rows, before=adjusted)
        adjusted = encoded.adjusted
        assert encoded.target is not None
        if encoded.n_rows:
            scores.add(encoded.target, _predicted(project, model, party.obfuscate(encoded.X), source))
    told = {"task": project.task.kind, "target": project.task.target, "unit": project.task.unit}
    return {**told, **scores.to_dict(), "adjusted": adjusted.to_dict()}


def _predicted(project: Project, model: PartyModel, representation: FloatArray, source: Path) -> NDArray[Any]:
    """A target of the project for each row: what a trial with the anchor found may not hold for other rows."""
    result = _applied(model, "predict", representation, source)
    if result.shape != (len(representation),) or not are_targets(result, project):
        raise _malformed(
            model, f"predicts for rows of {source} something other than project {project.name!r} has targets"
        )
    return result


def _probabilities(model: PartyModel, representation: FloatArray, source: Path) -> NDArray[Any]:
    result = _applied(model, "predict_proba", representation, source)
    expected = len(representation), len(model.estimator.classes_)
    if result.shape != expected or not ((result >= -_ROUNDING) & (result <= 1 + _ROUNDING)).all():
        raise _malformed(model, f"gives for rows of {source} what are no probabilities")
    return result


def _applied(model: PartyModel, method: str, representation: FloatArray, source: Path) -> NDArray[Any]:
    try:
        result: NDArray[Any] = getattr(model, method)(representation)
    # A model that was tampered with may fail in any way, and with words that quote the rows.
    except Exception as error:
        raise _malformed(model, f"fails on rows of {source} ({type(error).__name__})") from None
    return result


def _malformed(model: PartyModel, what: str) -> ExchangeError:
    return ExchangeError(
        "MODEL_MALFORMED",
        f"The model {type(model.estimator).__name__} {what}. Do not use it, and ask the analyst.",
    )


def _probability_names(model: PartyModel) -> list[str]:
    if not hasattr(model.estimator, "predict_proba"):
        raise ValueError(f"The model {type(model.estimator).__name__} gives no probabilities. Leave out --proba.")
    return [f"proba_{name}" for name in model.estimator.classes_]
