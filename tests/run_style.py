"""Look for odd phrases in texts of the package, its pages and the README; name each place, and fail if there is one."""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PHRASES = {
    "whoever": "name the actor, or write 'anybody who'",
    "whatever is": "name the thing",
    "is wanted": "write 'expected X, got Y'",
    "are wanted": "write 'expected X, got Y'",
    "of which": "begin a new sentence",
    "told": "name who says what to whom",
}
PATTERN = re.compile(r"\b(" + "|".join(PHRASES).replace(" ", r"\s+") + r")\b(?!\.csv)", re.IGNORECASE)
FILES = {"src": ("*.py", "*.toml", "*.html"), "docs": ("*.md",), ".": ("README.md",)}
RESULTS = ROOT / "docs" / "results"


def found() -> list[str]:
    """Return each phrase with its file and line."""
    files = (file for place, patterns in FILES.items() for pattern in patterns for file in _matching(place, pattern))
    lines = []
    for file in sorted(files):
        source = file.read_text(encoding="utf-8")
        for start, text in _texts(source) if file.suffix == ".py" else [(1, source)]:
            for match in PATTERN.finditer(text):
                phrase = " ".join(match[0].lower().split())
                line = start + text.count("\n", 0, match.start())
                lines.append(f"{file.relative_to(ROOT)}:{line}: {phrase}: {PHRASES[phrase]}")
    return lines


def _matching(place: str, pattern: str) -> list[Path]:
    folder = ROOT / place
    every = folder.glob(pattern) if place == "." else folder.rglob(pattern)
    return [file for file in every if RESULTS not in file.parents]


def _texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield strings and comments of a program with their lines; names are no prose."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


if __name__ == "__main__":
    sys.exit("\n".join(found()) or 0)
