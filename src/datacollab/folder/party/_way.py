"""One way to share, as a party takes it in its folder; `steps` chooses it once, from the project."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ...errors import AgreementError
from ._folder import Folder
from ._policy import default_policy_text
from ._sides import AtHome

KEEP_FOLDER = "Keep this folder: only it can predict with the model that comes back. It is as sensitive as the table."


@dataclass(frozen=True, eq=False)
class PartyWay(ABC):
    """A party's steps by one way to share, in its folder; a step that the way does not have is refused."""

    may_share_again: ClassVar[bool] = False
    """Whether a second share may take the place of the first."""

    folder: Folder

    @abstractmethod
    def prepare(self, table: Any, *, where: str | None, options: dict[str, Any]) -> Any:
        """Do all that `share` does but let it leave; see `PartyFolder.prepare`."""

    @abstractmethod
    def share(self, *args: Any, **options: Any) -> Path:
        """Prepare the table, have it approved, and put a file into the outbox; see `PartyFolder.share`."""

    @abstractmethod
    def install(self, model_file: Path, *, older: bool, **options: Any) -> dict[str, Any]:
        """Check the analyst's model and install it; see `PartyFolder.install`."""

    @abstractmethod
    def at_home(self) -> AtHome:
        """Return the sides that the party predicts with."""

    @abstractmethod
    def withdraw(self) -> Path:
        """Leave a run for good; see `PartyFolder.withdraw`."""

    @abstractmethod
    def check_anchor(self, commitment: str) -> None:
        """Refuse an anchor other than the one that the party has shared with."""

    def policy_text(self) -> str:
        """Return the policy that a new folder gets."""
        return default_policy_text(self.folder.project.task.target_kind)

    def describe_share(self) -> str | None:
        """Say how many rows were added to this project's sums, and when; None if none were."""
        return None

    def n_rounds_left(self) -> int:
        """Return how many further rounds the party has to answer."""
        return 0

    def part_maker(self) -> Any:
        """Return the maker of parts of a party's sums; see `PartyFolder.part_maker`."""
        raise AgreementError(
            f"Project {self.folder.project.name!r} shares rows, which do not add up in parts. Share one table."
        )

    def own_model_words(self) -> str:
        """Say which own model is kept in the folder, or why there is none; empty where none is made."""
        return ""

    def words_after_share(self) -> list[str]:
        """Return sentences for a party that has shared."""
        return [KEEP_FOLDER]

    def n_unconfirmed(self) -> int:
        """Return how many other institutions have still to be confirmed before anything leaves."""
        return 0

    def confirm(self, heard: Sequence[str]) -> list[str]:
        """Keep fingerprints that other institutions read out; see `PartyFolder.confirm`."""
        raise AgreementError(
            f"Project {self.folder.project.name!r} shares rows, which leave without fingerprints that others read out. "
            "Leave them out."
        )

    def check_confirmed(self) -> None:  # noqa: B027 - rows leave without it
        """Raise NOT_CONFIRMED as long as other institutions have to be confirmed."""

    def distil(self, predictions_file: Path, tree: int | None) -> dict[str, Any]:
        """Distil a model from the analyst's anchor predictions; see `PartyFolder.distil`."""
        raise self._is_for_rows()

    def forget(self) -> None:
        """Destroy the map f_k and all that was made by it; see `PartyFolder.forget`."""
        raise self._is_for_rows()

    def check_explains(self) -> None:
        """Refuse explanations, which are of models behind a map f_k."""
        raise self._is_for_rows()

    def _is_for_rows(self) -> AgreementError:
        return AgreementError(
            f"Project {self.folder.project.name!r} shares sums, and this step is for projects that share rows: there "
            "is no map f_k and no row that leaves. `datacollab party check` and `share` show what would leave."
        )
