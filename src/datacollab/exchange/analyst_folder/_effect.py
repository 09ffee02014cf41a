"""Effects of treatments, from the shares in an analyst's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...bundle import canonical_json, write_atomically
from ...errors import AgreementError
from ..log import AuditLog, locked
from ._folder import AnalystFolder
from ._methods import make_integrator

if TYPE_CHECKING:
    from ...effects import Effect

__all__ = ["EFFECT_FILES", "effect_of"]

EFFECT_FILES = ("effect.json", "effect.html")
"""What `effect_of` writes into the folder."""


def effect_of(
    folder: AnalystFolder,
    *,
    integration: str = "auto",
    n_components: int | None = None,
    target: str = "ATE",
    method: str = "auto",
    horizon: float | None = None,
    trim: float | None = None,
    folds: int = 5,
    random_state: int = 0,
) -> Effect:
    """Estimate the project's effect, and write it into the folder as `EFFECT_FILES`.

    The report holds figures over all rows, and none of a row.  Nothing is sent to the parties.

    Parameters
    ----------
    folder : AnalystFolder
        Of a project of kind "effect".
    integration : str
        Integration method, as in `make_integrator`; "auto" is affine `LTI`.
    n_components : int, optional
        As in `make_integrator`.
    target, method, horizon, trim, folds, random_state
        As in `datacollab.effects.estimate_effect`.

    Raises
    ------
    AgreementError
        If the project is of another kind, or times to events have no horizon, or a number has one.
    ExchangeError
        If too few parties have shared.
    EffectError
        If shares do not serve for estimates with intervals that hold.
    """
    from ...effects import estimate_effect

    task = folder.project.task
    if task.kind != "effect":
        raise AgreementError(
            f"Project {folder.project.name!r} is of kind {task.kind!r}, which has no treatment. Run "
            "`datacollab analyst integrate` instead."
        )
    if bool(task.time) != (horizon is not None):
        raise AgreementError(
            f"The outcome is {task.event!r} after {task.time!r}: give the time at which it is compared (--horizon)."
            if task.time
            else f"The outcome {task.outcome!r} is a number and has no horizon. Leave it out."
        )
    with locked(folder.path):
        received = folder.shares()
        folder.check_quorum(len(received))
        shares = [each.share for each in received]
        integrator = make_integrator(integration, shares, task=task.kind, n_components=n_components)
        assert not isinstance(integrator, str)  # "auto" is settled for effects
        found = estimate_effect(
            shares,
            integrator,
            target=target,
            method=method,
            folds=folds,
            horizon=horizon,
            trim=trim,
            random_state=random_state,
        )
        facts = found.to_dict() | {
            "project": folder.project.name,
            "project_digest": folder.project.digest,
            "task": task.words,
            "unit": task.unit,
            "shares": {each.party: each.digest for each in received},
        }
        for name, data in zip(EFFECT_FILES, (canonical_json(facts), found.to_html().encode()), strict=True):
            write_atomically(Path(folder.path) / name, data, mode=0o600)
        logged = ("estimate", "interval", "target", "method", "horizon", "n_rows", "shares")
        AuditLog(folder.path / "log.jsonl").append("effect", **{name: facts[name] for name in logged})
    return found
