"""The estimate of a project's effect, as a report in the analyst's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...bundle import canonical_json, write_atomically
from ...by_rows.analyst import make_integrator
from ...errors import AgreementError
from ...folder.log import locked
from ._analyst_folder import AnalystFolder

if TYPE_CHECKING:
    from ...effects import EffectEstimate

EFFECT_FILES = ("effect.json", "effect.html")
"""Files that `effect_of` writes into the folder."""


def effect_of(
    folder: AnalystFolder,
    *,
    integration: str = "auto",
    n_components: int | None = None,
    horizon: float | None = None,
    random_state: int = 0,
    **options: Any,
) -> EffectEstimate:
    """Estimate the project's effect, and write it into the folder as `EFFECT_FILES`.

    The report holds figures over all rows, and none of a row.  Nothing is sent to the parties.  Integration and
    components are as in `make_integrator`, with affine `LTI` for "auto"; all else is as in
    `datacollab.effects.estimate_effect`.

    Raises
    ------
    AgreementError, ExchangeError, EffectError
        If the project is of another kind, or times to events have no horizon, or a number has one; QUORUM_NOT_MET; or
        if shares do not serve for estimates with intervals that hold.
    """
    from ...effects import estimate_effect

    task = folder.project.task
    if task.kind != "effect":
        raise AgreementError(
            f"Project {folder.project.name!r} is of kind {task.kind!r}, which has no treatment. Run "
            "`datacollab analyst integrate` instead."
        )
    if task.time and horizon is None:
        raise AgreementError(
            f"The outcome is {task.event!r} after {task.time!r}: give the time at which it is compared (--horizon)."
        )
    if horizon is not None and not task.time:
        raise AgreementError(f"The outcome {task.outcome!r} is a number and has no horizon. Leave it out.")
    # The shares that are estimated from are those that the log names.
    with locked(folder.path):
        received = folder.shares()
        folder.check_quorum(len(received))
        shares = [each.share for each in received]
        integrator = make_integrator(integration, shares, task=task.kind, n_components=n_components)
        assert not isinstance(integrator, str)  # "auto" is settled for effects
        effect = estimate_effect(shares, integrator, horizon=horizon, random_state=random_state, **options)
        facts = effect.to_dict() | {
            "project": folder.project.name,
            "project_digest": folder.project.digest,
            "task": task.words,
            "unit": task.unit,
            "shares": {each.party: each.digest for each in received},
        }
        for name, data in zip(EFFECT_FILES, (canonical_json(facts), effect.to_html().encode()), strict=True):
            write_atomically(folder.path / name, data, mode=0o600)
        logged = ("estimate", "interval", "target", "method", "errors", "horizon", "n_rows", "shares")
        folder.log.append("effect", **{name: facts[name] for name in logged})
    return effect
