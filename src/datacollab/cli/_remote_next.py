"""What to do with what came, and how to send what was made: the next command, in words."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

__all__ = ["next_commands", "sending"]

_TOGETHER = {"share": ("analyst", "integrate"), "sums": ("analyst", "integrate")}
_ALONE = {"model": ("party", "install"), "sums-model": ("party", "install"), "answers": ("party", "distil")}


def next_commands(folder: Path, lying: Mapping[str, str], *, is_analyst: bool) -> list[str]:
    """Commands that take what lies in an inbox.

    Parameters
    ----------
    folder : Path
    lying : mapping of str to str
        Kinds by paths.
    is_analyst : bool

    Examples
    --------
    >>> next_commands(Path("a"), {"a/inbox/a.dcmodel": "model"}, is_analyst=False)
    ['datacollab party install a/inbox/a.dcmodel -C a']
    """
    by_kind: dict[str, list[str]] = {}
    for path, kind in sorted(lying.items()):
        by_kind.setdefault(kind, []).append(path)
    commands = []
    if "agreement" in by_kind or "anchor" in by_kind:
        project = by_kind.get("agreement", [str(folder / "project.toml")])[0]
        verb = ("analyst", "init") if is_analyst else ("party", "join")
        commands.append((*verb, project, *by_kind.get("anchor", ())))
    commands += [(*verb, *by_kind[kind]) for kind, verb in _TOGETHER.items() if kind in by_kind]
    commands += [(*verb, path) for kind, verb in _ALONE.items() for path in by_kind.get(kind, ())]
    return [shlex.join(["datacollab", *words, *_in(folder)]) for words in commands]


def sending(folder: Path, to: str, by_hand: str = "Send it to {}.") -> str:
    """How to send what lies in the outbox.

    Parameters
    ----------
    folder : Path
    to, by_hand : str
        To whom it goes, and how that is said, where there is no remote.
    """
    if (folder / "remotes.toml").is_file():
        return f"Send it: {shlex.join(['datacollab', 'remote', 'push', *_in(folder)])}"
    return by_hand.format(to)


def _in(folder: Path) -> tuple[str, ...]:
    return () if folder == Path() else ("-C", str(folder))
