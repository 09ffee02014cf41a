"""The file of a pair of keys: the public key, and the secret one as it is or under a passphrase."""

from __future__ import annotations

import base64
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import ExchangeError
from ._atomic import write_atomically
from ._json import canonical_json, parse_json
from ._public_key import PublicKey

__all__ = ["KeyFile"]

FORMAT, VERSION = "datacollab.keys", 1
MAX_BYTES = 64 * 1024


@dataclass(frozen=True)
class KeyFile:
    """What such a file holds.

    Attributes
    ----------
    public : PublicKey
        As the file says; `KeyPair.load` checks that it fits the secret.
    encrypted : bool
    secret : bytes
        The secret keys, or what `encrypt` made of them.
    """

    public: PublicKey
    encrypted: bool
    secret: bytes = field(repr=False)

    def write(self, path: Path) -> None:
        """Write the file, readable by its owner alone, where there is none.

        Raises
        ------
        ExchangeError
            ``ALREADY_THERE``.
        """
        contents = {
            "format": FORMAT,
            "format_version": VERSION,
            "public": self.public.text,
            "encrypted": self.encrypted,
            "secret": base64.b64encode(self.secret).decode(),
        }
        write_atomically(path, canonical_json(contents) + b"\n", mode=0o600, overwrite=False)

    @classmethod
    def read(cls, path: Path) -> KeyFile:
        """Read the file, without a passphrase.

        Raises
        ------
        ExchangeError
            ``KEY_MISSING``, ``KEY_MALFORMED``, ``FORMAT_TOO_NEW``.
        """
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            raise ExchangeError(
                "KEY_MISSING",
                f"There are no keys in {path}. If your folder is another, name it with -C; if you have no keys yet, "
                f"make them with: datacollab keys new {path.parent}",
            ) from None
        except OSError as error:
            raise ExchangeError(
                "KEY_MISSING", f"{path} cannot be read ({error.strerror}). Run as the one who made the keys."
            ) from None
        try:
            contents = parse_json(data, what=str(path))
            version, encrypted = contents["format_version"], contents["encrypted"]
            if type(version) is int and version > VERSION and contents["format"] == FORMAT:
                raise ExchangeError(
                    "FORMAT_TOO_NEW", f"{path} was written by a later version. Upgrade datacollab, then try again."
                )
            if (contents["format"], version) != (FORMAT, VERSION) or type(encrypted) is not bool:
                raise ValueError
            return cls(
                PublicKey.from_text(contents["public"]), encrypted, base64.b64decode(contents["secret"], validate=True)
            )
        except ExchangeError as error:
            raise (error if error.code == "FORMAT_TOO_NEW" else keys_malformed(path)) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise keys_malformed(path) from None


def check_closed(path: Path) -> None:
    """Refuse secret keys that others than their owner can read or change.

    Raises
    ------
    ExchangeError
        ``KEY_EXPOSED``.
    """
    mode = path.stat().st_mode
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ExchangeError(
            "KEY_EXPOSED",
            f"{path} can be read or changed by others than its owner (mode {stat.S_IMODE(mode):03o}). If nobody may "
            f"have taken the keys, close it with `chmod 600 {path}`; otherwise make new ones.",
        )


def keys_malformed(path: Path) -> ExchangeError:
    """``KEY_MALFORMED``, for a file of keys."""
    return ExchangeError("KEY_MALFORMED", f"{path} holds no keys of this program. Take the file from a backup.")
