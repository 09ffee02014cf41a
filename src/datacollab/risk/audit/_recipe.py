"""A party's way of sharing, to be used on other rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from ..._validation import FloatArray
from ...errors import DataCollabWarning
from ...party import Party
from ...share import Share
from ...targets import TargetKind
from ._named_targets import TargetNumbers

__all__ = ["recipe_of", "with_numbers"]


def with_numbers(share: Share, coding: TargetNumbers) -> Share:
    """The share with numbers for targets."""
    if coding.kind is TargetKind.SINGLE:
        return share
    anchor_target = None if share.anchor_target is None else coding.numbers(share.anchor_target)
    return replace(share, target=coding.numbers(share.target), anchor_target=anchor_target)


MakeShare = Callable[[FloatArray, NDArray[Any], np.random.RandomState], Share]
"""From images under f_k, shape (n_rows, n_intermediate), their targets and a generator to a share of them."""


def recipe_of(
    party: Party, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None, coding: TargetNumbers
) -> MakeShare:
    """The party's way of sharing rows that have been through f_k already, with the same anchor.

    Targets go in and come out as the numbers of `coding`; the anchor's are as the party has them.
    """
    defences = tuple(party.defences)

    def make_share(images: FloatArray, target: NDArray[Any], random: np.random.RandomState) -> Share:
        with warnings.catch_warnings():
            # Suppressed rows of a made-up table are no news.
            warnings.simplefilter("ignore", DataCollabWarning)
            kept = tuple(clone(defence) for defence in defences)
            # Times were rounded before they became numbers.
            made = Party("shadow", FunctionTransformer(), defences=kept, time_step=None, random_state=random)
            share = made.fit(images, coding.targets(target)).share(anchor_representation, anchor_target)
        return with_numbers(share, coding)

    return make_share
