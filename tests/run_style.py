"""Look for odd phrases in the package, its pages and the README, name every place, and fail if there is one."""

import re
import sys
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
FILES = {"src": ("*.py", "*.toml", "*.html"), "docs": ("*.md",), "README.md": ()}
RESULTS = ROOT / "docs" / "results"
PATTERN = re.compile(r"\b(" + "|".join(PHRASES).replace(" ", r"\s+") + r")\b", re.IGNORECASE)


def found() -> list[str]:
    """Return each phrase with its file and line."""
    lines = []
    for file in sorted(file for place in FILES for file in _files(ROOT / place)):
        text = file.read_text(encoding="utf-8")
        for match in PATTERN.finditer(text):
            phrase = " ".join(match[0].lower().split())
            line = text.count("\n", 0, match.start()) + 1
            lines.append(f"{file.relative_to(ROOT)}:{line}: {phrase}: {PHRASES[phrase]}")
    return lines


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    matches = (file for pattern in FILES[place.name] for file in place.rglob(pattern))
    return [file for file in matches if RESULTS not in file.parents]


if __name__ == "__main__":
    lines = found()
    print(*lines, sep="\n")  # noqa: T201
    sys.exit(1 if lines else 0)
