"""A masked message as a file: signed by its party, and sealed to the analyst.

Sealed always: the messages of all parties together are the total, and it is for the analyst alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import PartyName
from .._version import __version__
from ..bundle import (
    Bundle,
    KeyPair,
    Limits,
    PublicKey,
    arrays_to_bytes,
    bytes_to_arrays,
    pack,
    seal,
    unpack,
    unseal,
)
from ..errors import ExchangeError, ShareError
from ._masked_sum import MaskedMessage

__all__ = ["MASKED_SUM_KIND", "message_to_bytes", "read_message"]

MASKED_SUM_KIND = "datacollab.masked-sum"

_SEALED = "sealed.bin"
_WORDS = "words.safetensors"
_FACTS = {"party", "context", "versions"}
_TOLD = {"project_digest", "anchor_commitment", "n_components", "created"}
"""Further facts on the outside of a message of a project, all or none."""
_INNER_FACTS = {"party", "context", "tags"}
_MOST_BYTES = 256 * 1024**2


def message_to_bytes(
    message: MaskedMessage, key: KeyPair, analyst: PublicKey, *, outside: Mapping[str, Any] | None = None
) -> bytes:
    """Write a message as a signed bundle whose contents only the analyst can open.

    Parameters
    ----------
    message : MaskedMessage
    key : KeyPair
        The party's key, which signs.
    analyst : PublicKey
    outside : mapping of str to object, optional
        Further facts of a project: `project_digest`, `anchor_commitment`, `n_components` and `created`.  Everybody who
        carries the file can read them.
    """
    facts = {"party": message.party, "context": message.context.hex()}
    tags = sorted([tag.hex(), party] for party, tag in message.tags.items())
    words = {_WORDS: arrays_to_bytes({"words": message.words.view(np.int64)})}
    sealed = seal(pack(MASKED_SUM_KIND, facts | {"tags": tags}, words), [analyst], purpose=_purpose(facts))
    versions = {"datacollab": __version__, "numpy": np.__version__}
    return pack(MASKED_SUM_KIND, facts | {"versions": versions} | dict(outside or {}), {_SEALED: sealed}, key=key)


def read_message(source: bytes | Path, key: KeyPair, *, signed_by: PublicKey) -> MaskedMessage:
    """Read a message of unknown origin, and check every part.

    Parameters
    ----------
    source : bytes or Path
    key : KeyPair
        The analyst's.
    signed_by : PublicKey
        The party that has to have signed it.

    Raises
    ------
    ExchangeError
        ``SHARE_MALFORMED`` if a part does not say what it has to say, or one of the codes of `unpack` and `unseal`.
    """
    limits = Limits(total_bytes=_MOST_BYTES)
    outer = unpack(source, kind=MASKED_SUM_KIND, signed_by=signed_by, limits=limits)
    if outer.facts.keys() not in (_FACTS, _FACTS | _TOLD) or outer.members.keys() != {_SEALED}:
        raise _malformed("it has other facts or parts than a masked sum")
    data = unseal(outer.members[_SEALED], key, purpose=_purpose(outer.facts))
    inner = unpack(data, kind=MASKED_SUM_KIND, limits=limits, what="The masked sum within")
    if inner.facts.keys() != _INNER_FACTS or inner.members.keys() != {_WORDS}:
        raise _malformed("its contents have other facts or parts than a masked sum")
    if any(inner.facts[name] != outer.facts[name] for name in ("party", "context")):
        raise _malformed("its contents name another party or another sum than its outside")
    return _message_of(inner)


def _message_of(inner: Bundle) -> MaskedMessage:
    arrays = bytes_to_arrays(inner.members[_WORDS], what="The masked sum")
    if arrays.keys() != {"words"} or arrays["words"].dtype != np.int64:
        raise _malformed("its words are not what they have to be")
    party, context, listed = (inner.facts[name] for name in ("party", "context", "tags"))
    if not _is_party(party):
        raise _malformed("it names no party")
    try:
        tags = {other: bytes.fromhex(tag) for tag, other in listed if _is_party(other)}
        if len(tags) != len(listed):
            raise ValueError
        return MaskedMessage(party, bytes.fromhex(context), arrays["words"].view(np.uint64), tags)
    except (TypeError, ValueError, ShareError):
        raise _malformed("its context or its tags are not what they have to be") from None


def _is_party(name: Any) -> bool:
    return isinstance(name, str) or type(name) is int


def _purpose(facts: dict[str, Any]) -> str:
    party: PartyName = facts["party"]
    return f"masked sum of {party} in {facts['context']}"


def _malformed(reason: str) -> ExchangeError:
    return ExchangeError("SHARE_MALFORMED", f"The masked sum cannot be used: {reason}. Have the party send it again.")
