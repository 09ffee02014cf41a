"""A party's folder, with the steps that a party takes in it; a message of rows is made and released here."""

from __future__ import annotations

import os
import secrets
import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...agreement import Anchor, Project, anchor_to_bytes, load_project, open_anchor, read_project, usual_components
from ...anchor import anchor_fit, equal_rows
from ...bundle import PublicKey, pack, seal, unpack, write_atomically
from ...errors import AgreementError, ExchangeError, ObfuscationError, PrivateRowsWarning, SuppressedRowsWarning
from ...party import UNDEFENDED, Party, SharingPlan
from ...party._release import RowDigests
from ...share import SHARE_KIND, Share, share_contents
from ...table import EncodedTable
from . import _folder, _heard, _install, _predict, _sums
from ._folder import (
    ANCHOR,
    SEALED,
    Files,
    Folder,
    OwnRows,
    check_not_forgotten,
    check_unchanged,
    commit_share,
    encoded,
    kept_sum,
    last_share,
    load_anchor,
    locked,
    settle,
    state_of,
)
from ._own_model import own_model_words
from ._policy import Policy, approved, crafted_anchor, default_policy_text, refuse
from ._release import (
    FIGURES,
    ReleaseSummary,
    not_row_wise,
    reasons_against,
    reasons_before,
    release_summary,
    risk_figures,
    undefended_rows,
)

_OF_ROWS = ("obfuscator", "n_components", "preset", "epsilon", "group_size", "noise", "fit_on_anchor")
"""Options of `share` that are for rows alone."""
_LOGGED = ("n_rows", "n_components", "n_anchors", "obfuscator", "row_order", "adjusted")
"""Figures of a share that the log has, besides the results of attacks."""
_OVERHEAD_BYTES = 3000
"""Signatures, seals and facts of a file."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A share that has not left, and what speaks against it.

    `order` is the position in the table of each row that would leave, and `own` the rows themselves: both stay.
    `message` are facts and members of the share alone, which are packed and sealed only when it leaves, and `basis`
    are digests of the project, the policy and the anchor.
    """

    party: Party
    share: Share
    order: NDArray[np.intp] = field(repr=False)
    plan: SharingPlan
    summary: ReleaseSummary
    reasons: list[ExchangeError]
    own: OwnRows = field(repr=False)
    message: tuple[dict[str, Any], dict[str, bytes]] = field(default_factory=lambda: ({}, {}), repr=False)
    basis: tuple[str, ...] = field(default=(), repr=False)


def prepare(folder: Folder, table: Any, *, where: str | None = None, **options: Any) -> Prepared | _sums.PreparedSum:
    """Do all that `share` does but let it leave.

    Table and `where` are as in `encoded`, and options as for `datacollab.party.SharingPlan.of`, with the default
    "groups" on standardised columns.  Others are of the attacks: `audit`, False for none, `time_budget`, seconds after
    which none is begun, and `progress`, called with a line before each and the part that is done.

    Raises
    ------
    ExchangeError, ObfuscationError
        Of the kinds "schema", "state" and "policy"; or if the obfuscator cannot be fitted.
    ValueError, AgreementError
        If options are unknown, exclude one another, or are for rows and the project shares sums.
    """
    settle(folder)
    if folder.project.sharing is not None:
        _check_no_options_of_rows(folder.project, options)
        return _sums.prepare(folder, table, where=where)
    return _prepared(folder, folder.policy, folder.anchor, table, where, options, last_share(folder))


