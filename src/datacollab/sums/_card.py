"""A mask key as text that its party signs, to be sent with the party's public key."""

from __future__ import annotations

import base64

from ..bundle import MASK_CARD_PREFIX, KeyPair, PublicKey
from ..errors import AgreementError, ExchangeError
from ._masked_sum import MaskKey, check_mask_key

__all__ = ["mask_card", "read_mask_card"]

_CONTEXT = b"datacollab mask key 1\n"
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64


def mask_card(mask_key: MaskKey, key: KeyPair) -> str:
    """Write a public mask key as one word, signed by its party.

    Parameters
    ----------
    mask_key : MaskKey
    key : KeyPair
        The party's.

    Examples
    --------
    >>> from datacollab.bundle import KeyPair
    >>> from datacollab.sums import MaskKey, mask_card, read_mask_card
    >>> key, mask_key = KeyPair.generate(), MaskKey.generate()
    >>> read_mask_card(mask_card(mask_key, key), key.public) == mask_key.public
    True
    """
    return MASK_CARD_PREFIX + _letters(mask_key.public + key.sign(_CONTEXT + mask_key.public))


def _letters(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()


def read_mask_card(word: str, public: PublicKey) -> bytes:
    """Return the public mask key on a card, after checks of its form and its signature.

    Parameters
    ----------
    word : str
    public : PublicKey
        The party's.

    Raises
    ------
    ExchangeError
        ``KEY_MALFORMED`` if the word is no mask key, ``SIGNATURE_INVALID`` if another party signed it.
    """
    letters = word.removeprefix(MASK_CARD_PREFIX)
    try:
        data = base64.b32decode(letters.upper() + "=" * (-len(letters) % 8))
        if letters == word or len(data) != _KEY_BYTES + _SIGNATURE_BYTES or letters != _letters(data):
            raise ValueError
        mask_public = data[:_KEY_BYTES]
        check_mask_key(mask_public, public.fingerprint)
    except (ValueError, AgreementError):
        raise ExchangeError(
            "KEY_MALFORMED",
            f"The mask key of {public.fingerprint} is none: it was changed or cut, or cannot be used. Ask its owner to "
            "send it again.",
        ) from None
    public.verify(data[_KEY_BYTES:], _CONTEXT + mask_public)
    return mask_public
