"""What the analyst's desk remembers from page to page; what has to last is in the analyst's folder."""

from __future__ import annotations

import shlex
from pathlib import Path

from ...errors import ExchangeError
from ...exchange.analyst_folder import AnalystFolder, Integration, SumsIntegration
from ..web import DeskFiles, Jobs

__all__ = ["AnalystDesk"]


class AnalystDesk:
    """The analyst's desk over the analyst's folder.

    Parameters
    ----------
    path : Path
    passphrase : str, optional
        Of the keys.

    Attributes
    ----------
    summed : SumsIntegration or None
        The last total that was made on this desk.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        self.path = Path(path)
        self.folder = AnalystFolder(self.path, passphrase=passphrase)
        self.files = DeskFiles(self.path)
        self.jobs = Jobs()
        self.summed: SumsIntegration | None = None
        self.outbox = self.path / "outbox"

    @property
    def of_sums(self) -> bool:
        """Whether parties share sums, and no rows."""
        return self.folder.project.sharing is not None

    @property
    def ending(self) -> str:
        """Of the files that parties send."""
        return ".dcsum" if self.of_sums else ".dcshare"

    def integration(self) -> Integration | None:
        """Return what came of the shares that are there; None if they were not integrated yet."""
        try:
            return self.folder.integrated()[1]
        except ExchangeError as error:
            if error.code == "NOT_INTEGRATED":
                return None
            raise

    def share_names(self) -> list[str]:
        """Return the names of the files that parties send."""
        return [f"{name}{self.ending}" for name in self.folder.project.parties]

    def command(self, verb: str, *words: str) -> str:
        """Return the command that does the same; words that are a shell's already stay as they are."""
        return " ".join(["datacollab analyst", verb, *words, "-C", shlex.quote(str(self.path))])
