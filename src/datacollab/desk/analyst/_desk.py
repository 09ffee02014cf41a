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
    path : Path
    folder : AnalystFolder
    files : DeskFiles
    jobs : Jobs
    summed : SumsIntegration or None
        The last total that was made on this desk.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        self.path = Path(path)
        self.folder = AnalystFolder(self.path, passphrase=passphrase)
        self.files = DeskFiles(self.path)
        self.jobs = Jobs()
        self.summed: SumsIntegration | None = None

    @property
    def of_sums(self) -> bool:
        """Whether parties share sums, and no rows."""
        return self.folder.project.sharing is not None

    @property
    def ending(self) -> str:
        """Of the files that parties send."""
        return ".dcsum" if self.of_sums else ".dcshare"

    @property
    def outbox(self) -> Path:
        """Folder of what may be sent."""
        return self.path / "outbox"

    def integration(self) -> Integration | None:
        """What came of the shares that are there; None where they were not integrated yet."""
        try:
            return self.folder.integrated()[1]
        except ExchangeError as error:
            if error.code == "NOT_INTEGRATED":
                return None
            raise

    def command(self, verb: str, *words: str) -> str:
        """The command that does the same; words that are a shell's already stay as they are."""
        return " ".join(["datacollab analyst", verb, *words, "-C", shlex.quote(str(self.path))])
