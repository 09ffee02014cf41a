"""Anchors as three parties see them, each through a nonlinear map of its own."""

import numpy as np
from numpy.typing import NDArray


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
