"""Messages that are written to a bundle, and read from one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Self

from ._atomic import write_atomically
from ._bundle import Bundle, pack, unpack
from ._key_pair import KeyPair
from ._public_key import PublicKey

__all__ = ["SignedFile"]


class SignedFile(ABC):
    """What has a file of its own: a bundle of one kind, of plain facts and bytes, signed where a key is given.

    Attributes
    ----------
    kind : str
        Of the bundle.
    """

    kind: ClassVar[str]

    @abstractmethod
    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Facts and members of the bundle."""

    @classmethod
    @abstractmethod
    def _from_bundle(cls, bundle: Bundle) -> Self:
        """What a bundle holds, after checks of every part."""

    def save(self, path: str | Path, *, key: KeyPair | None = None) -> None:
        """Write it to a file; whoever has the file can read it.

        Parameters
        ----------
        path : str or Path
            A file there is replaced.
        key : KeyPair, optional
            Whose signature it gets.

        Raises
        ------
        ExchangeError
            When a part has no form in files, such as classes that are neither texts nor numbers.
        """
        facts, members = self._contents()
        write_atomically(Path(path), pack(self.kind, facts, members, key=key), mode=0o600)

    @classmethod
    def load(cls, path: str | Path, *, signed_by: PublicKey | None = None) -> Self:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or Path
        signed_by : PublicKey, optional
            Who has to have signed it.

        Raises
        ------
        ExchangeError
            When the file is damaged, not signed as wanted, or inconsistent.
        """
        return cls._from_bundle(unpack(Path(path), kind=cls.kind, signed_by=signed_by))
