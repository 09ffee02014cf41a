"""Anchors as three parties see them, each through a nonlinear map of its own, and shares of turned rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import datacollab as dc


def nonlinear_views(
    n_anchors: int, *, seed: int = 0, widths: tuple[int, int, int] = (8, 5, 7)
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.float64]]:
    """Three parties' views of one latent table, by party, and that table."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_anchors, 6))
    bends = (np.tanh, np.sin, lambda t: t + 0.1 * t**2)
    views = {
        party: bend(latent @ rng.normal(size=(6, width)))
        for party, bend, width in zip("abc", bends, widths, strict=True)
    }
    return views, latent


def turned_shares(
    rng: np.random.Generator,
    target: Callable[[NDArray[np.float64]], NDArray[Any]],
    *,
    n_parties: int = 3,
    n_rows: int = 40,
    n_anchors: int = 60,
    d: int = 4,
) -> list[dc.Share]:
    """Shares of parties that turn the same space, each in its own way."""
    A = rng.normal(size=(n_anchors, d))
    anchor_target = target(A)
    shares = []
    for k in range(n_parties):
        X = rng.normal(size=(n_rows, d))
        rotation = np.linalg.qr(rng.normal(size=(d, d)))[0]
        shares.append(
            dc.Share(
                party=f"p{k}",
                representation=X @ rotation,
                anchor_representation=A @ rotation,
                target=target(X),
                anchor_target=anchor_target,
            )
        )
    return shares
