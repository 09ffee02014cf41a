"""Words of 64 bits: fixed-point numbers as integers modulo a power of two, and streams of words drawn from a key.

Masks are added to these integers, and cancel exactly.  A stream is of ChaCha20: nobody can continue it from a part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from .._typing import FloatArray

Words = NDArray[np.uint64]
"""Integers of one or two 64-bit words each, shape (n, n_words), the least significant word first."""

_WORD = 64


@dataclass(frozen=True)
class FixedPoint:
    """Signed fixed-point numbers, stored as integers modulo ``2**bits``.

    A total of K numbers is off by at most ``K * 2**-(fraction_bits + 1)``.

    Parameters
    ----------
    bits : {64, 128}
        Width of an integer.
    fraction_bits : int
        How many of the bits stand behind the binary point.

    Raises
    ------
    ValueError
        If `bits` is not 64 or 128, or `fraction_bits` is not in 1, ..., ``bits - 2``.

    Examples
    --------
    >>> numbers = FixedPoint(64, 32)
    >>> numbers.decode(numbers.add(numbers.encode([0.5, -1.0]), numbers.encode([0.25, -2.0])))
    array([ 0.75, -3.  ])
    """

    bits: int = 64
    fraction_bits: int = 32

    def __post_init__(self) -> None:
        if self.bits not in (_WORD, 2 * _WORD):
            raise ValueError(f"bits must be 64 or 128; got {self.bits!r}.")
        if not 1 <= self.fraction_bits <= self.bits - 2:
            raise ValueError(f"fraction_bits must be from 1 to {self.bits - 2}; got {self.fraction_bits!r}.")

    @property
    def n_words(self) -> int:
        """Return the number of 64-bit words in an integer."""
        return self.bits // _WORD

    @property
    def largest(self) -> float:
        """Return the bound that every number, and every total, must stay below in absolute value."""
        return float(2.0 ** (self.bits - 1 - self.fraction_bits))

    def encode(self, values: ArrayLike) -> Words:
        """Return the nearest fixed-point numbers, shape (n, n_words), to numbers of shape (n,).

        It raises ValueError unless all are finite, and below `largest` in absolute value.
        """
        numbers = np.asarray(values, dtype=np.float64)
        if not (np.abs(numbers) < self.largest).all():
            raise ValueError(f"All numbers must be finite and below {self.largest:g} in absolute value.")
        # The magnitude is encoded and then negated: the fraction of a small negative number would be rounded twice.
        magnitude = np.ldexp(np.abs(numbers), self.fraction_bits - _WORD * (self.n_words - 1))
        if self.n_words == 1:
            words = np.rint(magnitude).astype(np.uint64)[:, None]
        else:
            high = np.floor(magnitude)
            low = np.rint(np.ldexp(magnitude - high, _WORD))
            words = np.column_stack([low.astype(np.uint64), high.astype(np.uint64)])
        return np.where((numbers < 0)[:, None], self.negate(words), words)

    def decode(self, words: Words) -> FloatArray:
        """Return the numbers that integers stand for, shape (n,)."""
        is_negative = words[:, -1] >> np.uint64(_WORD - 1) == 1
        magnitude = np.where(is_negative[:, None], self.negate(words), words).astype(np.float64)
        scaled = np.ldexp(magnitude, np.arange(self.n_words) * _WORD - self.fraction_bits).sum(axis=1)
        return np.asarray(np.where(is_negative, -scaled, scaled))

    def add(self, first: Words, second: Words) -> Words:
        """Return the sums modulo ``2**bits``."""
        total = first + second
        # The carry of the lower word: unsigned words wrap around.
        if self.n_words == 2:
            total[:, 1] += total[:, 0] < first[:, 0]
        return total

    def negate(self, words: Words) -> Words:
        """Return the integers that add up to zero with these."""
        negated = ~words
        negated[:, 0] += np.uint64(1)
        if self.n_words == 2:
            negated[:, 1] += negated[:, 0] == 0
        return negated


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
