"""A pair of keys: what somebody signs with and opens seals with."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from .._require import require
from ..errors import ExchangeError
from ._key_file import KeyFile, check_closed, keys_malformed
from ._passphrase import decrypt, encrypt
from ._public_key import PublicKey

__all__ = ["KeyPair"]

_LEAST_LETTERS = 8


class KeyPair:
    """Secret keys: one signs (Ed25519), one opens seals (X25519).

    Parameters
    ----------
    signing, sealing : bytes
        The secret halves, of 32 bytes each.

    Attributes
    ----------
    public : PublicKey
        What others may know.

    Examples
    --------
    >>> key = KeyPair.generate()
    >>> key.public.verify(key.sign(b"contents"), b"contents")
    """

    def __init__(self, signing: bytes, sealing: bytes) -> None:
        ed25519 = require("cryptography.hazmat.primitives.asymmetric.ed25519", "exchange")
        x25519 = require("cryptography.hazmat.primitives.asymmetric.x25519", "exchange")
        self._secret = signing + sealing
        self._signing = ed25519.Ed25519PrivateKey.from_private_bytes(signing)
        self._sealing = x25519.X25519PrivateKey.from_private_bytes(sealing)
        self.public = PublicKey(
            self._signing.public_key().public_bytes_raw(), self._sealing.public_key().public_bytes_raw()
        )

    @classmethod
    def generate(cls) -> KeyPair:
        """Fresh keys from the system's source of randomness."""
        return cls(secrets.token_bytes(32), secrets.token_bytes(32))

    def sign(self, data: bytes) -> bytes:
        """Sign bytes; they should begin with what they are for, so that a signature means one thing only.

        Returns
        -------
        bytes of length 64
        """
        signature: bytes = self._signing.sign(data)
        return signature

    def exchange(self, other: Any) -> bytes:
        """The secret that this key shares with a public X25519 key.

        Raises
        ------
        ValueError
            When the public key is a degenerate one.
        """
        shared: bytes = self._sealing.exchange(other)
        return shared

    def save(self, path: Path, passphrase: str | None = None) -> None:
        """Write the keys, readable by their owner alone.

        Parameters
        ----------
        path : Path
        passphrase : str, optional
            What to encrypt them with, of eight letters or more.

        Raises
        ------
        ExchangeError
            ``PASSPHRASE_WEAK``; ``ALREADY_THERE``, when there is a file already: a key that is lost cannot be made
            again.
        """
        if passphrase is not None and len(passphrase) < _LEAST_LETTERS:
            raise ExchangeError(
                "PASSPHRASE_WEAK",
                f"The passphrase has {len(passphrase)} letters; whoever gets hold of the file could try all short "
                f"ones. Give one of {_LEAST_LETTERS} or more, such as four words.",
            )
        secret = self._secret if passphrase is None else encrypt(self._secret, passphrase)
        KeyFile(self.public, passphrase is not None, secret).write(Path(path))

    @classmethod
    def load(cls, path: Path, passphrase: str | None = None) -> KeyPair:
        """Read keys.

        Raises
        ------
        ExchangeError
            ``KEY_MISSING``, when there is no such file; ``KEY_EXPOSED``, when others than its owner can read it;
            ``KEY_MALFORMED``, when it holds no keys; ``PASSPHRASE_WRONG``, when the passphrase does not open it or is
            missing; ``FORMAT_TOO_NEW``.
        """
        path = Path(path)
        file = KeyFile.read(path)
        check_closed(path)
        secret = _opened(file.secret, passphrase, path) if file.encrypted else file.secret
        if len(secret) != 64:
            raise keys_malformed(path)
        pair = cls(secret[:32], secret[32:])
        if pair.public != file.public:
            raise keys_malformed(path)
        return pair

    def __repr__(self) -> str:
        return f"KeyPair({self.public.fingerprint})"


def _opened(secret: bytes, passphrase: str | None, path: Path) -> bytes:
    if passphrase is None:
        raise ExchangeError(
            "PASSPHRASE_WRONG",
            f"{path} is under a passphrase, and none was given. Give it with --passphrase-file, or in "
            "DATACOLLAB_PASSPHRASE.",
        )
    try:
        return decrypt(secret, passphrase, what=str(path))
    except ExchangeError as error:
        raise (error if error.code == "PASSPHRASE_WRONG" else keys_malformed(path)) from None
