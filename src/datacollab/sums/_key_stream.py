"""Numbers drawn from a key of 32 bytes by ChaCha20, which nobody can continue from what they have seen."""

from __future__ import annotations

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray
from scipy.special import ndtri

from .._typing import FloatArray

__all__ = ["key_stream", "standard_normal"]


def key_stream(key: bytes, n: int) -> NDArray[np.uint64]:
    """Return the first n words of ChaCha20's key stream (RFC 8439), little-endian, with nonce and counter zero.

    Parameters
    ----------
    key : bytes of length 32
        For one stream only.
    n : int

    Examples
    --------
    >>> hex(key_stream(bytes(32), 1)[0])
    '0x903df1a0ade0b876'
    """
    encryptor = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
    return np.frombuffer(encryptor.update(bytes(8 * n)), dtype="<u8").astype(np.uint64)


def standard_normal(key: bytes, n: int) -> FloatArray:
    """Draw n standard normal numbers by inversion.

    The upper 53 bits of a word say how far a number is from zero, at most 8.3; the lowest bit says on which side.

    Parameters
    ----------
    key : bytes of length 32
        For one draw only.
    n : int
    """
    words = key_stream(key, n)
    tails = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-54
    return np.asarray(np.where(words & np.uint64(1), -1.0, 1.0) * ndtri(tails))
