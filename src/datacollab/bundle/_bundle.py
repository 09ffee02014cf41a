"""Bundles: files that say what they are, whole or refused, and signed."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ExchangeError
from ._checks import SIGNED, check_members, check_order, check_signature
from ._container import MANIFEST, SIGNATURE, read_container, write_container
from ._json import digest, parse_json
from ._key_pair import KeyPair
from ._limits import Limits
from ._manifest import Manifest, check_size
from ._opening import open_regular
from ._public_key import PublicKey

__all__ = ["Bundle", "pack", "unpack"]


@dataclass(frozen=True)
class Bundle:
    """A bundle that was read and verified.

    Attributes
    ----------
    kind : str
    facts : dict of str to object
        What JSON can hold.
    members : dict of str to bytes
    signer : PublicKey or None
        Whose valid signature it carries.
    digest : str
        SHA-256 of the manifest, which names everything else: the identity of the bundle.
    """

    kind: str
    facts: dict[str, Any]
    members: dict[str, bytes] = field(repr=False)
    signer: PublicKey | None
    digest: str


def pack(kind: str, facts: Mapping[str, Any], members: Mapping[str, bytes], *, key: KeyPair | None = None) -> bytes:
    """Put a bundle together; equal contents give equal bytes.

    Parameters
    ----------
    kind : str
        As ``datacollab.share``.
    facts : mapping of str to object
        What JSON can hold.
    members : mapping of str to bytes
        Names of small letters, digits, dots, hyphens and underscores.
    key : KeyPair, optional
        Who signs.

    Raises
    ------
    ValueError, TypeError
        When the kind, a name or the facts cannot be written.
    ExchangeError
        ``TOO_LARGE``, when no reader would take it.

    Examples
    --------
    >>> key = KeyPair.generate()
    >>> data = pack("datacollab.share", {"party": "north"}, {"rows.bin": b"..."}, key=key)
    >>> unpack(data, signed_by=key.public).facts
    {'party': 'north'}
    """
    manifest = Manifest.describing(kind, facts, members, None if key is None else key.public).to_bytes()
    limits = Limits()
    check_size(manifest, limits)
    parse_json(manifest, what="The facts")
    signature = {} if key is None else {SIGNATURE: key.sign(SIGNED + manifest)}
    if sum(map(len, members.values())) > limits.total_bytes - 2 * limits.manifest_bytes:
        raise ExchangeError("TOO_LARGE", f"The members take more than {limits.total_bytes} bytes. Send fewer rows.")
    return write_container({MANIFEST: manifest, **signature, **{name: members[name] for name in sorted(members)}})


def unpack(
    source: bytes | Path,
    *,
    kind: str | None = None,
    signed_by: PublicKey | None = None,
    limits: Limits | None = None,
    what: str | None = None,
) -> Bundle:
    """Read a bundle of unknown origin, and verify all of it.

    Parameters
    ----------
    source : bytes or Path
    kind : str, optional
        The one wanted.
    signed_by : PublicKey, optional
        Who has to have signed it.  Without, a signature is verified where there is one.
    limits : Limits, optional
    what : str, optional
        What an error calls the bundle.  By default its path, where it is read from one.

    Raises
    ------
    ExchangeError
        And nothing else, whatever the bytes: ``BUNDLE_MALFORMED`` (also a file that cannot be read), ``TOO_LARGE``,
        ``HASH_MISMATCH``, ``WRONG_KIND``, ``FORMAT_TOO_NEW``, ``SIGNATURE_INVALID``, ``SIGNATURE_MISSING``.
    """
    what = what or ("The bundle" if isinstance(source, bytes) else str(source))
    members = _read(source if isinstance(source, bytes) else Path(source), limits or Limits(), what)
    manifest_bytes = members.pop(MANIFEST, None)
    if manifest_bytes is None:
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} has no {MANIFEST}. Have it sent again.")
    manifest = Manifest.from_bytes(manifest_bytes, kind=kind, what=what)
    signature = members.pop(SIGNATURE, None)
    check_members(manifest, {name: (len(data), digest(data)) for name, data in members.items()}, what)
    check_signature(manifest, manifest_bytes, signature, signed_by, what)
    return Bundle(manifest.kind, manifest.facts, members, manifest.signer, digest(manifest_bytes))


def _read(source: bytes | Path, limits: Limits, what: str) -> dict[str, bytes]:
    """The members, the manifest first, the signature where there is one second, and the rest by name."""
    try:
        if isinstance(source, bytes):
            members = read_container(io.BytesIO(source), len(source), limits=limits, what=what)
        else:
            with open_regular(source) as file:
                members = read_container(file, os.fstat(file.fileno()).st_size, limits=limits, what=what)
    except FileNotFoundError:
        raise ExchangeError("BUNDLE_MALFORMED", f"{what} does not exist. Give the file that was sent.") from None
    except OSError as error:
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{what} cannot be read ({error.strerror}). Look at the file and its permissions."
        ) from None
    except MemoryError:
        raise ExchangeError("TOO_LARGE", f"{what} does not fit into memory. Check where it comes from.") from None
    check_order(list(members), what)
    return members
