"""Shapley values of a model's columns: masked columns come from rows of a background."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ._columns_of_tables import ColumnTable, Players
from ._shapley import Coalitions, all_coalitions, antithetic_orders, coalitions_along, values_along, values_of_all

__all__ = ["BLOCK_ROWS", "MaskedModel"]

BLOCK_ROWS = 8_192
"""Rows that are composed and predicted together."""


class MaskedModel:
    r"""What coalitions of columns are worth to a model, and each column's part of it.

    For a row x and a row b of the background, a coalition S is worth :math:`F(x_S, b_{\bar S})`, the answer for x with
    the other columns taken from b; over the background the mean is taken, as in [Janzing2020].

    Parameters
    ----------
    answer : callable
        F: from a table of n rows to an ndarray of shape (n, n_outputs).
    table : ColumnTable
        The rows to explain, and the background below.
    n_rows : int
        How many are to be explained.
    players : Players
    """

    def __init__(self, answer: Callable[[Any], FloatArray], table: ColumnTable, n_rows: int, players: Players) -> None:
        self._answer, self._table, self._players = answer, table, players
        self._background = np.arange(n_rows, len(table))
        everything = np.arange(len(table))
        self._alone = self._answers(np.ones((len(table), len(players)), dtype=np.bool_), everything, everything)

    @property
    def base_values(self) -> FloatArray:
        """Mean answer over the background, shape (n_outputs,)."""
        return np.asarray(self._alone[self._background].mean(axis=0))

    def exact(self, row: int) -> FloatArray:
        """Values of one row from all coalitions, shape (n_players, n_outputs)."""
        coalitions = all_coalitions(len(self._players))
        n_background = len(self._background)
        worths = np.empty((len(coalitions), self._alone.shape[1]))
        worths[0], worths[-1] = self.base_values, self._alone[row]
        step = max(1, BLOCK_ROWS // n_background)
        for start in range(1, len(coalitions) - 1, step):
            some = coalitions[start : min(start + step, len(coalitions) - 1)]
            kept = np.repeat(some, n_background, axis=0)
            answers = self._answers(kept, np.full(len(kept), row), np.tile(self._background, len(some)))
            worths[start : start + len(some)] = answers.reshape(len(some), n_background, -1).mean(axis=1)
        return values_of_all(worths)

    def along_paths(self, row: int, n_permutations: int, generator: np.random.Generator) -> FloatArray:
        """Values of one row along random orders and their reverses, shape (n_players, n_outputs).

        Every row of the background begins as many paths, so that values add up to the row's answer less the base value.
        """
        n_players = len(self._players)
        orders = antithetic_orders(n_permutations * len(self._background), n_players, generator)
        start_of = np.repeat(self._background, 2 * n_permutations)
        values = np.zeros((n_players, self._alone.shape[1]))
        step = max(1, BLOCK_ROWS // max(1, n_players - 1))
        for start in range(0, len(orders), step):
            some, begins = orders[start : start + step], start_of[start : start + step]
            kept = coalitions_along(some).reshape(-1, n_players)
            answers = self._answers(kept, np.full(len(kept), row), np.repeat(begins, n_players - 1))
            ends = np.broadcast_to(self._alone[row], (len(some), 1, values.shape[1]))
            inner = answers.reshape(len(some), n_players - 1, values.shape[1])
            worths = np.concatenate([self._alone[begins][:, None], inner, ends], axis=1)
            values += values_along(some, worths) * (len(some) / len(orders))
        return values

    def sample(self, n_masked: int, generator: np.random.Generator) -> Any:
        """Rows such as are predicted for the values: of random coalitions."""
        n_players, first = len(self._players), self._background[0]
        kept = generator.random((n_masked, n_players)) < generator.random((n_masked, 1))
        rows = generator.integers(first, size=n_masked)
        return self._table.composed(kept, rows, generator.choice(self._background, n_masked), self._players)

    def _answers(self, kept: Coalitions, rows: NDArray[np.intp], others: NDArray[np.intp]) -> FloatArray:
        blocks = []
        for start in range(0, len(kept), BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            blocks.append(self._answer(self._table.composed(kept[part], rows[part], others[part], self._players)))
        return np.concatenate(blocks) if blocks else np.empty((0, self._alone.shape[1]))
