"""What goes through the pipes between a party's process and the confined one: facts in JSON, and bytes."""

from __future__ import annotations

import struct
from typing import IO, Any

from ...bundle import canonical_json, parse_json
from ...errors import ExchangeError

__all__ = ["MOST_BODY", "read_frame", "write_frame"]

_LENGTHS = struct.Struct("<QQ")
_MOST_FACTS = 2**22
MOST_BODY = 2**31
"""Bytes of a body: of a model, or of rows and what is answered for them."""


def write_frame(stream: IO[bytes], facts: dict[str, Any], body: bytes = b"") -> None:
    """Write a frame and flush."""
    header = canonical_json(facts)
    stream.write(_LENGTHS.pack(len(header), len(body)))
    stream.write(header)
    stream.write(body)
    stream.flush()


def read_frame(stream: IO[bytes], *, most_body: int = MOST_BODY) -> tuple[dict[str, Any], bytes]:
    """Read a frame, of which every byte may be hostile.

    Raises
    ------
    EOFError
        Where the stream ends before the frame does.
    ValueError
        Where it is no frame, or a longer one than is allowed.
    """
    n_facts, n_body = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
    if n_facts > _MOST_FACTS or n_body > most_body:
        raise ValueError("a frame that is too long")
    try:
        facts = parse_json(_exactly(stream, n_facts), what="A frame")
    except ExchangeError as error:
        raise ValueError(error.code) from None
    if not isinstance(facts, dict):
        raise ValueError("a frame without facts")
    return facts, _exactly(stream, n_body)


def _exactly(stream: IO[bytes], n_bytes: int) -> bytes:
    data = stream.read(n_bytes)
    if len(data) < n_bytes:
        raise EOFError
    return data
