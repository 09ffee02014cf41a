"""What tells single rows apart, taken from the anchor and put back on means."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray, Interval, StrOptions
from ..targets import TargetKind, target_kind
from ._class_shift import anchor_classes
from ._defence import Defence, Published

__all__ = ["AnchorResiduals"]


class AnchorResiduals(Defence):
    """Add to each row how a random row of the anchor differs from the mean of its class.

    For means of groups, after noise: means lie closer together than rows do, and a model that learns from them alone
    errs on rows.

    Parameters
    ----------
    n_bins : int, "auto" or None, default="auto"
        For numeric targets, as for `ClassShift`.

    Notes
    -----
    No guarantee, and without noise no protection: rows of one mean differ as rows of the anchor do, so that whoever has
    the anchor's representation takes the residuals off again, as the attack `without_anchor_residuals` does.  Noise
    before prevents that: ``[Microaggregation(5), GaussianNoise(0.3), AnchorResiduals()]``.  Without targets of the
    anchor, and for classes that it has no row of, residuals are from the mean of the whole anchor.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.party import AnchorResiduals
    >>> means, anchor = np.zeros((4, 1)), np.array([[9.0], [11.0], [20.0], [20.0]])
    >>> published, _ = AnchorResiduals().apply(
    ...     means, [0, 0, 1, 1], anchor_representation=anchor, anchor_target=[0, 0, 1, 1], random_state=0
    ... )
    >>> np.abs(published.ravel())
    array([1., 1., 0., 0.])
    """

    needs_anchor: ClassVar[bool] = True
    independent_rows: ClassVar[bool] = True
    target_kinds: ClassVar[frozenset[TargetKind]] = frozenset(TargetKind)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_bins": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None]
    }

    def __init__(self, n_bins: int | str | None = "auto") -> None:
        self.n_bins = n_bins

    def _defend(
        self,
        representation: FloatArray,
        target: NDArray[Any],
        anchor_representation: FloatArray | None,
        anchor_target: NDArray[Any] | None,
        generator: np.random.RandomState,
    ) -> Published:
        assert anchor_representation is not None  # release() refuses otherwise
        own, anchor = np.full(len(target), -1), np.full(len(anchor_representation), -1)
        if anchor_target is not None and target_kind(target) is TargetKind.SINGLE:
            classes = anchor_classes(target, anchor_target, self.n_bins)
            own, anchor = classes.own, classes.anchor
        rows = representation.copy()
        for number in np.unique(own):
            members = np.flatnonzero(own == number)
            public = anchor_representation if number < 0 else anchor_representation[anchor == number]
            drawn = generator.randint(len(public), size=len(members))
            rows[members] += public[drawn] - public.mean(axis=0)
        # Which anchor row each residual is from stays here: with it, the means would stand bare.
        return Published(rows=rows, target=target, own_rows=np.arange(len(rows)))
