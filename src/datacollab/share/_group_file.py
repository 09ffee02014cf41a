"""What crosses between analysts of groups, as facts and one member of arrays, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any

from numpy.typing import NDArray

from .._typing import FloatArray
from .._version import __version__
from ..bundle import Bundle, arrays_to_bytes, bytes_to_arrays
from ..errors import ExchangeError

__all__ = ["arrays_of", "contents_of", "frozen", "malformed", "too_large"]

_MEMBER = "group.safetensors"
_LATER = {"created", "versions"}
"""Facts that say when and with what a file was made, and not what is in it."""


def contents_of(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Facts for the manifest, and members."""
    said = {"created": datetime.now(UTC).isoformat(timespec="seconds"), "versions": {"datacollab": __version__}}
    return {**facts, **said}, {_MEMBER: arrays_to_bytes(arrays)}


def arrays_of(
    bundle: Bundle, kind: str, facts: Collection[str], arrays: Collection[Collection[str]]
) -> dict[str, NDArray[Any]]:
    """Arrays of a bundle that has these facts.

    Parameters
    ----------
    bundle : Bundle
    kind : str
        The one wanted.
    facts : collection of str
        All that it has to say.
    arrays : collection of collections of str
        Names that may be there together.

    Raises
    ------
    ExchangeError
        WRONG_KIND or GROUP_MALFORMED.
    """
    if bundle.kind != kind:
        raise ExchangeError(
            "WRONG_KIND", f"A bundle of kind {kind!r} is wanted, but this is of {bundle.kind!r}. Give the right file."
        )
    if bundle.facts.keys() != {*facts, *_LATER}:
        raise malformed("its manifest does not say what it has to say")
    if bundle.members.keys() != {_MEMBER}:
        raise malformed(f"it has the members {sorted(bundle.members)!r}, where {_MEMBER!r} alone is wanted")
    try:
        found = bytes_to_arrays(bundle.members[_MEMBER], what=_MEMBER)
    except ExchangeError as error:
        raise malformed(str(error).partition(". ")[0]) from None
    if not any(found.keys() == set(names) for names in arrays):
        raise malformed("it does not hold the arrays that it has to hold")
    return found


def frozen(array: FloatArray) -> FloatArray:
    """A copy that cannot be written to."""
    copy = array.copy()
    copy.setflags(write=False)
    return copy


def malformed(what: str) -> ExchangeError:
    """The error for a file between groups that cannot be used."""
    return ExchangeError("GROUP_MALFORMED", f"The file cannot be used: {what}. Have it made again.")


def too_large() -> ExchangeError:
    """The error for a file between groups that takes more memory than there is."""
    return ExchangeError(
        "TOO_LARGE", "The file cannot be used: it takes more memory than this machine has. Take fewer anchor rows."
    )
