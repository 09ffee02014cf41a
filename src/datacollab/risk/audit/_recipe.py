"""A party's way of sharing, to be used on other rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

from ..._validation import FloatArray
from ...errors import DataCollabWarning
from ...party import Party
from ...share import Share

__all__ = ["recipe_of"]

MakeShare = Callable[[FloatArray, NDArray[Any], np.random.RandomState], Share]
"""From images under f_k, shape (n_rows, n_intermediate), their targets and a generator to a share of them."""


def recipe_of(party: Party, anchor_representation: FloatArray, anchor_target: NDArray[Any] | None) -> MakeShare:
    """The party's way of sharing rows that have been through f_k already, with the same anchor."""
    defences = tuple(party.defences)

    def make_share(images: FloatArray, target: NDArray[Any], random: np.random.RandomState) -> Share:
        with warnings.catch_warnings():
            # Suppressed rows of a made-up table are no news.
            warnings.simplefilter("ignore", DataCollabWarning)
            kept = tuple(clone(defence) for defence in defences)
            made = Party("shadow", FunctionTransformer(), defences=kept, random_state=random)
            return made.fit(images, target).share(anchor_representation, anchor_target)

    return make_share
