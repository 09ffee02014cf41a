"""What a folder remembers of a remote: what it fetched, and the end of the log that it saw last."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

from ..bundle import canonical_json, parse_json, write_atomically
from ..errors import ExchangeError

__all__ = ["KEPT", "Kept", "forget"]

KEPT = ".remotes"
"""Folder of what is remembered; nothing in it is secret."""

_VERSION = 1


@dataclass(frozen=True)
class Kept:
    """See the module.

    Attributes
    ----------
    fetched : tuple of str
        SHA-256 of files that came, so that none comes again after it was used and removed.
    expected : tuple of str
        SHA-256 of files that the remote said to have from here, and its log has not shown yet.
    shown : tuple of str
        SHA-256 of those that its log has shown.
    withdrawn : tuple of str
        SHA-256 of files that this folder took back, so that none is sent again without being named.
    owed : tuple of str
        SHA-256 of files of the project file that holds that are for this folder, as the log says.
    agreed : str
        Digest of the project file that holds, as the log says; empty before there is one.
    seq : int
        Number of the log's entry that was seen last; 0 before there was one.
    head : str
        Its digest.
    """

    fetched: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()
    owed: tuple[str, ...] = ()
    agreed: str = ""
    seq: int = 0
    head: str = ""

    @classmethod
    def read(cls, folder: Path, name: str) -> Kept:
        """What is remembered of the remote of this name; nothing where there is no file.

        Raises
        ------
        ExchangeError
            STATE_DAMAGED.
        """
        path = _path(folder, name)
        try:
            found = parse_json(path.read_bytes(), what=str(path))
        except FileNotFoundError:
            return cls()
        except ExchangeError:
            raise _damaged(path) from None
        try:
            found.setdefault("withdrawn", [])  # files of earlier programs have none
            if found.pop("version") != _VERSION or found.keys() != asdict(cls()).keys():
                raise ValueError
            lists = {name: tuple(found[name]) for name in ("fetched", "expected", "shown", "withdrawn", "owed")}
            kept = cls(**lists, agreed=found["agreed"], seq=found["seq"], head=found["head"])
            texts = all(isinstance(each, str) for each in (*chain(*lists.values()), kept.agreed, kept.head))
            if not texts or type(kept.seq) is not int:
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError):
            raise _damaged(path) from None
        return kept

    def write(self, folder: Path, name: str) -> Kept:
        """Remember it."""
        path = _path(folder, name)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomically(path, canonical_json({**asdict(self), "version": _VERSION}), mode=0o600)
        return self

    def having(self, sha256: str) -> Kept:
        """The same with a file that came."""
        return self if sha256 in self.fetched else replace(self, fetched=(*self.fetched, sha256))

    def expecting(self, sha256: str) -> Kept:
        """The same with a file that the remote has from here."""
        known = sha256 in self.expected or sha256 in self.shown
        expected = self.expected if known else (*self.expected, sha256)
        return replace(self, expected=expected, withdrawn=tuple(each for each in self.withdrawn if each != sha256))

    def without(self, sha256: str) -> Kept:
        """The same with a file that was taken back."""
        return self if sha256 in self.withdrawn else replace(self, withdrawn=(*self.withdrawn, sha256))


def forget(folder: Path, name: str) -> None:
    """Remove what is remembered of a remote."""
    _path(folder, name).unlink(missing_ok=True)


def _path(folder: Path, name: str) -> Path:
    return folder / KEPT / f"{name}.json"


def _damaged(path: Path) -> ExchangeError:
    return ExchangeError(
        "STATE_DAMAGED",
        f"{path} is not as it was written. Restore it from a backup; without it, files come once more, and that the "
        "hub's log continues cannot be told.",
    )
