"""Whether collaboration can be expected to pay, from a project's table and a way of sharing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import AgreementError, ObfuscationError
from ...party import Foresight, foresee
from ..project import Anchor, EncodedTable, Project
from ._way import Way

__all__ = ["foresight", "foresight_in_words"]


def foresight_in_words(foresee: Callable[..., Foresight], table: Any, **options: Any) -> tuple[Foresight | None, str]:
    """What is foreseen, and a sentence of it, or else one of why nothing is.

    Parameters
    ----------
    foresee : callable
        `PartyFolder.foresee` of a party's folder.
    table, **options
        As it takes them.
    """
    try:
        found = foresee(table, **options)
    except (AgreementError, ObfuscationError) as error:
        return None, f"Whether collaboration can be expected to pay is not known: {error}"
    return found, found.sentence


def foresight(
    project: Project,
    encoded: EncodedTable,
    anchor: Anchor,
    way: Way,
    *,
    n_total_rows: int,
    random_state: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> Foresight:
    """Foresee by the own rows, with the anchor as what the party has besides; see `datacollab.foresee`.

    Parameters
    ----------
    project : Project
    encoded : EncodedTable
        With targets.
    anchor : Anchor
    way : Way
    n_total_rows : int
        Of all parties.
    random_state : int, optional
    progress : callable, optional
    """
    party = way.party("forecast", anchor)
    assert encoded.target is not None
    are_numbers = project.task.kind == "regression"
    return foresee(
        encoded.X,
        _told(encoded.target, are_numbers),
        obfuscator=party.obfuscator,
        n_total_rows=n_total_rows,
        fit_on=party.fit_on,
        defences=party.defences,
        anchor=anchor.rows,
        anchor_target=None if anchor.target is None else _told(anchor.target, are_numbers),
        public=anchor.rows,
        public_target=None if anchor.target is None else _told(anchor.target, are_numbers),
        random_state=random_state,
        progress=progress,
    )


def _told(target: NDArray[Any], are_numbers: bool) -> NDArray[Any]:
    """Targets whose kind shows: whole numbers of a regression are moved by a half, which no error depends on."""
    return np.asarray(target, dtype=np.float64) + 0.5 if are_numbers else target
