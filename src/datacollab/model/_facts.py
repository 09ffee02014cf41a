"""What a model's manifest says, where it is shown to people or believed by programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ..bundle import Bundle
from ._refusal import malformed

__all__ = ["plain_facts"]

_MOST_COUNT = 10**12
_MOST_NUMBER = 1e300
_MOST_TEXT = 200
_MOST_ENTRIES = 50


def plain_facts(bundle: Bundle) -> dict[str, Any]:
    """The facts of a model, after a check that those known here are short and of their types.

    Parameters
    ----------
    bundle : Bundle
        Sealed or not; facts that it lacks are not asked for.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED, naming the facts that are not, never what they say.
    """
    wrong = [name for name, fits in _FITTING.items() if name in bundle.facts and not fits(bundle.facts[name])]
    if wrong:
        raise malformed(f"its manifest holds something else than what belongs there in {wrong!r}")
    return dict(bundle.facts)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _MOST_COUNT


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MOST_TEXT and value.isprintable()


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_TEXT and value.isidentifier() and value.isascii()


def _is_party(value: Any) -> bool:
    return type(value) is int or (isinstance(value, str) and len(value) <= _MOST_TEXT)


def _is_time(value: Any) -> bool:
    if not _is_text(value):
        return False
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _is_value(value: Any) -> bool:
    if type(value) in (float, int):
        return bool(abs(value) <= _MOST_NUMBER)
    return value is None or type(value) is bool or _is_text(value)


def _is_mapping(value: Any) -> bool:
    """Of names to single values."""
    if not isinstance(value, Mapping) or len(value) > _MOST_ENTRIES:
        return False
    return all(_is_text(name) and _is_value(each) for name, each in value.items())


def _is_lint(value: Any) -> bool:
    if not isinstance(value, Mapping) or value.keys() != {"found", "overridden_by"} or type(value["found"]) is not bool:
        return False
    return value["overridden_by"] is None or _is_text(value["overridden_by"])


_FITTING: dict[str, Callable[[Any], bool]] = {
    **dict.fromkeys(("n_components", "n_intermediate", "n_parties", "n_rows"), _is_count),
    **dict.fromkeys(("method", "project", "project_digest", "share_digest"), _is_text),
    "created": _is_time,
    "estimator": _is_name,
    "parameters": _is_mapping,
    "party": _is_party,
    "row_lint": _is_lint,
    "task": ("classification", "regression", "survival").__contains__,
    "versions": _is_mapping,
}
