"""Blocks of code in the documents, and what is typed in those of a terminal."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*/docs/*.md")])
_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
_PROMPT = re.compile(r"^[$#] ")


@dataclass(frozen=True)
class Block:
    """What stands between two fences.

    Attributes
    ----------
    document, language, text : str
    line : int
        Of its first fence.
    """

    document: str
    language: str
    text: str
    line: int

    @property
    def name(self):
        return f"{self.document}:{self.line}"

    @property
    def typed(self):
        """What is typed after a prompt, line by line, comments with them, as a shell leaves them out itself."""
        whole = re.sub(r" \\\n +", " ", self.text)
        return [_PROMPT.sub("", line) for line in whole.splitlines() if _PROMPT.match(line)]


def blocks(*languages):
    """All blocks, or those of some languages."""
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for match in _FENCED.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(document.name, match[1].strip(), match[2], line))
    return [each for each in found if not languages or each.language in languages]


def block_of(document, beginning):
    """The only block of a document whose first line, or typed line, begins so."""
    (found,) = [
        each
        for each in blocks()
        if each.document == document and any(text.startswith(beginning) for text in (each.text, *each.typed[:1]))
    ]
    return found


def words(line):
    """What a shell makes of a line: the program and its arguments, without what is set before and where output goes."""
    found = shlex.split(line, comments=True)
    while found and (re.fullmatch(r"[A-Z_]+=.*", found[0]) or found[0] == "sudo"):
        found = found[3:] if found[:2] == ["sudo", "-u"] else found[1:]
    return found[: found.index(">")] if ">" in found else found
