"""``datacollab keys``: making a pair of keys, and showing the public one."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import typer

from ..bundle import KeyFile, KeyPair, key_with_proof, write_atomically
from ..errors import ExchangeError
from ._command import WorkFolder, ask, at_terminal, choose_path, passphrase
from ._output import Report

SECRET = "keys.json"
PUBLIC = "public.key"
MASK = "mask.dcstate"
_KEEP_NO_COPY = (
    f"Keep no copy of {MASK}, not even in a backup: its key masks one share and its rounds, and `party share` "
    "erases it."
)


def new(
    report: Report, folders: list[Path] | None, folder: list[Path] | None, encrypt: bool, passphrase_file: Path | None
) -> None:
    places = [*(folders or ()), *(folder or ())]
    if not places:
        raise typer.BadParameter("Name a folder for the keys.", param_hint="--folder / -C")
    # All folders are looked at before any gets keys: a refusal leaves nothing half made.
    for path in (each / name for each in places for name in (SECRET, PUBLIC, MASK)):
        if os.path.lexists(path):  # A link that leads nowhere counts, too: a key would be written through it.
            raise ExchangeError(
                "ALREADY_THERE", f"{path} exists, and is not overwritten. Choose another folder; nothing was made."
            )
    words = _read_passphrase(encrypt, passphrase_file)
    secret = "secret, encrypted" if words else "secret"
    report.facts = {"keys": []}
    for each in places:
        fingerprint = _make_keys(each, words)
        report.facts["keys"].append({"folder": str(each), "fingerprint": fingerprint, "encrypted": words is not None})
        report.line(f"{each}: {SECRET} ({secret}), {PUBLIC}: {fingerprint}")
    report.line(f"Send {PUBLIC} to the project's owner. Keep a copy of {SECRET}: it cannot be made again.")
    report.line(_KEEP_NO_COPY)


def show(report: Report, folder: WorkFolder, there: Path | None) -> None:
    place = folder.path
    if there is not None:
        option = None if folder.path == Path() else folder.path
        place = choose_path(option, there, "--folder / -C")
    path = place / SECRET
    keys = KeyFile.read(path)
    # Windows has no such bits.
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


def mask(report: Report, folder: WorkFolder) -> None:
    from ..folder.party import make_mask_key

    card = make_mask_key(folder.path, passphrase=folder.passphrase)
    report.facts = {"folder": str(folder.path), "mask_key": card}
    report.line(f"{folder.path}: {MASK} (secret); its card is the third line of {PUBLIC}.")
    report.line(f"Send {PUBLIC} to the project's owner. {_KEEP_NO_COPY}")


def public(report: Report, folder: WorkFolder, output: Path) -> None:
    from ..folder.party import public_key_text

    words = folder.passphrase
    pair = KeyPair.load(folder.path / SECRET, words)
    text = key_with_proof(pair)
    if (folder.path / MASK).exists():
        text = public_key_text(folder.path, words)  # with the card of the mask key
    write_atomically(output, text.encode(), overwrite=False)
    report.facts = {"written": str(output), "fingerprint": pair.public.fingerprint}
    report.line(f"{output}: {pair.public.fingerprint}")


def _read_passphrase(encrypt: bool, passphrase_file: Path | None) -> str | None:
    """Return the passphrase to encrypt with; None if the keys are stored as they are."""
    if not (encrypt or passphrase_file):
        return None
    words = passphrase(passphrase_file)
    if words is None and not at_terminal():
        raise ExchangeError(
            "PASSPHRASE_WRONG",
            "There is no passphrase to encrypt with, and no terminal to ask at. Give --passphrase-file, or set "
            "DATACOLLAB_PASSPHRASE.",
        )
    return words or ask(twice=True)


def _make_keys(folder: Path, words: str | None) -> str:
    """Make one folder's keys; return the fingerprint."""
    from ..folder.party import make_mask_key

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)  # A folder that was there keeps its mode otherwise.
    pair = KeyPair.generate()
    # The secret first: a public key in use whose secret is nowhere would be worse than the reverse.
    pair.save(folder / SECRET, words)
    make_mask_key(folder, passphrase=words)
    return pair.public.fingerprint
