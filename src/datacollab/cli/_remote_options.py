"""What the commands of `remote` share: options, opening what a folder has written down, and what is printed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from ..errors import ExchangeError
from ._options import passphrase_for
from ._output import Report, warn

if TYPE_CHECKING:
    from ..bundle import KeyPair
    from ..remote import Place, Remote

__all__ = [
    "HERE",
    "AsJson",
    "Certificates",
    "InFolder",
    "Named",
    "keys_of",
    "opened",
    "show_refused",
    "soon_locked",
    "working",
]

InFolder = Annotated[Path, Option("--folder", "-C", metavar="DIR", help="The folder of a party, analyst or owner.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]
Named = Annotated[str | None, Option("--remote", metavar="NAME", help="Which remote. Default: the only one.")]
Certificates = Annotated[
    Path | None,
    Option("--ca", exists=True, dir_okay=False, help="Certificates of the hub's own organisation (PEM)."),
]
HERE = Path()
_PATIENCE, _PAUSE = 10.0, 0.1
"""Seconds for which another command in the folder is waited for, and between two looks."""


def keys_of(folder: Path, passphrase_file: Path | None) -> KeyPair:
    """The keys of a folder."""
    from ..bundle import KeyPair

    return KeyPair.load(folder / "keys.json", passphrase_for(folder, passphrase_file))


@contextmanager
def opened(
    folder: Path, name: str | None, passphrase_file: Path | None, keys: Callable[[], KeyPair] | None = None
) -> Iterator[tuple[Place, Remote]]:
    """The remote of a name, or the only one; ``keys`` gives keys that were opened before."""
    from ..remote import chosen, open_remote

    place = chosen(folder, name)
    remote = open_remote(folder, place, keys or (lambda: keys_of(folder, passphrase_file)))
    try:
        yield place, remote
    finally:
        remote.close()


@contextmanager
def working(folder: Path) -> Iterator[None]:
    """One command at a time carries files of a folder; others may work in it meanwhile."""
    from ..exchange.log import locked
    from ..remote import KEPT

    if not folder.is_dir():
        raise ExchangeError("FOLDER_MISSING", f"{folder} is no folder. Give the one with the keys, with -C.")
    (folder / KEPT).mkdir(mode=0o700, exist_ok=True)
    with locked(folder / KEPT):
        yield


@contextmanager
def soon_locked(folder: Path) -> Iterator[None]:
    """The lock of the folder itself, to note in its log what was done already: who holds it is waited for."""
    from ..exchange.log import locked

    until = time.monotonic() + _PATIENCE
    with ExitStack() as lock:
        while True:
            try:
                lock.enter_context(locked(folder))
                break
            except ExchangeError as error:
                if error.code != "BUSY" or time.monotonic() >= until:
                    raise
                time.sleep(_PAUSE)
        yield


def show_refused(refused: Mapping[str, ExchangeError], report: Report) -> int:
    """Say what was refused; the exit code that follows, 0 where nothing was."""
    report.facts["refused"] = {name: {"code": error.code, "message": str(error)} for name, error in refused.items()}
    for error in refused.values():
        warn(f"datacollab: {error.code}: {error}")
    return max((error.exit_code for error in refused.values()), default=0)
