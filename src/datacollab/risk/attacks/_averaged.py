"""The mean of what several attacks reconstruct."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ..._validation import FloatArray
from ._attack import ReconstructionAttack
from ._emulator import EmulatorAttack
from ._kernel_ridge import KernelRidgeAttack
from ._side import SideInformation
from ._targets import IntArray

__all__ = ["AveragedAttack"]


class AveragedAttack(ReconstructionAttack):
    """The mean of several attacks' reconstructions: often better than each, for their errors differ.

    Parameters
    ----------
    blind : sequence of ReconstructionAttack or None, default=None
        Attacks that never see targets.
    informed : sequence of ReconstructionAttack or None, default=None
        Attacks that know each row's class, or its group of similar numeric targets, where `fit` is given targets.

        With neither there are one `KernelRidgeAttack`, blind, and one `EmulatorAttack`, informed.

    Attributes
    ----------
    attacks_ : list of ReconstructionAttack
        Fitted on centred pairs: first those of `blind`, then those of `informed`.
    mean_representation_ : ndarray of shape (n_intermediate,)
    mean_original_ : ndarray of shape (n_features,)
    n_features_in_, n_features_out_ : int
        n_intermediate and n_features.

    Raises
    ------
    ValueError
        In `fit`, when both sequences are empty.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab.risk.attacks import AveragedAttack, LinearRegressionAttack, NearestNeighborsAttack
    >>> rng = np.random.default_rng(0)
    >>> leaked, public = rng.normal(size=(50, 3)), rng.normal(size=(200, 3))
    >>> attack = AveragedAttack(blind=[LinearRegressionAttack(), NearestNeighborsAttack()])
    >>> attack.fit(np.tanh(leaked), leaked, public=public).reconstruct(np.tanh(leaked[:4])).shape
    (4, 3)
    """

    needs_public: ClassVar[bool] = True
    _targets_as_columns: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, Any]] = {"blind": [list, tuple, None], "informed": [list, tuple, None]}

    attacks_: list[ReconstructionAttack]

    def __init__(
        self,
        *,
        blind: Sequence[ReconstructionAttack] | None = None,
        informed: Sequence[ReconstructionAttack] | None = None,
    ) -> None:
        self.blind = blind
        self.informed = informed

    def _fit(self, Z: FloatArray, A: FloatArray, side: SideInformation) -> None:
        if self.blind is None and self.informed is None:
            blind, informed = [KernelRidgeAttack()], [EmulatorAttack()]
        else:
            blind, informed = ([clone(attack) for attack in given or ()] for given in (self.blind, self.informed))
        if not blind and not informed:
            raise ValueError("There is no attack to average; give blind or informed attacks.")
        for attack in blind:
            attack.fit(Z, A, public=side.public)
        for attack in informed:
            attack.fit(Z, A, target=side.groups, public=side.public, public_target=side.public_groups)
        self._n_blind = len(blind)
        self.attacks_ = [*blind, *informed]

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        guesses = [attack.reconstruct(Z) for attack in self.attacks_[: self._n_blind]]
        guesses += [attack.reconstruct(Z, target=groups) for attack in self.attacks_[self._n_blind :]]
        mean: FloatArray = np.mean(guesses, axis=0)
        return mean