def share(
    folder: Folder,
    table: Any,
    *,
    approve: Callable[[Any], str | None],
    again: bool = False,
    undefended: bool = False,
    withdrawals: Sequence[Path] = (),
    without: Sequence[str] = (),
    heard: Sequence[str] = (),
    where: str | None = None,
    prepared: Prepared | None = None,
    **options: Any,
) -> Path:
    """Obfuscate the table, have it approved, and return the share's file in the outbox; or add up rows under masks.

    Of sums, a message that was released is put into the outbox again, whatever the table: the same bytes.

    Parameters
    ----------
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
    heard : sequence of str
        Fingerprints that other institutions read out, for `confirm`: two are needed, once for the same parties.
    prepared : Prepared, optional
        What `prepare` gave, if it is to leave as it is; no secret is drawn anew.  For rows alone.
    table, where, **options
        As in `prepare`.

    Raises
    ------
    ExchangeError
        DEADLINE_PASSED, ALREADY_SHARED, FORGOTTEN, UNDEFENDED, NOT_APPROVED, NOT_CONFIRMED, STATE_UNSUPPORTED,
        PROJECT_HASH_MISMATCH, BUSY; or the errors and reasons of `prepare`.  Nothing left the party.
    """
    project = folder.project
    if project.sharing is not None:
        _check_no_options_of_rows(project, options)
        left: dict[str, Any] = {"withdrawals": withdrawals, "without": without}
        return _sums.share(folder, table, approve=approve, where=where, heard=heard, **left)
    project.check_deadline(datetime.now(UTC).date())
    if options.get("preset") == UNDEFENDED and not undefended:
        raise undefended_rows(folder.name, options.get("obfuscator") or "pca")
    again = again and options.get("epsilon") is None  # A promise is for one draw.
    with locked(folder):
        earlier = _replaceable(folder, again)
    policy = folder.policy
    anchor = folder.anchor
    if prepared is None:
        prepared = _prepared(folder, policy, anchor, table, where, options, earlier)
    elif prepared.basis != _basis(project, policy, anchor):
        raise ExchangeError(
            "NOT_APPROVED",
            f"Party {folder.name!r}: the project, the policy or the anchor changed after this share was looked at. "
            "Look at what would leave once more.",
        )
    refuse(prepared.reasons)
    state, members = state_of(prepared.party, prepared.share, anchor, prepared.own)
    approved_by = approved(policy, approve, prepared.summary)
    # Attacks and approvers take their time, in which other commands may work here.
    with locked(folder):
        check_unchanged(folder, anchor)
        supersedes = _digest_of(_replaceable(folder, again))
        data = _packed(folder, prepared, anchor, supersedes, approved_by)
        share_digest = unpack(data, signed_by=folder.key.public).digest
        entry = {
            "digest": share_digest,
            "bytes": len(data),
            "approved_by": approved_by,
            "supersedes": supersedes,
            "project_digest": project.digest,
            "policy": policy.digest,
            # The analyst knows the log's head before this entry, and could test guesses on the next one.
            "nonce": secrets.token_hex(16),
            **{name: getattr(prepared.summary, name) for name in _LOGGED},
            "defences": list(prepared.summary.defences),
        }
        if (risk := prepared.summary.risk) is not None:
            found = {name: risk.of(name) for name in FIGURES}
            entry |= {name: value for name, value in found.items() if value is not None}
        state |= {"share_digest": share_digest, "project_digest": project.digest, "entry": entry}
        return commit_share(folder, data, facts=state, members=members)


def shared(folder: Folder) -> str | None:
    """Return the identity of the last share in this project, also after a command was interrupted."""
    with locked(folder):
        return _digest_of(last_share(folder))


