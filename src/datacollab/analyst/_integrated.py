"""Integration without targets: maps and representations, for whatever needs no labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from .._validation import FloatArray, PartyName
from ..errors import AgreementError
from ..share import Share
from ._analyst import by_party
from ._anchor_scaled import AnchorScaled
from ._base import BaseIntegrator

__all__ = ["Integrated", "integrate"]

_REPEATED = 0.9
"""Part of a share's rows that equal others, from which on they are taken for means of groups."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Integrated:
    """What the analyst has after the integration, before anything is trained.

    Attributes
    ----------
    integrator : BaseIntegrator
        Fitted, with one g_k per party.
    representations : dict of party to ndarray of shape (n_samples, n_components)
        Collaboration representations, in the order of the shares.  They stay with the analyst: a colluding party could
        invert them.
    repeated : tuple of party
        Parties of whose shared rows nearly all equal others, as means of groups do: their neighbours are copies.
    """

    integrator: BaseIntegrator
    representations: Mapping[PartyName, FloatArray]
    repeated: tuple[PartyName, ...]

    @property
    def parties(self) -> list[PartyName]:
        """Names of the parties, in the order of their shares."""
        return list(self.representations)

    @property
    def pooled(self) -> FloatArray:
        """Rows of all parties, one party after the other, shape (n_rows, n_components)."""
        return np.vstack(list(self.representations.values()))

    def split(self, values: Any) -> dict[PartyName, Any]:
        """Values of the pooled rows, by party."""
        ends = np.cumsum([len(rows) for rows in self.representations.values()])[:-1]
        return dict(zip(self.representations, np.split(values, ends), strict=True))

    def __repr__(self) -> str:
        rows = {party: rows.shape for party, rows in self.representations.items()}
        return f"Integrated(integrator={type(self.integrator).__name__}, representations={rows})"


def integrate(shares: Iterable[Share], integrator: BaseIntegrator | None = None) -> Integrated:
    """Align the shares; their targets are not looked at.

    Parameters
    ----------
    shares : iterable of Share
        One from each party.
    integrator : BaseIntegrator or None, default=None
        Cloned before it is fitted.  None takes `AnchorScaled`: distances mean something, which clusters, neighbours and
        scores of novelty need.

    Returns
    -------
    Integrated

    Raises
    ------
    TypeError
        When a share is something else.
    AgreementError
        When there is no share, two carry one name, their anchors differ in length, or a party's rows are the anchor's.
    RepresentationError
        When an anchor representation cannot be aligned; the message names the party.

    Examples
    --------
    >>> import datacollab as dc
    >>> from datacollab.analyst import integrate
    >>> X, _ = dc.datasets.load("digits")
    >>> f = dc.obfuscator("pca", n_components=8)
    >>> parties = [dc.Party(name, f).fit(X[own]) for name, own in {"a": range(99), "b": range(99, 180)}.items()]
    >>> integrate(party.share(X[180:400]) for party in parties)
    Integrated(integrator=AnchorScaled, representations={'a': (99, 8), 'b': (81, 8)})
    """
    named = by_party(shares)
    made_up = [party for party, share in named.items() if share.anchor_rows is not None]
    if made_up:
        raise AgreementError(
            f"Parties {made_up!r} shared rows of the anchor in place of their own, as LabelledAnchors and ClassShift "
            "do. Without targets these tell nothing of the parties' rows. Ask for shares with another defence, such as "
            "Microaggregation or GaussianNoise."
        )
    fitted = AnchorScaled() if integrator is None else clone(integrator)
    fitted.fit({party: share.anchor_representation for party, share in named.items()})
    return Integrated(
        integrator=fitted,
        representations=fitted.transform({party: share.representation for party, share in named.items()}),
        repeated=tuple(party for party, share in named.items() if _part_repeated(share) >= _REPEATED),
    )


def _part_repeated(share: Share) -> float:
    """Part of the shared rows that equal another."""
    _, numbers, counts = np.unique(share.representation, axis=0, return_inverse=True, return_counts=True)
    return float(np.mean(counts[numbers.ravel()] > 1))
