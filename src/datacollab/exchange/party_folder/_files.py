"""Where things are in a party's folder, and its own files: signed by the party, and encrypted where it wants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...bundle import Bundle, KeyPair, decrypt, encrypt, is_encrypted, pack, unpack, write_atomically
from ...errors import ExchangeError

__all__ = ["STATE_KIND", "Files", "OwnFiles"]

STATE_KIND = "datacollab.party-state"


@dataclass(frozen=True)
class Files:
    """Paths in the folder of a party.

    Attributes
    ----------
    root : Path
    """

    root: Path

    @property
    def keys(self) -> Path:
        """The party's keys."""
        return self.root / "keys.json"

    @property
    def project(self) -> Path:
        """What was agreed."""
        return self.root / "project.toml"

    @property
    def policy(self) -> Path:
        """The party's own rules for what may leave."""
        return self.root / "policy.toml"

    @property
    def anchor(self) -> Path:
        """The opened anchor."""
        return self.root / "anchor.dcstate"

    @property
    def state(self) -> Path:
        """The secret map f_k; as sensitive as the raw table."""
        return self.root / "party.dcstate"

    @property
    def model(self) -> Path:
        """The installed model."""
        return self.root / "model.dcmodel"

    @property
    def next_model(self) -> Path:
        """A model on its way to be installed."""
        return self.root / ".model.dcmodel.next"

    @property
    def personal(self) -> Path:
        """What the party has alone, pooled with the installed model; as sensitive as the raw table."""
        return self.root / "personal.dcstate"

    @property
    def next_personal(self) -> Path:
        """The same of a model on its way to be installed."""
        return self.root / ".personal.dcstate.next"

    @property
    def learned(self) -> Path:
        """Answers on the anchor, and the model that was learned from them."""
        return self.root / "learned.dcstate"

    @property
    def next_distilled(self) -> Path:
        """The same on its way to the disk."""
        return self.root / ".learned.dcstate.next"

    @property
    def mask(self) -> Path:
        """An unused mask key, until its message is written."""
        return self.root / "mask.dcstate"

    @property
    def spent_mask(self) -> Path:
        """A mask key on its way to be erased: what is written over is no mask key any more."""
        return self.root / ".mask.dcstate.spent"

    @property
    def sum(self) -> Path:
        """The message of a project that shares sums, kept to be sent again."""
        return self.root / "sum.dcstate"

    @property
    def next_sum(self) -> Path:
        """The same until all that belongs to it is done."""
        return self.root / ".sum.dcstate.next"

    def sum_file(self, party: str) -> Path:
        """The message to be sent."""
        return self.outbox / f"{party}.dcsum"

    def withdrawal(self, party: str) -> Path:
        """The party's word that it has left a run."""
        return self.outbox / f"{party}.dcwithdrawal"

    @property
    def public(self) -> Path:
        """What the party sends to the project's owner: its public key, and the card of its mask key."""
        return self.root / "public.key"

    @property
    def log(self) -> Path:
        """What was done in the folder."""
        return self.root / "log.jsonl"

    @property
    def outbox(self) -> Path:
        """What may be sent."""
        return self.root / "outbox"

    def share(self, party: str) -> Path:
        """The share to be sent."""
        return self.outbox / f"{party}.dcshare"

    @property
    def next_share(self) -> Path:
        """A share that nobody may send yet, and so not in the outbox."""
        return self.root / ".share.dcshare.next"

    def of_the_map(self, party: str) -> list[Path]:
        """All that holds f_k, what was made by it, or whose rows these were."""
        return [
            *(self.state, self.personal, self.next_personal, self.model, self.next_model),
            *(self.next_share, self.share(party)),
        ]


@dataclass(frozen=True)
class OwnFiles:
    """Writes and reads what only the party itself may have made.

    Attributes
    ----------
    key : KeyPair
    passphrase : str or None
        Encrypts them, where given.
    """

    key: KeyPair
    passphrase: str | None = field(repr=False)

    def write(self, path: Path, facts: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
        """Write a file that only its owner may read, whole or not at all."""
        data = pack(STATE_KIND, facts, members, key=self.key)
        if self.passphrase is not None:
            data = encrypt(data, self.passphrase)
        write_atomically(path, data, mode=0o600)

    def read(self, path: Path) -> Bundle:
        """Read a file that this party wrote.

        Raises
        ------
        ExchangeError
            STATE_DAMAGED, when it is not as it was written; PASSPHRASE_WRONG; FORMAT_TOO_NEW.
        """
        data = path.read_bytes()
        try:
            if is_encrypted(data):
                data = self._decrypted(data, path)
            return unpack(data, kind=STATE_KIND, signed_by=self.key.public, what=str(path))
        except ExchangeError as error:
            if error.code in ("FORMAT_TOO_NEW", "PASSPHRASE_WRONG"):
                raise
            raise ExchangeError(
                "STATE_DAMAGED",
                f"{path} is not as this party wrote it ({error.code}). Restore it from a backup.",
            ) from None

    def _decrypted(self, data: bytes, path: Path) -> bytes:
        if self.passphrase is None:
            raise ExchangeError(
                "PASSPHRASE_WRONG", f"{path} is encrypted. Give the passphrase that it was written with."
            )
        return decrypt(data, self.passphrase, what=str(path))