class PartyFolder(Folder):
    """A party's folder of one project, on its own disk.

    Holds its keys, the anchor and the secret map f_k: as sensitive as the raw table.  Only files in the outbox may
    leave. A command that is killed at any moment leaves the old or the new state; see `_folder`.

    The passphrase is that of the keys, the anchor and f_k, if they are encrypted.
    """

    def __init__(self, path: Path, *, passphrase: str | None = None) -> None:
        if not Files(Path(path)).project.is_file():
            if not (Path(path) / "keys.json").is_file():
                raise ExchangeError(
                    "KEY_MISSING",
                    f"{path} has no keys and no project. Run `datacollab keys new -C {shlex.quote(str(path))}` first, "
                    "and send public.key to the project's owner, who sends the project.",
                )
            raise ExchangeError(
                "FOLDER_MISSING",
                f"{path} is no party's folder: there is no project.toml. Run `datacollab party join project.toml "
                "anchor.dcanchor -C FOLDER` first.",
            )
        super().__init__(path, passphrase=passphrase, project=load_project(Files(Path(path)).project))
        self.name  # noqa: B018 - refuses a key that is no party's

    encoded = encoded
    prepare = prepare
    share = share
    shared = shared
    shared_before = _sums.shared_before
    own_model_words = own_model_words
    confirm = _heard.confirm
    check_confirmed = _heard.check_confirmed
    n_unconfirmed = _heard.n_unconfirmed
    withdraw = _sums.withdraw
    install = _install.install
    distil = _install.distil
    forget = _install.forget
    predict_batches = _predict.predict_batches
    predict = _predict.predict
    threshold = _predict.threshold
    evaluate = _predict.evaluate
    explain = _predict.explain
    record = _folder.record

    @property
    def sentence(self) -> str:
        """What collaboration brought to this party, or why that cannot be said."""
        return _install.at_home(self).sentence

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

        The anchor is sealed to this party, among others; without it, join again when it has come.  `owner` is as in
        `read_project`; with the passphrase of the keys, the anchor and f_k are encrypted, too.

        Raises
        ------
        ExchangeError
            SIGNATURE_INVALID, if the project is another owner's; ALREADY_THERE, if the folder belongs to a project of
            another owner or analyst, has shared in another project, or with another anchor; NOT_A_MEMBER.
        """
        project, verified = read_project(project_file, owner=owner)
        folder = Folder(path, passphrase=passphrase, project=project)
        files, name = folder.files, folder.name
        anchor = None if anchor_file is None else open_anchor(anchor_file, project, folder.key)
        with locked(folder):
            if files.project.exists():
                there = load_project(files.project)
                for role in ("owner", "analyst"):  # of a file that was swapped on its way, which is signed, too
                    known, new = getattr(there, role), getattr(project, role)
                    if known != new:
                        raise ExchangeError(
                            "ALREADY_THERE",
                            f"{files.root} has a project whose {role} is {known.fingerprint}; in the new file it is "
                            f"{new.fingerprint}. Ask the owner by telephone which is right. For another project use a "
                            f"folder of its own; if the {role} has a new key, remove {files.project} and join again.",
                        )
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
                kind = project.task.target_kind if project.sharing is None else None
                write_atomically(files.policy, default_policy_text(kind).encode(), mode=0o600)
            if anchor is not None:
                folder.write(files.anchor, {"project_digest": project.digest}, {ANCHOR: anchor_to_bytes(anchor)})
            write_atomically(files.project, verified)
            folder.log.append(
                "join", project=project.name, project_digest=project.digest, party=name, anchor=anchor is not None
            )
        return cls(path, passphrase=passphrase)

    def __repr__(self) -> str:
        return f"PartyFolder({os.fspath(self.path)!r}, party={self.name!r}, project={self.project.name!r})"


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
    kept = kept_sum(folder, project)
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


def _check_no_options_of_rows(project: Project, options: dict[str, Any]) -> None:
    if meant := sorted(name for name in _OF_ROWS if options.get(name) not in (None, False)):
        raise AgreementError(f"Project {project.name!r} shares sums, which have no {', '.join(meant)}. Leave that out.")


def plan_of(project: Project, policy: Policy, n_rows: int, options: dict[str, Any]) -> SharingPlan:
    """Complete options by project, policy and the size of the table."""
    task = project.task
    largest = max(1, min(project.n_features, project.max_components, policy.max_components, n_rows - 2))
    chosen = {
        "n_components": min(largest, usual_components(project.n_free, task)),
        "standardize": True,
        **{name: value for name, value in options.items() if value is not None},
    }
    return SharingPlan.of(
        **chosen,
        is_regression=task.kind == "regression",
        target_kind=task.target_kind,
        time_step=task.time_step,
        largest=largest,
    )


def _prepared(
    folder: Folder,
    policy: Policy,
    anchor: Anchor,
    table: Any,
    where: str | None,
    options: dict[str, Any],
    earlier: dict[str, Any] | None,
) -> Prepared:
    project, rows = folder.project, encoded(folder, table, where=where)
    attacks = {name: options[name] for name in ("audit", "time_budget", "progress") if name in options}
    plan = plan_of(project, policy, rows.n_rows, {name: options[name] for name in options if name not in attacks})
    prepared = prepare_rows(project, policy, folder.name, rows, anchor, plan, **attacks)
    facts, members = share_contents(prepared.share)
    size = sum(map(len, members.values())) + _OVERHEAD_BYTES
    date = None if earlier is None else earlier["time"][:10]
    summary = replace(prepared.summary, n_bytes=size, earlier_share=date)
    return replace(prepared, summary=summary, message=(facts, members), basis=_basis(project, policy, anchor))


def _basis(project: Project, policy: Policy, anchor: Anchor) -> tuple[str, ...]:
    return project.digest, policy.digest, anchor.commitment(project)


def prepare_rows(
    project: Project,
    policy: Policy,
    name: str,
    encoded: EncodedTable,
    anchor: Anchor,
    plan: SharingPlan,
    *,
    audit: bool = True,
    time_budget: float | None = None,
    progress: Callable[[str, float | None], None] | None = None,
) -> Prepared:
    """Obfuscate by a plan, attack the result, and compare it with policy and project.  Nothing is written.

    With a promise, rows that equal an anchor row are left out one by one, and attacks are made on another draw than the
    one that would leave: they inform, and decide nothing.  Nor is the anchor compared with own rows.
    """
    assert encoded.target is not None
    taken = np.arange(encoded.n_rows)
    if plan.has_promise:
        taken = np.flatnonzero(~RowDigests(anchor.rows).are_in(encoded.X))
    X, y = encoded.X[taken], encoded.target[taken]
    equal = equal_rows(anchor.rows, X)
    try:
        with warnings.catch_warnings():
            # The summary says both.
            warnings.simplefilter("ignore", SuppressedRowsWarning)
            warnings.simplefilter("ignore", PrivateRowsWarning)
            party = plan.party(name, anchor.rows, shuffle=policy.shuffle).fit(X, y)
            share, order = party.share_with_order(anchor.rows, anchor.full_target)
    except ObfuscationError:
        for reason in reasons_before(name, plan, policy, project, len(X), len(anchor.rows), equal):
            raise reason from None
        raise
    risk = None
    alone = list(not_row_wise(party, X if plan.fit_on_anchor and not plan.has_promise else anchor.rows))
    if audit and policy.audit != "off":
        attacked = plan.party(name, anchor.rows, shuffle=policy.shuffle).fit(X, y) if plan.has_promise else party
        risk = risk_figures(
            attacked, X, anchor.rows, y=y, anchor_target=anchor.full_target, time_budget=time_budget, progress=progress
        )
    summary = release_summary(project, policy, plan, party, share, encoded, anchor, risk, equal)
    order = taken[order]
    return Prepared(
        party=party,
        share=share,
        order=order,
        plan=plan,
        summary=summary,
        reasons=[
            *reasons_against(summary, policy, project),
            *([] if plan.has_promise else crafted_anchor(name, anchor_fit(anchor.rows, X), policy)),
            *alone,
        ],
        own=OwnRows(
            X=encoded.X, target=encoded.target, order=order if share.one_to_one else None, n_shared=len(share.target)
        ),
    )


def _packed(folder: Folder, prepared: Prepared, anchor: Anchor, supersedes: str | None, approved_by: str) -> bytes:
    """Return the file; the folder must be locked."""
    project, (facts, members) = folder.project, prepared.message
    facts = facts | {"task": project.task.kind, "project": project.name, "project_digest": project.digest}
    if project.seal_shares:
        inner, purpose = pack(SHARE_KIND, facts, members), f"share of {folder.name} in {project.digest}"
        members = {SEALED: seal(inner, [project.analyst], purpose=purpose)}
        facts.pop("target", None)  # names of the targets are for the analyst, like the targets
    facts |= {
        "party": folder.name,
        "anchor_commitment": anchor.commitment(project),
        "row_order": prepared.summary.row_order,
        "supersedes": supersedes,
        "log_head": folder.log.head,
        "approved_by": approved_by,
    }
    return pack(SHARE_KIND, facts, members, key=folder.key)


def _replaceable(folder: Folder, again: bool) -> dict[str, Any] | None:
    """Return the last share; refuse if there is one, unless again, and if its map was forgotten."""
    check_not_forgotten(folder)
    last, file = last_share(folder), folder.files.share(folder.name)
    if last is None or again:
        return last
    found = "has shared already"
    if file.exists():
        found += f": {file}. Send that file."
    else:
        found += f", but {file} is not there any more. If the analyst has it, there is nothing to do."
    if not folder.files.state.exists():
        found += f" {folder.files.state} is lost, without which no model can be used: restore it from a backup."
    raise ExchangeError(
        "ALREADY_SHARED",
        f"Party {folder.name!r} {found} A second share of the same rows tells the analyst more; --again makes one "
        "all the same, but none with an epsilon, which is promised for one draw alone.",
    )


def _digest_of(share: dict[str, Any] | None) -> str | None:
    return None if share is None else str(share["facts"]["digest"])
