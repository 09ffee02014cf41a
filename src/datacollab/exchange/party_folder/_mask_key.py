"""A party's mask key: made for one roster of parties, kept until one message is written, and erased."""

from __future__ import annotations

import os
from pathlib import Path

from ...bundle import KeyPair, key_with_proof, write_atomically
from ...errors import AgreementError, ExchangeError
from ...sums import MaskKey, mask_card
from ..log import locked
from ._files import Files, OwnFiles

__all__ = ["erase_file", "load_mask_key", "make_mask_key", "public_key_text"]

_MEMBER = "mask-key.bin"
_PIECE = 2**20


def make_mask_key(folder: Path, *, passphrase: str | None = None) -> str:
    """Make a mask key in a party's folder, and write its card into ``public.key``.

    An unused key that is there already stays, and its card is written again.

    Parameters
    ----------
    folder : Path
        Holds the party's keys.
    passphrase : str, optional
        Of the keys; the mask key is encrypted with it, too.

    Returns
    -------
    str
        The card, the third line of ``public.key``.

    Raises
    ------
    ExchangeError
        BUSY, STATE_DAMAGED, and what reading keys may raise.
    """
    files = Files(Path(folder))
    key = KeyPair.load(files.keys, passphrase)
    own = OwnFiles(key, passphrase)
    with locked(files.root):
        mask_key = load_mask_key(files, own)
        if mask_key is None:
            mask_key = MaskKey.generate()
            own.write(files.mask, {"public": mask_key.public.hex()}, {_MEMBER: mask_key.secret})
        write_atomically(files.public, public_key_text(files.root, key, passphrase).encode())
        return mask_card(mask_key, key)


def public_key_text(folder: Path, key: KeyPair, passphrase: str | None = None) -> str:
    """Return the text of ``public.key``: with a third line if the folder holds an unused mask key.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED or PASSPHRASE_WRONG.
    """
    mask_key = load_mask_key(Files(folder), OwnFiles(key, passphrase))
    return key_with_proof(key) + ("" if mask_key is None else f"{mask_card(mask_key, key)}\n")


def load_mask_key(files: Files, own: OwnFiles) -> MaskKey | None:
    """Return the unused mask key of a folder; None if there is none.

    Raises
    ------
    ExchangeError
        STATE_DAMAGED or PASSPHRASE_WRONG.
    """
    if not files.mask.exists():
        return None
    bundle = own.read(files.mask)
    try:
        mask_key = MaskKey(bundle.members[_MEMBER])
        if mask_key.public.hex() != bundle.facts["public"]:
            raise ValueError
    except (KeyError, ValueError, AgreementError):
        raise ExchangeError(
            "STATE_DAMAGED",
            f"{files.mask} holds no mask key. Remove the file, make a new key with `datacollab keys mask`, and send "
            "public.key to the project's owner.",
        ) from None
    return mask_key


def erase_file(path: Path) -> None:
    """Write over a file and remove it; what a disk or file system keeps of it elsewhere is out of reach."""
    if not path.exists():
        return
    with open(path, "r+b") as file:
        left = path.stat().st_size
        while left > 0:
            left -= file.write(os.urandom(min(left, _PIECE)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
