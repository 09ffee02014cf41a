"""What the centre sends back to all groups: the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..bundle import Bundle, SignedFile, canonical_json, digest
from ..errors import ShareError
from ._group_file import arrays_of, contents_of, frozen, malformed, too_large
from ._group_settings import CENTRED, MOST_ROWS, check_settings, is_name

__all__ = ["TARGET_KIND", "GroupTarget", "group_target_contents", "group_target_from"]

TARGET_KIND = "datacollab.group-target"

_FACTS = ("settings", "groups", "n_parties", "gap")
_ARRAYS = ("target", "eigenvalues")
_MOST_GROUPS = 10_000
_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class GroupTarget(SignedFile):
    r"""What all groups get from the centre: a target onto which each maps its own parties.

    Attributes
    ----------
    settings : dict of str to object
        The integration method and its parameters, as in the groups' messages.
    groups : tuple of str
        Whose messages it is made of, sorted.
    n_parties : int
        Of all groups together.
    target : ndarray of shape (n_anchors, n_components)
        Orthonormal columns that span Z.
    eigenvalues : ndarray of shape (n_components,)
        Of the sum over all parties: the largest ones, descending, or of `KTI` the smallest ones of the problem solved,
        ascending.
    gap : float or None
        Of `KTI` the first eigenvalue not taken less the last one taken.

    Raises
    ------
    ShareError
        When the fields do not fit together.
    """

    kind = TARGET_KIND

    settings: Mapping[str, Any]
    groups: Sequence[str]
    n_parties: int
    target: FloatArray = field(repr=False)
    eigenvalues: FloatArray = field(repr=False)
    gap: float | None = None

    def __post_init__(self) -> None:
        settings = check_settings(self.settings)
        are_names = isinstance(self.groups, list | tuple) and all(map(is_name, self.groups))
        if not are_names or not 1 <= len(self.groups) <= _MOST_GROUPS or sorted(set(self.groups)) != [*self.groups]:
            raise ShareError("a target must name its groups, each once, sorted")
        if type(self.n_parties) is not int or not len(self.groups) <= self.n_parties <= MOST_ROWS:
            raise ShareError("a target must say of how many parties it is, at least one for each group")
        if self.gap is not None and not (isinstance(self.gap, float) and np.isfinite(self.gap)):
            raise ShareError("a target's gap must be a finite number")
        _check_arrays(self.target, self.eigenvalues, settings)
        object.__setattr__(self, "settings", settings)
        object.__setattr__(self, "groups", tuple(self.groups))
        object.__setattr__(self, "target", frozen(self.target))
        object.__setattr__(self, "eigenvalues", frozen(self.eigenvalues))

    @property
    def n_anchors(self) -> int:
        """Rows of the anchor."""
        return int(self.target.shape[0])

    @property
    def digest(self) -> str:
        """SHA-256 of settings and arrays: what is mapped onto equal ones may be added up."""
        arrays = "".join(digest(np.ascontiguousarray(getattr(self, name)).tobytes()) for name in _ARRAYS)
        return digest(canonical_json([dict(self.settings), list(self.groups), self.n_parties, arrays]))

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return group_target_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> GroupTarget:
        return group_target_from(bundle)

    def __repr__(self) -> str:
        return (
            f"GroupTarget(method={self.settings['method']!r}, groups={list(self.groups)!r}, "
            f"n_parties={self.n_parties}, target={self.target.shape})"
        )


def _check_arrays(Z: FloatArray, eigenvalues: FloatArray, settings: Mapping[str, Any]) -> None:
    n_components = settings["n_components"]
    for name, array, shape in (("target", Z, (len(Z), n_components)), ("eigenvalues", eigenvalues, (n_components,))):
        if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
            raise ShareError(f"a target's {name} must be finite numbers of shape {shape}; got shape {array.shape}")
    if len(Z) < max(2, n_components) or np.abs(Z).max() > 1 + _ROUNDING:
        raise ShareError("a target has orthonormal columns, and so entries from -1 to 1")
    if np.abs(Z.T @ Z - np.eye(n_components)).max() > _ROUNDING:
        raise ShareError("a target's columns are not orthonormal")
    if settings.get(CENTRED.get(settings["method"], ""), False) and np.abs(Z.sum(axis=0)).max() > _ROUNDING * len(Z):
        raise ShareError("a target's columns do not sum to zero, where settings say that they do")
    least, steps = (0.0, np.diff(eigenvalues)) if settings["method"] == "KTI" else (1e-300, -np.diff(eigenvalues))
    rounding = _ROUNDING * np.abs(eigenvalues).max()
    if eigenvalues.min() < least - (rounding if settings["method"] == "KTI" else 0) or (steps < -rounding).any():
        raise ShareError("a target's eigenvalues are negative, or out of order")


def group_target_contents(target: GroupTarget) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts and members of the bundle of a target."""
    facts = {name: getattr(target, name) for name in _FACTS} | {"groups": list(target.groups)}
    return contents_of(facts, {name: getattr(target, name) for name in _ARRAYS})


def group_target_from(bundle: Bundle) -> GroupTarget:
    """The target in a bundle, after checks of every part.

    Parameters
    ----------
    bundle : Bundle
        Unsealed.

    Raises
    ------
    ExchangeError
        WRONG_KIND, TOO_LARGE, or GROUP_MALFORMED where the parts do not fit together.
    """
    try:
        arrays = arrays_of(bundle, TARGET_KIND, _FACTS, [_ARRAYS])
        if arrays["target"].ndim != 2:
            raise malformed("its target is no table")
        fields: dict[str, Any] = {name: bundle.facts[name] for name in _FACTS}
        return GroupTarget(**fields, target=arrays["target"], eigenvalues=arrays["eigenvalues"])
    except ShareError as error:
        raise malformed(str(error)) from None
    except MemoryError:
        raise too_large() from None
