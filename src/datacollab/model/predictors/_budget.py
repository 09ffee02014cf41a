"""What all parts of a model together may cost the program that reads and applies it."""

from __future__ import annotations

from ._refusals import large_predictor

__all__ = ["Budget"]

_MOST_WORK = 5 * 10**6
"""For one row, in units of about a nanosecond."""
_MOST_CALLS = 50_000
"""Of compiled functions for one batch of rows, however few: each costs some microseconds, and a tree's making more."""
_MOST_NODES = 5 * 10**6
"""Of all trees: each takes some two hundred bytes while they are made ready."""


class Budget:
    """Counts, and refuses where it is too much: a file of a few kilobytes can ask for hours.

    Raises
    ------
    ExchangeError
        TOO_LARGE, by all methods.
    """

    def __init__(self) -> None:
        self.work, self.calls, self.nodes = 0.0, 0, 0

    def spend(self, work: float, calls: int) -> None:
        """Count one step, or another model of an average."""
        self.work, self.calls = self.work + work, self.calls + calls
        if self.work > _MOST_WORK or self.calls > _MOST_CALLS:
            raise large_predictor("more work for a row, or more calls, than is allowed")

    def take_nodes(self, n_nodes: int) -> None:
        """Count nodes, before anything is made of them."""
        self.nodes += n_nodes
        if self.nodes > _MOST_NODES:
            raise large_predictor(f"{self.nodes} nodes in its trees; {_MOST_NODES} are allowed")

    def take_trees(self, n_trees: int) -> None:
        """Count trees, before they are made."""
        if self.calls + n_trees > _MOST_CALLS:
            raise large_predictor(f"{n_trees} trees; {_MOST_CALLS} are allowed")
