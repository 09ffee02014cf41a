"""A lower bound on epsilon from one run with canaries."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

__all__ = ["one_run_epsilon"]

_LARGEST = 1000.0
"""Epsilon beyond which randomised response is right with probability one in double precision, many times over."""

_PRECISION = 1e-9


def one_run_epsilon(correct: int, guesses: int, canaries: int, delta: float, confidence: float = 0.95) -> float:
    r"""Epsilon that a mechanism exceeds, given how well an attacker guessed which canaries went in [1]_.

    Each of m canaries goes into the data by a fair coin of its own.  After one run of the mechanism an attacker guesses
    of r of them whether they are in, and is right v times.  If the mechanism were :math:`(\varepsilon, \delta)`
    differentially private, then with :math:`q = e^\varepsilon / (e^\varepsilon + 1)` and B binomial of r tries at q,

    .. math:: P(V \ge v) \le P(B \ge v) + 2 m \delta \max_{i = 1, \dots, v} \frac{P(v > B \ge v - i)}{i}.

    Parameters
    ----------
    correct : int
        v, guesses that were right.
    guesses : int
        r, guesses made; at most one for each canary.
    canaries : int
        m, canaries whose coin was flipped, also those not guessed about.
    delta : float
        Of the claim that is put to the test.
    confidence : float, default=0.95

    Returns
    -------
    float
        The smallest :math:`\varepsilon` that is not refuted at this confidence; 0 where nothing is shown.

    Raises
    ------
    ValueError
        When the numbers do not fit together.

    Notes
    -----
    This is a sanity figure.  It can refute a claim of differential privacy and never support one: with 100 guesses it
    does not exceed 3.465, whatever the mechanism does.

    References
    ----------
    .. [1] Steinke, Nasr and Jagielski (2023). Privacy auditing with one (1) training run. Advances in Neural
       Information Processing Systems 36.

    Examples
    --------
    >>> from datacollab.risk.attacks import one_run_epsilon
    >>> round(one_run_epsilon(900, 1000, 1000, 1e-5), 3)
    2.021
    """
    if not 0 <= correct <= guesses <= canaries:
        raise ValueError(
            f"correct={correct} of guesses={guesses} about canaries={canaries} do not fit together; no more guesses "
            "than canaries can be made, and no more be right than are made."
        )
    if not 0 <= delta <= 1 or not 0 < confidence < 1:
        raise ValueError(f"delta={delta!r} must lie in [0, 1] and confidence={confidence!r} between 0 and 1.")
    level = 1 - confidence
    if _p_value(0.0, correct, guesses, canaries, delta) >= level:
        return 0.0
    low, high = 0.0, 1.0
    while high < _LARGEST and _p_value(high, correct, guesses, canaries, delta) < level:
        low, high = high, 2 * high
    while high - low > _PRECISION:
        middle = (low + high) / 2
        if _p_value(middle, correct, guesses, canaries, delta) < level:
            low = middle
        else:
            high = middle
    return low


def _p_value(epsilon: float, correct: int, guesses: int, canaries: int, delta: float) -> float:
    """Bound on the probability of so many right guesses under (epsilon, delta) differential privacy."""
    q = 1 / (1 + math.exp(-epsilon))
    tail = float(stats.binom.sf(correct - 1, guesses, q))
    below = stats.binom.pmf(np.arange(correct - 1, -1, -1), guesses, q)
    steepest = float((below.cumsum() / np.arange(1, correct + 1)).max(initial=0.0))
    return min(1.0, tail + 2 * canaries * delta * steepest)
