"""Codes of refusals in the exchange of files, each with its meaning and remedy."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

EXIT_CODES = {
    "keys": 10,
    "verification": 11,
    "policy": 12,
    "schema": 13,
    "state": 14,
    "limits": 15,
    "model": 16,
    "remote": 17,
}
"""Exit codes of the program, by the kind of a refusal."""


@dataclass(frozen=True)
class Code:
    """A reason to refuse: its kind, a key of `EXIT_CODES`, and a sentence each on its meaning and the remedy."""

    kind: str
    meaning: str
    remedy: str

    @property
    def exit_code(self) -> int:
        """Return the exit code of the program."""
        return EXIT_CODES[self.kind]


_KINDS = tomllib.loads(Path(__file__).with_name("codes.toml").read_text(encoding="utf-8"))
CODES = {name: Code(kind, *texts) for kind, codes in _KINDS.items() for name, texts in codes.items()}
"""The library's codes by their names."""

_ADDED: dict[str, Code] = {}


def add_codes(codes: Mapping[str, Code]) -> None:
    """Add the codes of a plugin; raise a ValueError if one of the names has another meaning already."""
    known = all_codes()
    # A plugin may be loaded twice, and then adds the same again.
    taken = sorted(name for name, code in codes.items() if known.get(name, code) != code)
    if taken:
        raise ValueError(f"Codes of refusals that are taken: {', '.join(taken)}.")
    _ADDED.update(codes)


def all_codes() -> dict[str, Code]:
    """Return all codes by their names, those of plugins included."""
    return {**CODES, **_ADDED}
