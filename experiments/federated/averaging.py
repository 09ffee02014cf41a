"""Federated averaging: what one party does in one round, and the whole as a plain loop.

Flower's clients call `local_update`; the loop does the same without messages.  Hyperparameters are tuned with the
loop, which is several times faster, and the comparison checks that both give the same accuracies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from mlp import Float32, Parameters, Settings, train
from numpy.typing import NDArray


def local_update(
    parameters: Parameters,
    rows: tuple[Float32, NDArray[np.int64]],
    settings: Settings,
    *,
    seed: int,
    party: int,
    round_number: int,
) -> Parameters:
    """Parameters after a party's own epochs of one round, in an order of its rows that only the numbers determine."""
    return train(parameters, *rows, settings, np.random.default_rng([seed, party, round_number]))


def average(updates: Sequence[Parameters], weights: Sequence[float]) -> Parameters:
    """Mean of the parties' parameters, weighted by their numbers of rows."""
    shares = np.asarray(weights, dtype=np.float32) / np.float32(sum(weights))
    return [
        sum(share * array for share, array in zip(shares, arrays, strict=True)) for arrays in zip(*updates, strict=True)
    ]


def federated_averaging(
    start: Parameters,
    parties: Sequence[tuple[Float32, NDArray[np.int64]]],
    settings: Settings,
    *,
    n_rounds: int,
    seed: int,
) -> Iterator[Parameters]:
    """Yield the common parameters after each round in which all parties take part."""
    parameters = start
    sizes = [len(y) for _, y in parties]
    for round_number in range(1, n_rounds + 1):
        updates = [
            local_update(parameters, rows, settings, seed=seed, party=party, round_number=round_number)
            for party, rows in enumerate(parties)
        ]
        parameters = average(updates, sizes)
        yield parameters
