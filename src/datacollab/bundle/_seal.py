"""Sealing: bytes that only chosen keys can open."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from ..errors import ExchangeError
from ._keys import KeyPair, PublicKey, spelt

__all__ = ["seal", "sealed_to", "unseal"]

MAGIC = b"dcseal01"
HEADER = struct.Struct(">8sH32s32s")
"""Magic, number of recipients, key for this seal only (X25519), commitment to the content key."""

SLOT = struct.Struct(">10s48s")
"""For each recipient: the fingerprint, the wrapped content key."""

NONCE = bytes(12)
"""Each key of the cipher is used for one message only."""

MAX_RECIPIENTS = 1000
TAG = 16


def seal(data: bytes, recipients: Sequence[PublicKey], *, purpose: str) -> bytes:
    """Seal bytes to keys: any of them opens the seal alone, nobody else does.

    Parameters
    ----------
    data : bytes
    recipients : sequence of PublicKey
        From 1 to 1000.
    purpose : str
        Purpose of the bytes; the seal opens for the same purpose only.

    Raises
    ------
    ExchangeError
        ``KEY_MALFORMED`` if a key cannot be sealed to; ``TOO_LARGE`` from 2 GiB on.
    """
    distinct = list(dict.fromkeys(recipients))
    if not 1 <= len(distinct) <= MAX_RECIPIENTS:
        raise ValueError(f"A seal needs 1 to {MAX_RECIPIENTS} recipients; got {len(distinct)}.")
    if len(data) >= 2**31 - TAG:
        raise ExchangeError("TOO_LARGE", f"{len(data)} bytes are to be sealed; fewer than 2 GiB can be. Send fewer.")
    ephemeral = X25519PrivateKey.generate()
    ephemeral_public = ephemeral.public_key().public_bytes_raw()
    content_key = os.urandom(32)
    header = HEADER.pack(MAGIC, len(distinct), ephemeral_public, _commitment(content_key))
    for recipient in distinct:
        try:
            shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(recipient.sealing))
        except ValueError:
            raise ExchangeError(
                "KEY_MALFORMED", f"The key {recipient.fingerprint} cannot be sealed to. Ask its owner for another."
            ) from None
        key = _wrapping_key(shared, ephemeral_public, recipient, purpose)
        wrapped = ChaCha20Poly1305(key).encrypt(NONCE, content_key, None)
        header += SLOT.pack(recipient.fingerprint_bytes, wrapped)
    return header + ChaCha20Poly1305(content_key).encrypt(NONCE, data, header + purpose.encode())


def unseal(data: bytes, key: KeyPair, *, purpose: str) -> bytes:
    """Open a seal.

    Raises
    ------
    ExchangeError
        ``SEAL_NOT_FOR_YOU`` if it was sealed to other keys; ``SEAL_DAMAGED`` if it was changed, or sealed for another
        purpose.
    """
    ephemeral_public, commitment, slots, start = _parts(data)
    if key.public.fingerprint_bytes not in slots:
        raise ExchangeError(
            "SEAL_NOT_FOR_YOU",
            f"The file is sealed to {len(slots)} other keys, not to {key.public.fingerprint}. Ask the sender to seal "
            "it to your key.",
        )
    try:
        shared = key.exchange(X25519PublicKey.from_public_bytes(ephemeral_public))
        wrapping_key = _wrapping_key(shared, ephemeral_public, key.public, purpose)
        wrapped = slots[key.public.fingerprint_bytes]
        content_key = ChaCha20Poly1305(wrapping_key).decrypt(NONCE, wrapped, None)
        # Without the commitment a sender could make one seal that opens to different contents for different keys.
        if _commitment(content_key) != commitment:
            raise ValueError
        aad = data[:start] + purpose.encode()
        return ChaCha20Poly1305(content_key).decrypt(NONCE, data[start:], aad)
    except (InvalidTag, ValueError, OverflowError):
        raise _damaged("was changed on its way, or made for another purpose") from None


def sealed_to(data: bytes) -> list[str]:
    """Return the fingerprints of the keys that bytes are sealed to, which anybody can see, or raise SEAL_DAMAGED."""
    _, _, slots, _ = _parts(data)
    return [spelt(fingerprint, 16) for fingerprint in slots]


def _parts(data: bytes) -> tuple[bytes, bytes, dict[bytes, bytes], int]:
    """Return the key of this seal, the commitment, the wrapped keys by fingerprint, and the start of the contents."""
    if len(data) < HEADER.size or not data.startswith(MAGIC):
        raise _damaged("does not begin as one")
    _, n_recipients, ephemeral_public, commitment = HEADER.unpack_from(data)
    start = HEADER.size + n_recipients * SLOT.size
    if not 1 <= n_recipients <= MAX_RECIPIENTS or len(data) < start + TAG:
        raise _damaged("is cut")
    slots = dict(SLOT.iter_unpack(data[HEADER.size : start]))
    if len(slots) != n_recipients:
        raise _damaged("names a recipient twice")
    return ephemeral_public, commitment, slots, start


def _wrapping_key(shared: bytes, ephemeral_public: bytes, recipient: PublicKey, purpose: str) -> bytes:
    info = b"datacollab seal 1 key\n" + purpose.encode()
    return HKDF(hashes.SHA256(), 32, ephemeral_public + recipient.sealing, info).derive(shared)


def _commitment(content_key: bytes) -> bytes:
    return hashlib.sha256(b"datacollab seal 1 commitment\n" + content_key).digest()


def _damaged(reason: str) -> ExchangeError:
    return ExchangeError("SEAL_DAMAGED", f"The seal {reason}. Have the file sent again.")
