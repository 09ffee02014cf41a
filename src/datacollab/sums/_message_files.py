"""Files of sums: a mask key as text that its party signs, and a masked message.

A message is signed by its party, and always sealed: all of them are the total, which is for the analyst alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import PartyName
from .._version import __version__
from ..bundle import (
    MASK_CARD_PREFIX,
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
from ..bundle._keys import bytes_of, letters_of
from ..errors import AgreementError, ExchangeError, ShareError
from ._masked_sum import MaskedMessage, MaskKey, check_mask_key

_CARD_CONTEXT = b"datacollab mask key 1\n"
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64
MASKED_SUM_KIND = "datacollab.masked-sum"

_SEALED = "sealed.bin"
_WORDS = "words.safetensors"
_FACTS = {"party", "context", "versions"}
# Further facts on the outside of a message of a project, all or none.
_TOLD = {"project_digest", "anchor_commitment", "n_components", "created"}
_INNER_FACTS = {"party", "context", "tags"}
_MOST_BYTES = 256 * 1024**2


def message_to_bytes(
    message: MaskedMessage, key: KeyPair, analyst: PublicKey, *, outside: Mapping[str, Any] | None = None
) -> bytes:
    """Write a message as a bundle that the party's key signs, and whose contents only the analyst can open.

    `outside` are further facts of a project: `project_digest`, `anchor_commitment`, `n_components` and `created`.
    Everybody who carries the file can read them.
    """
    facts = {"party": message.party, "context": message.context.hex()}
    tags = sorted([tag.hex(), party] for party, tag in message.tags.items())
    arrays = {"words": message.words.view(np.int64), "witness": message.witness.view(np.int64)}
    words = {_WORDS: arrays_to_bytes(arrays)}
    sealed = seal(pack(MASKED_SUM_KIND, facts | {"tags": tags}, words), [analyst], purpose=_purpose(facts))
    versions = {"datacollab": __version__, "numpy": np.__version__}
    return pack(MASKED_SUM_KIND, facts | {"versions": versions} | dict(outside or {}), {_SEALED: sealed}, key=key)


def read_message(source: bytes | Path, key: KeyPair, *, signed_by: PublicKey) -> MaskedMessage:
    """Read a message of unknown origin with the analyst's key, and check every part; `signed_by` is its party.

    ``SHARE_MALFORMED`` is raised if a part is not as it has to be, or one of the codes of `unpack` and `unseal`.
    """
    # A message of the most columns has 8 MB; the limit keeps a crafted file from filling the memory.
    limits = Limits(total_bytes=_MOST_BYTES)
    outer = unpack(source, kind=MASKED_SUM_KIND, signed_by=signed_by, limits=limits)
    if outer.facts.keys() not in (_FACTS, _FACTS | _TOLD) or outer.members.keys() != {_SEALED}:
        raise _refusal("it has other facts or parts than a masked sum")
    data = unseal(outer.members[_SEALED], key, purpose=_purpose(outer.facts))
    inner = unpack(data, kind=MASKED_SUM_KIND, limits=limits, what="The masked sum within")
    if inner.facts.keys() != _INNER_FACTS or inner.members.keys() != {_WORDS}:
        raise _refusal("its contents have other facts or parts than a masked sum")
    # The signature is on the outside, so that the inside has to say the same.
    if any(inner.facts[name] != outer.facts[name] for name in ("party", "context")):
        raise _refusal("its contents name another party or another sum than its outside")
    return _message_of(inner)


def _message_of(inner: Bundle) -> MaskedMessage:
    arrays = bytes_to_arrays(inner.members[_WORDS], what="The masked sum")
    if arrays.keys() != {"words", "witness"} or {each.dtype for each in arrays.values()} != {np.dtype(np.int64)}:
        raise _refusal("its words are not what they have to be")
    party, context, listed = (inner.facts[name] for name in ("party", "context", "tags"))
    if not _is_party(party):
        raise _refusal("it names no party")
    try:
        tags = {other: bytes.fromhex(tag) for tag, other in listed if _is_party(other)}
        if len(tags) != len(listed):
            raise ValueError
        words, witness = (arrays[name].view(np.uint64) for name in ("words", "witness"))
        return MaskedMessage(party, bytes.fromhex(context), words, tags, witness)
    except (TypeError, ValueError, ShareError):
        raise _refusal("its context or its tags are not what they have to be") from None


def _is_party(name: Any) -> bool:
    return isinstance(name, str) or type(name) is int


def _purpose(facts: dict[str, Any]) -> str:
    party: PartyName = facts["party"]
    return f"masked sum of {party} in {facts['context']}"


def _refusal(reason: str) -> ExchangeError:
    return ExchangeError("SHARE_MALFORMED", f"The masked sum cannot be used: {reason}. Have the party send it again.")


def mask_card(mask_key: MaskKey, key: KeyPair) -> str:
    """Write a public mask key as one word, which its party's key signs.

    Examples
    --------
    >>> from datacollab.bundle import KeyPair
    >>> from datacollab.sums import MaskKey, mask_card, read_mask_card
    >>> key, mask_key = KeyPair.generate(), MaskKey.generate()
    >>> read_mask_card(mask_card(mask_key, key), key.public) == mask_key.public
    True
    """
    return MASK_CARD_PREFIX + letters_of(mask_key.public + key.sign(_CARD_CONTEXT + mask_key.public))


def read_mask_card(word: str, public: PublicKey) -> bytes:
    """Return the public mask key on a card of the party with key `public`, after checks of its form and signature.

    ``KEY_MALFORMED`` is raised if the word is no mask key, ``SIGNATURE_INVALID`` if another party signed it.
    """
    letters = word.removeprefix(MASK_CARD_PREFIX)
    try:
        # One key has one spelling: a second one would look like another key.
        data = bytes_of(letters)
        if letters == word or len(data) != _KEY_BYTES + _SIGNATURE_BYTES or letters != letters_of(data):
            raise ValueError
        mask_public = data[:_KEY_BYTES]
        check_mask_key(mask_public, public.fingerprint)
    except (ValueError, AgreementError):
        raise ExchangeError(
            "KEY_MALFORMED",
            f"The mask key of {public.fingerprint} is none: it was changed or cut, or cannot be used. Ask its owner to "
            "send it again.",
        ) from None
    public.verify(data[_KEY_BYTES:], _CARD_CONTEXT + mask_public)
    return mask_public
