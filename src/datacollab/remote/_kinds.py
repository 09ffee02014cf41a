"""Kinds of files that are carried: who makes each, and for whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["AGREEMENT", "KINDS", "Kind", "kind_of"]

AGREEMENT = "agreement"
"""What listings call the project file, which is no bundle."""

_ESTIMANDS = ("ATE", "ATT")


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Attributes
    ----------
    name : str
        As the hub and folders of a store call it.
    suffix : str
        Of the file's name.
    bundle : str
        Kind of the bundle in it.
    sender, recipient : str
        Roles: "owner", "analyst", "party" (the one that the bundle names) or "parties" (all of them).
    """

    name: str
    suffix: str
    bundle: str
    sender: str
    recipient: str


KINDS = {
    kind.name: kind
    for kind in (
        Kind("anchor", ".dcanchor", "datacollab.anchor", "owner", "parties"),
        Kind("share", ".dcshare", "datacollab.share", "party", "analyst"),
        Kind("sums", ".dcsums", "datacollab.sums", "party", "analyst"),
        Kind("balance", ".dcbalance", "datacollab.balance", "party", "analyst"),
        Kind("model", ".dcmodel", "datacollab.model", "analyst", "party"),
        Kind("answers", ".dcanswers", "datacollab.answers", "analyst", "party"),
        Kind("propensity", ".dcpropensity", "datacollab.model", "analyst", "party"),
    )
}
"""By their names."""


def kind_of(bundle: str, facts: Mapping[str, Any]) -> Kind | None:
    """The kind of file that a bundle is; None where it is none that is carried.

    Examples
    --------
    >>> kind_of("datacollab.model", {"method": "KTI"}).name, kind_of("datacollab.model", {"target": "ATE"}).name
    ('model', 'propensity')
    """
    if bundle == "datacollab.model":
        # A propensity is a model that says of which effect it is; those to predict with name no estimand there.
        return KINDS["propensity" if facts.get("target") in _ESTIMANDS else "model"]
    return next((kind for kind in KINDS.values() if kind.bundle == bundle), None)
