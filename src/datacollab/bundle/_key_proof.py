"""That who sends a public key holds its signing half, and means this sealing half to be theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ExchangeError
from ._spelling import bytes_of, letters_of

if TYPE_CHECKING:
    from ._key_pair import KeyPair
    from ._public_key import PublicKey

__all__ = ["is_proof", "key_with_proof"]

PREFIX = "dcproof1-"
_CONTEXT = b"datacollab public key 1 proof\n"


def key_with_proof(pair: KeyPair) -> str:
    """The text of ``public.key``: the public key, and a signature by its signing half over both halves.

    Without it somebody could put another's signing half and a sealing half of their own together, and have read what
    is sealed for the other.  That they hold the sealing half as well, it does not prove: who opens a seal does.
    """
    signature = pair.sign(_signed(pair.public))
    return f"{pair.public.text}\n{PREFIX}{letters_of(signature)}\n"


def is_proof(key: PublicKey, word: str) -> bool:
    """Whether a word is the signature of this key, by its signing half."""
    letters = word.removeprefix(PREFIX)
    try:
        key.verify(bytes_of(letters), _signed(key))
    except (ValueError, ExchangeError):
        return False
    return letters != word


def _signed(key: PublicKey) -> bytes:
    return _CONTEXT + key.signing + key.sealing
