"""Words of requests that name things: checked before anything is looked up by them."""

from __future__ import annotations

import re

from datacollab.errors import ExchangeError

__all__ = ["check_fingerprint", "check_id", "check_name", "check_sha256", "is_id", "not_found"]

# 128 random bits in hexadecimal: nobody finds one by trying.
_ID = re.compile("[0-9a-f]{32}")
_SHA256 = re.compile("[0-9a-f]{64}")
_FINGERPRINT = re.compile("[a-z2-7]{4}(-[a-z2-7]{4}){3}")
# As wide as the column that holds a name.
_MOST_LETTERS = 200


def not_found() -> ExchangeError:
    """One sentence for all that is not there, and all that is not for who asks, so that nobody can tell them apart."""
    return ExchangeError(
        "NOT_FOUND",
        "There is nothing of this name for this key. Compare the address; ask the project's owner whether the key is a "
        "member.",
    )


def is_id(text: str) -> bool:
    """Whether a text can be the id of a project or an upload."""
    return _ID.fullmatch(text) is not None


def check_id(text: str) -> str:
    """The id of a project or an upload."""
    return _check(_ID, text)


def check_sha256(text: str) -> str:
    """A file's hash."""
    return _check(_SHA256, text)


def check_fingerprint(text: str) -> str:
    """A key's fingerprint."""
    return _check(_FINGERPRINT, text)


def check_name(text: str, what: str) -> str:
    """A name that people gave: a line of text of any script.

    Raises
    ------
    ExchangeError
        ``REQUEST_MALFORMED``.
    """
    # Nothing that breaks a line or cannot be seen: names stand beside our words in terminals and logs.
    if not (0 < len(text) <= _MOST_LETTERS and text.isprintable() and text.strip() == text):
        raise ExchangeError(
            "REQUEST_MALFORMED",
            f"{what}: 1 to {_MOST_LETTERS} printable characters in one line are wanted, no space at either end.",
        )
    return text


def _check(pattern: re.Pattern[str], text: str) -> str:
    # The answer to a name that nothing has, so that its form tells nothing either.
    if not pattern.fullmatch(text):
        raise not_found()
    return text
