"""``datacollab keys``: making a pair of keys, and showing the public one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import typer

from ..bundle import KeyFile, KeyPair, key_with_proof, write_atomically
from ..errors import ExchangeError
from ._command import Folder, ask, at_terminal, named_once, passphrase
from ._output import Report

SECRET, PUBLIC, MASK = "keys.json", "public.key", "mask.dcstate"
_KEEP_NO_COPY = (
    f"Keep no copy of {MASK}, not even in a backup: its key may mask one share only, and `party share` erases it."
)


def new(
    report: Report, folders: list[Path] | None, folder: list[Path] | None, encrypt: bool, passphrase_file: Path | None
) -> None:
    given = [*(folders or ()), *(folder or ())]
    if not given:
        raise typer.BadParameter("Name a folder for the keys.", param_hint="--folder / -C")
    for path in (each / name for each in given for name in (SECRET, PUBLIC, MASK)):
        if os.path.lexists(path):
            raise ExchangeError(
                "ALREADY_THERE", f"{path} exists, and is not overwritten. Choose another folder; nothing was made."
            )
    words = _words(encrypt, passphrase_file)
    report.facts = {"keys": []}
    for each in given:
        fingerprint = _make(each, words)
        report.facts["keys"].append({"folder": str(each), "fingerprint": fingerprint, "encrypted": words is not None})
        report.line(f"{each}: {SECRET} (secret{', encrypted' if words else ''}), {PUBLIC}: {fingerprint}")
    report.line(f"Send {PUBLIC} to the project's owner. Keep a copy of {SECRET}: it cannot be made again.")
    report.line(_KEEP_NO_COPY)


def show(report: Report, folder: Folder, there: Path | None) -> None:
    place = folder.path
    if there is not None:
        place = named_once(None if folder.path == Path() else folder.path, there, "--folder / -C")
    path = place / SECRET
    keys = KeyFile.read(path)
    open_to_others = os.name == "posix" and bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
    report.facts = {
        "folder": str(place),
        "fingerprint": keys.public.fingerprint,
        "public": keys.public.text,
        "encrypted": keys.encrypted,
        "open_to_others": open_to_others,
    }
    report.line(f"fingerprint  {keys.public.fingerprint}")
    report.line(f"public key   {keys.public.text}")
    report.line(f"secret keys  {'under a passphrase' if keys.encrypted else 'not encrypted'}")
    if open_to_others:
        report.line(f"Other users of this machine can read {path}. Run: chmod 600 {path}")


def mask(report: Report, folder: Folder) -> None:
    from ..exchange.party_folder import make_mask_key

    card = make_mask_key(folder.path, passphrase=folder.passphrase)
    report.facts = {"folder": str(folder.path), "mask_key": card}
    report.line(f"{folder.path}: {MASK} (secret); its card is the third line of {PUBLIC}.")
    report.line(f"Send {PUBLIC} to the project's owner. {_KEEP_NO_COPY}")


def public(report: Report, folder: Folder, output: Path) -> None:
    from ..exchange.party_folder import public_key_text

    words = folder.passphrase
    pair = KeyPair.load(folder.path / SECRET, words)
    has_mask = (folder.path / MASK).exists()
    text = public_key_text(folder.path, words) if has_mask else key_with_proof(pair)
    write_atomically(output, text.encode(), overwrite=False)
    report.facts = {"written": str(output), "fingerprint": pair.public.fingerprint}
    report.line(f"{output}: {pair.public.fingerprint}")


def _words(encrypt: bool, passphrase_file: Path | None) -> str | None:
    """Return the passphrase to encrypt with; None if the keys are stored as they are."""
    if not (encrypt or passphrase_file):
        return None
    given = passphrase(passphrase_file)
    if given is None and not at_terminal():
        raise ExchangeError(
            "PASSPHRASE_WRONG",
            "There is no passphrase to encrypt with, and no terminal to ask at. Give --passphrase-file, or set "
            "DATACOLLAB_PASSPHRASE.",
        )
    return given or ask(twice=True)


def _make(folder: Path, words: str | None) -> str:
    """Make one folder's keys; return the fingerprint."""
    from ..exchange.party_folder import make_mask_key

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    pair = KeyPair.generate()
    # The secret first: a public key in use whose secret is nowhere would be worse than the reverse.
    pair.save(folder / SECRET, words)
    make_mask_key(folder, passphrase=words)
    return pair.public.fingerprint
