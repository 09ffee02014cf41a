"""Errors for a predictor that cannot be taken."""

from __future__ import annotations

from ...errors import ExchangeError
from .._refusal import malformed, too_large

__all__ = ["bad_predictor", "large_predictor"]


def bad_predictor(what: str) -> ExchangeError:
    """The error for a predictor whose parts contradict one another."""
    return malformed(f"its estimator {what}")


def large_predictor(what: str) -> ExchangeError:
    """The error for a predictor that would take more memory or time than one may."""
    return too_large(f"has an estimator with {what}")
