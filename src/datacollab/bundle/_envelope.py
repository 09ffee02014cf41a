"""What a bundle says of itself, verified without keeping what is in it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, BinaryIO

from ..errors import ExchangeError
from ._checks import check_members, check_order, check_signature
from ._container import MANIFEST, SIGNATURE, Pieces, walk_container
from ._json import digest
from ._limits import Limits
from ._manifest import Manifest
from ._public_key import PublicKey

__all__ = ["Envelope", "read_envelope"]


@dataclass(frozen=True)
class Envelope:
    """A bundle that was read and verified as by `unpack`, without its members.

    Attributes
    ----------
    kind : str
    facts : dict of str to object
    members : dict of str to (int, str)
        Bytes and SHA-256 of each.
    signer : PublicKey or None
        Whose valid signature it carries.
    digest : str
        The identity of the bundle.
    """

    kind: str
    facts: dict[str, Any]
    members: dict[str, tuple[int, str]]
    signer: PublicKey | None
    digest: str


def read_envelope(
    stream: BinaryIO, size: int, *, signed_by: PublicKey | None = None, limits: Limits | None = None, what: str
) -> Envelope:
    """Verify all of a bundle of unknown origin, in memory for its manifest alone.

    Parameters
    ----------
    stream : binary file
    size : int
        Bytes of the file.
    signed_by : PublicKey, optional
        Who has to have signed it.
    limits : Limits, optional
    what : str
        What an error calls the bundle.

    Raises
    ------
    ExchangeError
        As `unpack`.
    """
    kept: dict[str, bytes] = {}
    members: dict[str, tuple[int, str]] = {}
    order: list[str] = []

    def take(name: str, pieces: Pieces) -> None:
        order.append(name)
        if name in (MANIFEST, SIGNATURE):
            kept[name] = pieces.whole()
        else:
            members[name] = _described(pieces)

    walk_container(stream, size, take, limits=limits or Limits(), what=what)
    check_order(order, what)
    if MANIFEST not in kept:
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} has no {MANIFEST}. Have it sent again.")
    manifest = Manifest.from_bytes(kept[MANIFEST], kind=None, what=what)
    check_members(manifest, members, what)
    check_signature(manifest, kept[MANIFEST], kept.get(SIGNATURE), signed_by, what)
    return Envelope(manifest.kind, manifest.facts, members, manifest.signer, digest(kept[MANIFEST]))


def _described(pieces: Pieces) -> tuple[int, str]:
    size, sha256 = 0, hashlib.sha256()
    for piece in pieces:
        size += len(piece)
        sha256.update(piece)
    return size, sha256.hexdigest()
