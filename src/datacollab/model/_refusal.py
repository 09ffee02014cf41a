"""How a model is refused."""

from __future__ import annotations

from ..errors import ExchangeError

__all__ = ["malformed", "reason_of", "too_large"]

_BEFORE = "The model is inconsistent: "


def malformed(what: str) -> ExchangeError:
    """The error for a model whose parts contradict one another."""
    return ExchangeError("MODEL_MALFORMED", f"{_BEFORE}{what}. Do not use it, and ask the analyst.")


def too_large(what: str) -> ExchangeError:
    """The error for a model that takes more memory or time than a model may."""
    return ExchangeError("TOO_LARGE", f"The model {what}. Ask the analyst for a smaller one.")


def reason_of(error: ExchangeError) -> str:
    """What an error about a model says was found."""
    return str(error).removeprefix(_BEFORE).partition(". Do not use it")[0]
