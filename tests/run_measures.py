"""Count what makes code slow to read, in folders that are given: one row a folder, of our own packages by default."""

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ("src/datacollab", "hub/src", "experiments/src")
MOST_BRANCHES, MOST_BODY = 15, 80
IRREGULAR = {
    *("begun", "bought", "brought", "built", "chosen", "done", "drawn", "forgotten", "found", "given", "gone"),
    *("grown", "heard", "held", "hidden", "kept", "known", "laid", "left", "lent", "lost", "made", "meant"),
    *("met", "paid", "said", "seen", "sent", "shown", "spent", "spoken", "taken", "thrown", "told", "understood"),
    *("written"),
}
"""Participles without "ed" that are no verbs as well."""
VERBS = {"embed", "exceed", "feed", "need", "proceed", "seed", "shed"}
"""Verbs that end like participles."""
BRANCHES = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case)
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COLUMNS = {
    "two names, one line": "assignments `a, b = x, y`, per 1,000 lines of code",
    "conditional": "conditional expressions, per 1,000 lines of code",
    "participles": "functions named by a participle, %",
    "comments": "lines with a comment, %",
    "what": "'what' in docstrings, per 1,000 words",
    "branches": f"functions of more than {MOST_BRANCHES} branches",
    "long": f"functions of more than {MOST_BODY} lines, docstring aside",
    "twice": "public class names that stand twice",
    "lines": "lines",
    "files": "files",
}


def measure(folder: Path) -> dict[str, float]:
    """Return all counts of a folder's programs, but for tests."""
    counts: Counter[str] = Counter()
    classes: Counter[str] = Counter()
    for file in sorted(folder.rglob("*.py")):
        if not {"tests", "test"} & {*file.relative_to(folder).parts}:
            source = file.read_text(encoding="utf-8")
            tree = ast.parse(source)
            counts.update(_of_text(source))
            counts.update(_of_tree(tree))
            classes.update(node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")
    code = counts["code"] or 1
    return {
        "two names, one line": 1000 * counts["two names"] / code,
        "conditional": 1000 * counts["conditional"] / code,
        "participles": 100 * counts["participles"] / (counts["functions"] or 1),
        "comments": 100 * counts["comments"] / (counts["lines"] or 1),
        "what": 1000 * counts["what"] / (counts["words"] or 1),
        "branches": counts["branches"],
        "long": counts["long"],
        "twice": sum(times > 1 for times in classes.values()),
        "lines": counts["lines"],
        "files": counts["files"],
    }


def _of_text(source: str) -> Counter[str]:
    """Count lines, those with code (a docstring is none) and those with a comment."""
    comments: set[int] = set()
    code: set[int] = set()
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_docstring = token.type == tokenize.STRING and before in {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in LAYOUT and not is_docstring:
            code.update(range(token.start[0], token.end[0] + 1))
        if token.type not in {tokenize.NL, tokenize.COMMENT}:
            before = token.type
    return Counter(lines=source.count("\n"), comments=len(comments), code=len(code), files=1)


def _of_tree(tree: ast.Module) -> Counter[str]:
    counts: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
            counts["two names"] += isinstance(node.targets[0], ast.Tuple)
        counts["conditional"] += isinstance(node, ast.IfExp)
        if isinstance(node, (ast.Module, ast.ClassDef, *DEFINITIONS)):
            words = re.findall(r"\w+", (ast.get_docstring(node) or "").lower())
            counts["words"] += len(words)
            counts["what"] += words.count("what")
        if isinstance(node, DEFINITIONS):
            counts["functions"] += 1
            counts["participles"] += is_participle(node.name) and not node.decorator_list
            counts["branches"] += _branches(node) > MOST_BRANCHES
            counts["long"] += _body_lines(node) > MOST_BODY
    return counts


def is_participle(name: str) -> bool:
    """Return whether a function's name begins with a participle that is no verb as well."""
    word = name.strip("_").split("_")[0]
    return word not in VERBS and (word in IRREGULAR or (len(word) > 4 and word.endswith("ed")))


def _branches(function: ast.AST) -> int:
    return 1 + sum(isinstance(node, BRANCHES) for node in _own(function))


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """Yield a function's nodes, but not those of functions in it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, DEFINITIONS):
            yield child
            yield from _own(child)


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return function.end_lineno - body[0].lineno + 1 if body and function.end_lineno else 0


def table(folders: Iterable[Path]) -> str:
    """Return the counts as a table in Markdown."""
    lines = [" | ".join(["folder", *COLUMNS]), " | ".join(["---"] * (1 + len(COLUMNS)))]
    for folder in folders:
        lines.append(" | ".join([str(folder), *(f"{value:,.5g}" for value in measure(folder).values())]))
    return "\n".join(lines)


if __name__ == "__main__":
    print(table([Path(each) for each in sys.argv[1:]] or [ROOT / each for each in OURS]))
    print(*(f"{name}: {said}" for name, said in COLUMNS.items()), sep="\n")
