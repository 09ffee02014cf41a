"""What went wrong, as a page shows it: the code, the sentence, what to do; never a data value."""

from __future__ import annotations

from dataclasses import dataclass

from ..._codes import CODES
from ...errors import DataCollabError, ExchangeError

__all__ = ["Refusal", "refusal_of"]

BUG = "BUG"


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """One refusal.

    Attributes
    ----------
    code : str
        As the commands print it.
    message : str
    remedy : str
        What to do, where the code has one.
    """

    code: str
    message: str
    remedy: str = ""

    @property
    def status(self) -> int:
        """Of the answer that shows it."""
        return 500 if self.code == BUG else 422


def refusal_of(error: BaseException) -> Refusal:
    """Put an error into words, as `datacollab.cli` does.

    Examples
    --------
    >>> from datacollab.errors import ExchangeError
    >>> refusal_of(ExchangeError("NOT_SHARED", "Party 'a' has not shared.")).remedy
    'Run `datacollab party share` first.'
    >>> refusal_of(KeyError("an entry of the table")).message
    'A KeyError that should not happen. Nothing was sent.'
    """
    if isinstance(error, ExchangeError):
        return Refusal(code=error.code, message=str(error), remedy=CODES[error.code].remedy)
    if isinstance(error, DataCollabError | ValueError | OSError):
        return Refusal(code=type(error).__name__, message=str(error))
    # Words of an error that nobody foresaw may quote data.
    return Refusal(code=BUG, message=f"A {type(error).__name__} that should not happen. Nothing was sent.")
