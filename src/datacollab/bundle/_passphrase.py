"""Bytes under a passphrase."""

from __future__ import annotations

import hashlib
import os
import struct
import unicodedata

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from ..errors import ExchangeError

__all__ = ["decrypt", "encrypt", "is_encrypted"]

MAGIC = b"dcpass01"
HEADER = struct.Struct(">8sBBB16s12s")
"""Magic, log2 of n, r, p, salt, nonce."""

LOG2_N, R, P = 17, 8, 1
"""Cost of scrypt, as OWASP recommends: 128 MiB, and less than half a second."""

MAX_MEMORY = 256 * 1024**2
"""A file may not ask for more, in bytes."""


def is_encrypted(data: bytes) -> bool:
    """Return whether bytes begin as those of `encrypt` do."""
    return data.startswith(MAGIC)


def encrypt(data: bytes, passphrase: str) -> bytes:
    """Encrypt under a passphrase, by scrypt and ChaCha20-Poly1305.

    Raises
    ------
    ValueError
        If the passphrase is empty.

    Examples
    --------
    >>> decrypt(encrypt(b"secret", "correct horse"), "correct horse")
    b'secret'
    """
    if not passphrase:
        raise ValueError("The passphrase is empty; give one, or store without.")
    salt, nonce = os.urandom(16), os.urandom(12)
    header = HEADER.pack(MAGIC, LOG2_N, R, P, salt, nonce)
    key = _key(passphrase, salt, LOG2_N, R, P)
    return header + ChaCha20Poly1305(key).encrypt(nonce, data, header)


def decrypt(data: bytes, passphrase: str, *, what: str = "the file") -> bytes:
    """Decrypt the bytes of `encrypt`.

    Raises
    ------
    ExchangeError
        ``PASSPHRASE_WRONG`` if the passphrase does not open it, or the file was changed; ``BUNDLE_MALFORMED`` if the
        bytes are not `encrypt`'s.
    """
    if not is_encrypted(data) or len(data) < HEADER.size + 16:
        raise _malformed(what, "it does not begin as such a file does, or is cut")
    header = data[: HEADER.size]
    _, log2_n, r, p, salt, nonce = HEADER.unpack(header)
    if not (10 <= log2_n <= 20 and r >= 1 and 1 <= p <= 4 and 128 * r << log2_n <= MAX_MEMORY):
        raise _malformed(what, "it asks for more work than is allowed")
    try:
        cipher = ChaCha20Poly1305(_key(passphrase, salt, log2_n, r, p))
        return cipher.decrypt(nonce, data[HEADER.size :], header)
    except InvalidTag:
        raise ExchangeError(
            "PASSPHRASE_WRONG",
            f"The passphrase does not open {what}, or that was changed. Try again; without the passphrase it cannot be "
            "opened.",
        ) from None


def _key(passphrase: str, salt: bytes, log2_n: int, r: int, p: int) -> bytes:
    # Keyboards differ in how they compose accents.
    secret = unicodedata.normalize("NFKC", passphrase).encode("utf-8", "surrogatepass")
    return hashlib.scrypt(secret, salt=salt, n=1 << log2_n, r=r, p=p, maxmem=2 * MAX_MEMORY, dklen=32)


def _malformed(what: str, reason: str) -> ExchangeError:
    return ExchangeError(
        "BUNDLE_MALFORMED",
        f"The encrypted part in {what} is damaged: {reason}. Take it from a backup.",
    )
