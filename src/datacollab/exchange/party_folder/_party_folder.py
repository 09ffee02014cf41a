"""A party's folder, with the steps that a party takes in it as methods."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from ...bundle import PublicKey, write_atomically
from ...errors import AgreementError, ExchangeError
from ..project import Anchor, Project, load_project, open_anchor, read_project
from . import _commit, _explain, _install, _predict, _share, _sums
from ._folder import Files, Folder, load_anchor, save_anchor
from ._policy import default_policy_text

_OF_ROWS = ("obfuscator", "n_components", "preset", "epsilon", "group_size", "noise", "fit_on_anchor")
"""Options of `share` that are for rows alone."""


def share(
    folder: Folder,
    table: Any,
    *,
    approve: Callable[[Any], str | None],
    again: bool = False,
    undefended: bool = False,
    withdrawals: Sequence[Path] = (),
    without: Sequence[str] = (),
    where: str | None = None,
    **options: Any,
) -> Path:
    """Obfuscate the table, have it approved, and put the share into the outbox.

    If the project shares sums, the rows are added up under masks in place of that.  A message that was released is put
    into the outbox again, whatever the table: the same bytes.

    Parameters
    ----------
    folder : Folder
    table : Path or DataFrame
    approve : callable
        Gets a `ReleaseSummary` or `SumsSummary`; returns the name of the approver, or None.  Called only if project and
        policy allow the share.
    again : bool, default=False
        Whether a share made before is to be replaced.  The analyst then has two of the same rows, which tell more than
        one, and the installed model no longer fits.
    undefended : bool, default=False
        Whether rows may leave without any defence; the preset "none" is refused otherwise.
    withdrawals : sequence of Path
        Of parties that left an earlier run of sums over these rows; see `withdraw`.
    without : sequence of str
        Parties that left one and gave no withdrawal: if their files arrived, both totals tell their sums.
    where, **options
        As in `prepare`.

    Returns
    -------
    Path
        The file to be sent.

    Raises
    ------
    ExchangeError
        DEADLINE_PASSED, ALREADY_SHARED, FORGOTTEN, UNDEFENDED, NOT_APPROVED, STATE_UNSUPPORTED; PROJECT_HASH_MISMATCH
        or BUSY if the folder was joined to something else meanwhile; or the errors and reasons of `prepare`.  Nothing
        left the party.
    """
    if folder.project.sharing is None:
        return _share.share_rows(
            folder, table, approve=approve, again=again, undefended=undefended, where=where, **options
        )
    if meant := sorted(name for name in _OF_ROWS if options.get(name) not in (None, False)):
        raise AgreementError(
            f"Project {folder.project.name!r} shares sums, which have no {', '.join(meant)}. Leave that out."
        )
    return _sums.share_sum(folder, table, approve=approve, where=where, withdrawals=withdrawals, without=without)


class PartyFolder(Folder):
    """A party's folder of one project, on its own disk.

    Holds its keys, the anchor and the secret map f_k: as sensitive as the raw table.  Only files in the outbox may
    leave.  A command that is killed at any moment leaves the old or the new state; see `_commit`.

    Parameters
    ----------
    path : Path
    passphrase : str, optional
        Of the keys, the anchor and f_k, if they are encrypted.

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
        if not Files(Path(path)).project.is_file():
            raise ExchangeError(
                "FOLDER_MISSING",
                f"{path} is no party's folder: there is no project.toml. Run `datacollab party join project.toml "
                "anchor.dcanchor -C FOLDER` first.",
            )
        super().__init__(path, passphrase=passphrase, project=load_project(Files(Path(path)).project))
        self.name  # noqa: B018 - refuses a key that is no party's

    encoded = _share.encoded
    prepare = _share.prepare
    prepare_sum = _sums.prepare_sum
    share = share
    shared = _share.shared
    withdraw = _sums.withdraw
    install = _install.install
    distil = _install.distil
    forget = _install.forget
    predict_batches = _predict.predict_batches
    predict = _predict.predict
    evaluate = _predict.evaluate
    explain = _explain.explain
    record = _commit.record

    @property
    def sentence(self) -> str:
        """What collaboration brought to this party, or why that cannot be said.

        Raises
        ------
        ExchangeError
            NOT_SHARED, NOT_INSTALLED or WRONG_SHARE.
        """
        return _install.predictors(self).sentence

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
            fingerprints: the file itself cannot vouch for its owner.
        passphrase : str, optional
            Of the keys; the anchor and f_k are then encrypted with it.

        Raises
        ------
        ExchangeError
            SIGNATURE_INVALID, if the project is another owner's; ALREADY_THERE, if the folder belongs to a project of
            another owner or analyst, has shared in another project, or with another anchor; NOT_A_MEMBER; and what
            reading keys, project and anchor may raise.
        """
        project, verified = read_project(project_file)
        _check_owner(project, owner, project_file)
        folder = Folder(path, passphrase=passphrase, project=project)
        files, name = folder.files, folder.name
        anchor = None if anchor_file is None else open_anchor(anchor_file, project, folder.key)
        with _commit.locked(folder):
            if files.project.exists():
                there = load_project(files.project)
                _check_same_people(there, project, files)
                project.check_not_older(there, files.root)
            if files.state.exists() and folder.read(files.state).facts["project_digest"] != project.digest:
                raise ExchangeError(
                    "ALREADY_THERE",
                    f"{path} has shared in another project, or another version of it. Use a folder of its own for "
                    f"project {project.name!r}.",
                )
            if anchor is not None:
                _check_anchor(folder, anchor, anchor_file)
            files.root.chmod(0o700)
            files.outbox.mkdir(mode=0o700, exist_ok=True)
            if not files.policy.exists():
                write_atomically(files.policy, default_policy_text(project.task.target_kind).encode(), mode=0o600)
            if anchor is not None:
                save_anchor(folder, anchor, project)
            write_atomically(files.project, verified)
            folder.log.append(
                "join", project=project.name, project_digest=project.digest, party=name, anchor=anchor is not None
            )
        return cls(path, passphrase=passphrase)

    def __repr__(self) -> str:
        return f"PartyFolder({os.fspath(self.path)!r}, party={self.name!r}, project={self.project.name!r})"


def _check_owner(project: Project, owner: PublicKey | None, file: Path) -> None:
    if owner is not None and project.owner != owner:
        raise ExchangeError(
            "SIGNATURE_INVALID",
            f"{file} is signed by {project.owner.fingerprint}, and the owner's key that was given is "
            f"{owner.fingerprint}. Do not use the file; ask the owner by another way.",
        )


def _check_same_people(there: Project, given: Project, files: Files) -> None:
    """Refuse another owner or analyst: a file that was swapped on its way is signed, too."""
    for role in ("owner", "analyst"):
        known, new = getattr(there, role), getattr(given, role)
        if known != new:
            raise ExchangeError(
                "ALREADY_THERE",
                f"{files.root} has a project whose {role} is {known.fingerprint}; in the new file it is "
                f"{new.fingerprint}. Ask the owner by telephone which is right. For another project use a folder of "
                f"its own; if the {role} has a new key, remove {files.project} and join again.",
            )


def _check_anchor(folder: Folder, new: Anchor, file: Path | None) -> None:
    """Refuse another anchor than the party has shared with, and one that was sealed before the one that is there."""
    project = folder.project
    commitment = new.commitment(project)
    if folder.files.state.exists() and commitment != load_anchor(folder, project).commitment(project):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{folder.path} has shared with another anchor than the one in this file. If all parties are to share "
            "again with a new one, use a new folder with the same keys.",
        )
    kept = _commit.kept_sum(folder, project)
    if kept is not None and commitment != str(kept.facts["anchor_commitment"]):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{folder.path} has added up its rows by another anchor than the one in this file. If all parties are to "
            "share again, the owner raises the run, and takes new mask keys.",
        )
    try:
        known = load_anchor(folder, project)
    except ExchangeError as error:
        if error.code not in ("ANCHOR_MISSING", "PROJECT_HASH_MISMATCH", "STATE_DAMAGED"):
            raise
        return
    # An anchor that was never sealed is older than any that was.
    if commitment != known.commitment(project) and _when(new) < _when(known):
        raise ExchangeError(
            "ALREADY_THERE",
            f"{file} was sealed {new.sealed_at}, and the folder has an anchor that the owner sealed later, "
            f"{known.sealed_at}. Use that one; if the owner means the older, they seal it again.",
        )


def _when(anchor: Anchor) -> datetime:
    return datetime.fromisoformat(anchor.sealed_at) if anchor.sealed_at else datetime.min.replace(tzinfo=UTC)
