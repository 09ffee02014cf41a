"""A party's folder on disk: what it is for, whose it is, and one command at a time in it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from ...bundle import KeyPair, PublicKey, write_atomically
from ...errors import ExchangeError
from ..log import AuditLog, locked
from ..project import Anchor, Project, load_project, open_anchor, read_project
from ._commit import recover
from ._files import Files, OwnFiles
from ._policy import Policy, default_policy_text, load_policy
from ._stored import load_anchor, save_anchor
from ._sums_commit import kept_sum

__all__ = ["Workplace"]

PATIENCE = 10.0
"""Seconds for which an entry waits for another command."""


class Workplace:
    """A folder that was set up for a party of a project.

    Parameters
    ----------
    path : Path
    passphrase : str, optional
        Of the keys, the anchor and f_k, where they are encrypted.

    Attributes
    ----------
    path : Path
    project : Project
    name : str
        The party's, by its key.
    key : KeyPair
    log : AuditLog

    Raises
    ------
    ExchangeError
        FOLDER_MISSING, NOT_A_MEMBER, and what reading keys and project may raise.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        self.path = Path(path)
        self._files = Files(self.path)
        if not self._files.project.is_file():
            raise ExchangeError(
                "FOLDER_MISSING",
                f"{self.path} is no party's folder: there is no project.toml. Run `datacollab party join project.toml "
                "anchor.dcanchor -C FOLDER` first.",
            )
        self.project: Project = load_project(self._files.project)
        self.key = KeyPair.load(self._files.keys, passphrase)
        self.name = _member(self.project, self.key)
        self.log = AuditLog(self._files.log)
        self._own = OwnFiles(self.key, passphrase)

    @classmethod
    def join(
        cls,
        path: Path,
        project_file: Path,
        anchor_file: Path | None = None,
        *,
        owner: PublicKey | None = None,
        passphrase: str | None = None,
    ) -> Self:
        """Set up a folder that holds the party's keys.

        Parameters
        ----------
        path : Path
        project_file : Path
            Signed by the project's owner.
        anchor_file : Path, optional
            Sealed to this party, among others.  Without it, join again when it has come.
        owner : PublicKey, optional
            Of the project's owner, as it came by another way than the file.  Without it, people have to compare
            fingerprints: a file says of itself whose it is.
        passphrase : str, optional
            Of the keys; the anchor and f_k are then encrypted with it.

        Raises
        ------
        ExchangeError
            SIGNATURE_INVALID, where the project is another owner's; ALREADY_THERE, where the folder belongs to a
            project of another owner or analyst, has shared in another project, or with another anchor; NOT_A_MEMBER;
            and what reading keys, project and anchor may raise.
        """
        files = Files(Path(path))
        project, verified = read_project(project_file)
        _check_owner(project, owner, project_file)
        key = KeyPair.load(files.keys, passphrase)
        name = _member(project, key)
        anchor = None if anchor_file is None else open_anchor(anchor_file, project, key)
        own = OwnFiles(key, passphrase)
        with locked(files.root):
            recover(files, own, name)
            if files.project.exists():
                there = load_project(files.project)
                _check_same_people(there, project, files)
                project.check_not_older(there, files.root)
            if files.state.exists() and own.read(files.state).facts["project_digest"] != project.digest:
                raise ExchangeError(
                    "ALREADY_THERE",
                    f"{path} has shared in another project, or another version of it. Use a folder of its own for "
                    f"project {project.name!r}.",
                )
            if anchor is not None and files.state.exists():
                _check_same_anchor(anchor, load_anchor(files, own, project), project, path)
            kept = kept_sum(files, own, project)
            if anchor is not None and kept is not None:
                _check_summed_anchor(anchor, str(kept.facts["anchor_commitment"]), project, path)
            if anchor is not None:
                _check_anchor_not_older(anchor, _known_anchor(files, own, project), project, anchor_file)
            files.root.chmod(0o700)
            files.outbox.mkdir(mode=0o700, exist_ok=True)
            if not files.policy.exists():
                write_atomically(files.policy, default_policy_text(project.task.target_kind).encode(), mode=0o600)
            if anchor is not None:
                save_anchor(files, own, anchor, project)
            write_atomically(files.project, verified)
            AuditLog(files.log).append(
                "join", project=project.name, project_digest=project.digest, party=name, anchor=anchor is not None
            )
        return cls(path, passphrase=passphrase)

    @property
    def outbox(self) -> Path:
        """Folder of what may be sent."""
        return self._files.outbox

    @property
    def policy(self) -> Policy:
        """The party's own rules, as they are now."""
        return load_policy(self._files.policy)

    @property
    def anchor(self) -> Anchor:
        """The anchor, which stays with the parties.

        Raises
        ------
        ExchangeError
            ANCHOR_MISSING, PROJECT_HASH_MISMATCH, STATE_DAMAGED or PASSPHRASE_WRONG.
        """
        return load_anchor(self._files, self._own, self.project)

    def record(self, event: str, **facts: Any) -> None:
        """Write into the log, as soon as no other command works in the folder; never data.

        Raises
        ------
        ExchangeError
            BUSY, when the other one takes longer than ten seconds.
        """
        last = time.monotonic() + PATIENCE
        while True:
            try:
                with self._locked():
                    self.log.append(event, **facts)
                return
            except ExchangeError as error:
                if error.code != "BUSY" or time.monotonic() > last:
                    raise
            time.sleep(0.05)

    def _check_unchanged(self, anchor: Anchor) -> None:
        """Raise where project or anchor are others by now; the folder must be locked."""
        if load_project(self._files.project).digest != self.project.digest:
            raise ExchangeError(
                "PROJECT_HASH_MISMATCH",
                f"{self.path} was joined to another project, or another version of it, while this command ran. Nothing "
                "left; run it again.",
            )
        if self.anchor.commitment(self.project) != anchor.commitment(self.project):
            raise ExchangeError(
                "BUSY", f"Another command opened another anchor in {self.path} while this one ran. Run this one again."
            )

    def _settle(self) -> None:
        """Put in order what a killed command left, unless another one works here."""
        try:
            with self._locked():
                pass
        except ExchangeError as error:
            if error.code != "BUSY":
                raise

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep the folder to oneself, and put in order what a killed command left."""
        try:
            with locked(self.path):
                recover(self._files, self._own, self.name)
                yield
        except PermissionError as error:
            raise _explained(error, self.path) from None


def _explained(error: PermissionError, folder: Path) -> PermissionError:
    """Which folder it is about, and what to do, where it is about this one."""
    place = Path(str(error.filename)).parent
    if not place.is_relative_to(folder):
        return error
    return PermissionError(
        f"{place} cannot be written to, or a file in it is closed to you. Run as whoever owns it, or make it yours: "
        f"chmod -R u+rwX {folder}. Then run the command again."
    )


def _check_owner(project: Project, owner: PublicKey | None, file: Path) -> None:
    if owner is not None and project.owner != owner:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{file} is signed by {project.owner.fingerprint}, and the owner's key that was given is "
            f"{owner.fingerprint}. Do not use the file; ask the owner by another way.",
        )


def _check_same_people(there: Project, given: Project, files: Files) -> None:
    """A file that was swapped on its way is signed too, by whoever swapped it."""
    for role in ("owner", "analyst"):
        known, new = getattr(there, role), getattr(given, role)
        if known != new:
            raise ExchangeError(
                "ALREADY_THERE",
                f"{files.root} has a project whose {role} is {known.fingerprint}; in the new file it is "
                f"{new.fingerprint}. Ask the owner by telephone which is right. For another project use a folder of "
                f"its own; if the {role} has a new key, remove {files.project} and join again.",
            )


def _check_same_anchor(new: Anchor, old: Anchor, project: Project, path: Path) -> None:
    if new.commitment(project) != old.commitment(project):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{path} has shared with another anchor than the one in this file. If all parties are to share again with "
            "a new one, use a new folder with the same keys.",
        )


def _check_summed_anchor(new: Anchor, commitment: str, project: Project, path: Path) -> None:
    if new.commitment(project) != commitment:
        raise ExchangeError(
            "ALREADY_THERE",
            f"{path} has added up its rows by another anchor than the one in this file. If all parties are to share "
            "again, the owner raises the run, and takes new mask keys.",
        )


def _known_anchor(files: Files, own: OwnFiles, project: Project) -> Anchor | None:
    """The anchor that is there, if it is of this version of the project and can be read."""
    try:
        return load_anchor(files, own, project)
    except ExchangeError as error:
        if error.code in ("ANCHOR_MISSING", "PROJECT_HASH_MISMATCH", "STATE_DAMAGED"):
            return None
        raise


def _check_anchor_not_older(new: Anchor, known: Anchor | None, project: Project, file: Path | None) -> None:
    """Whoever can make an old file look new could bring back an anchor that became known."""
    if known is None or new.commitment(project) == known.commitment(project):
        return
    # One that was never sealed is older than any that was.
    if _when(new) < _when(known):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{file} was sealed {new.sealed_at}, and the folder has an anchor that the owner sealed later, "
            f"{known.sealed_at}. Use that one; if the owner means the older, they seal it again.",
        )


def _when(anchor: Anchor) -> datetime:
    return datetime.fromisoformat(anchor.sealed_at) if anchor.sealed_at else datetime.min.replace(tzinfo=UTC)


def _member(project: Project, key: KeyPair) -> str:
    """Which party the key belongs to."""
    for name, public in project.parties.items():
        if public == key.public:
            return name
    if key.public == project.analyst:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"The key in this folder ({key.public.fingerprint}) is the analyst's in project {project.name!r}, and this "
            "is a party's step. Name the party's folder with -C.",
        )
    raise ExchangeError(
        "NOT_A_MEMBER",
        f"The key in this folder ({key.public.fingerprint}) is none of the parties' in project {project.name!r}. Send "
        "the owner the file public.key, and ask for a new project file.",
    )
