"""What all parties and the analyst put into one sum: the project, and what the anchor makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from ...errors import ExchangeError
from ...sums import RidgeSums, SumsPlan, read_mask_card, recommended
from ..project import Project, declared_alike

__all__ = ["DELTA", "FEWEST_OWN_ROWS", "Told", "fewest_rows", "plan_of", "told_by"]

FEWEST_OWN_ROWS = 20
"""A party with fewer rows hides nobody, whatever the project says."""
DELTA = 1e-5
"""Of the differential privacy that a project may ask for."""
_DIGITS = set("0123456789abcdef")
_HASH_DIGITS = 64


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a file of a party's sums says on its outside.

    Attributes
    ----------
    project_digest : str
    anchor_commitment : str
        Of the party's anchor (`Anchor.commitment`); equal in all files of one sum.
    n_components : int
        Columns of the common map: those of the project, or fewer if the anchor's rank is smaller.
    created : str
        When, in ISO 8601.
    """

    project_digest: str
    anchor_commitment: str
    n_components: int
    created: str

    def facts(self) -> dict[str, Any]:
        """Return the same as what JSON can hold."""
        return asdict(self)


def fewest_rows(project: Project) -> int:
    """Return the fewest own rows that a party may add."""
    return max(FEWEST_OWN_ROWS, project.min_rows)


def told_by(facts: Mapping[str, Any], project: Project, party: str, where: str) -> Told:
    """Read what a file of sums says on its outside, and check it against the project.

    Parameters
    ----------
    facts : mapping of str to object
        Of the file.
    project : Project
        Of the sum.
    party, where : str
        For errors: whose it is, and the name of the file.

    Raises
    ------
    ExchangeError
        SHARE_MALFORMED, PROJECT_HASH_MISMATCH or DEADLINE_PASSED.
    """
    assert project.sharing is not None
    try:
        told = Told(**{each.name: facts[each.name] for each in fields(Told)})
        if not (set(told.anchor_commitment) <= _DIGITS and len(told.anchor_commitment) == _HASH_DIGITS):
            raise ValueError
        if type(told.n_components) is not int or not 1 <= told.n_components <= project.sharing.n_components:
            raise ValueError
        created = datetime.fromisoformat(told.created)
        if created.tzinfo is None or created.astimezone(UTC).isoformat(timespec="seconds") != told.created:
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"{where} of party {party!r} does not say what it should of project, anchor, columns and time. Have it "
            "sent again.",
        ) from None
    if told.project_digest != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"Party {party!r} made {where} for another version of project {project.name!r}, or another run. Compare "
            "what `datacollab project show` prints on both sides.",
        )
    project.check_deadline(created.date())
    return told


def plan_of(project: Project, *, anchor_commitment: str, n_components: int) -> SumsPlan:
    """Return the plan of a project that shares sums; its context depends on all that was agreed on.

    Parameters
    ----------
    project : Project
        With `sharing`.
    anchor_commitment : str
    n_components : int
        Columns of the common map.
    """
    sharing, task = project.sharing, project.task
    assert sharing is not None
    limits = None if task.minimum is None or task.maximum is None else (float(task.minimum), float(task.maximum))
    target: dict[str, Any] = {"classes": task.classes} if task.classes else {"limits": limits}
    noise = sharing.noise
    if sharing.epsilon is not None:
        noise = max(noise, RidgeSums(n_components, **target).noise_for(sharing.epsilon, DELTA))
    return SumsPlan(
        {name: read_mask_card(card, project.parties[name]) for name, card in sharing.mask_keys.items()},
        n_components=n_components,
        **target,
        noise=noise,
        least_penalty=recommended(alike=declared_alike(project.columns)).least_penalty,
        facts={
            "project_digest": project.digest,
            "anchor_commitment": anchor_commitment,
            "run": sharing.run,
            "purpose": project.purpose,
            "columns": list(project.feature_names),
        },
    )
