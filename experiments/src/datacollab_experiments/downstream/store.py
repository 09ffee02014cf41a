"""Results as lines of JSON, so that a run which is stopped goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

__all__ = ["FILE", "append", "digest_of", "read"]

FILE = "results.jsonl"


def digest_of(section: str) -> str:
    """Of what measures a section: figures of an earlier version of it are computed again."""
    here = Path(__file__).parent
    return hashlib.sha256((here / f"{section}.py").read_bytes()).hexdigest()[:12]


def append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add the rows of one seed, in one go."""
    text = "".join(json.dumps(row, sort_keys=True) + "\n" for row in rows)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def read(path: Path) -> list[dict[str, Any]]:
    """All rows; a last line that a stopped run cut off is left out."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows
