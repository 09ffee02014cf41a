"""An audit's result as JSON, and back."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from typing import Any

from ._facts import AuditFacts
from ._findings import DefenceEffect, Finding, Level, Record

__all__ = ["fields_of", "to_text"]

_FORMAT = 1
_PARTS = {"findings": Finding, "levels": Level, "worst_records": Record, "defences": DefenceEffect}


def to_text(result: AuditFacts) -> str:
    """Write a result as JSON; what is not a number becomes null."""
    return (
        json.dumps({"format": _FORMAT, **_plain(asdict(result))}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )


def fields_of(text: str, wanted: set[str]) -> dict[str, Any]:
    """Read the wanted fields of a result from JSON.

    Raises
    ------
    ValueError
        When the text is no JSON, of another format, or has other fields.
    """
    try:
        told = json.loads(text)
    except ValueError:
        raise ValueError(
            "This cannot be read as JSON. Give the text of an audit.json, or its path as a pathlib.Path."
        ) from None
    if not isinstance(told, dict) or told.get("format") != _FORMAT:
        found = told.get("format") if isinstance(told, dict) else None
        raise ValueError(
            f"This is not the JSON of an audit in format {_FORMAT}; found format {found!r}. Give the text of an "
            "audit.json that this version of datacollab wrote."
        )
    del told["format"]
    if set(told) != wanted:
        raise ValueError(f"The JSON of this audit lacks fields, or has others: {sorted(set(told) ^ wanted)}.")
    try:
        for name, kind in _PARTS.items():
            told[name] = tuple(_made(kind, part) for part in told[name])
        for name in ("assumptions", "not_tested", "seeds"):
            told[name] = None if told[name] is None else tuple(told[name])
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"A part of this audit's JSON is not what it should be ({type(error).__name__}).") from None
    return told


def _made(kind: type, part: dict[str, Any]) -> Any:
    """One of the dataclasses; lists become tuples, and a value that is null NaN."""
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in part.items()}
    if "value" in {field.name for field in fields(kind)} and values["value"] is None:
        values["value"] = math.nan
    if "per_seed" in values:
        values["per_seed"] = tuple(math.nan if value is None else value for value in values["per_seed"])
    return kind(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    # NumPy's numbers are none to the json module.
    return value.item() if hasattr(value, "item") else value
