"""What a bundle says of itself in its first bytes, before all of it was fetched; to be checked when it was."""

from __future__ import annotations

import struct
from typing import Any, BinaryIO

from ..bundle import Limits, PublicKey, parse_json
from ..errors import ExchangeError

__all__ = ["peek"]

_HEADER = struct.Struct("<4s5H3I2H")
_MAGIC, _NAME = b"PK\x03\x04", b"manifest.json"


def peek(stream: BinaryIO) -> tuple[str, dict[str, Any], PublicKey] | None:
    """Kind, facts and signer of a bundle, unchecked; None where it has none of these.

    Parameters
    ----------
    stream : binary file
        At its beginning.

    Examples
    --------
    >>> import io
    >>> from datacollab.bundle import KeyPair, pack
    >>> key = KeyPair.generate()
    >>> kind, facts, signer = peek(io.BytesIO(pack("datacollab.share", {"party": "a"}, {}, key=key)))
    >>> kind, facts, signer == key.public
    ('datacollab.share', {'party': 'a'}, True)
    >>> peek(io.BytesIO(b"no bundle")) is None
    True
    """
    head = stream.read(_HEADER.size)
    if len(head) < _HEADER.size:
        return None
    magic, *_, size, name_length, extra = _HEADER.unpack(head)
    if magic != _MAGIC or extra or size > Limits().manifest_bytes or stream.read(name_length) != _NAME:
        return None
    try:
        said = parse_json(stream.read(size), what="The manifest")
        kind, facts, signer = said["format"], said["facts"], PublicKey.from_text(said["signer"])
    except (ExchangeError, KeyError, TypeError, AttributeError):
        return None
    return (kind, facts, signer) if isinstance(kind, str) and isinstance(facts, dict) else None
