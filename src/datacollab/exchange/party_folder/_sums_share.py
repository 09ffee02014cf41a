"""A party's part of a sum: from its rows to the numbers that its mask key hides; nothing leaves here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...anchor import anchor_fit, find_private_rows
from ...bundle import KeyPair
from ...errors import ExchangeError
from ...sums import MaskKey, SumsPlan, measured_membership
from ..ledger import Ledger
from ..project import Anchor, EncodedTable, Project, declared_alike
from ..sums import SumsFacts, Withdrawal, fewest_rows, plan_of
from ._files import Files, OwnFiles
from ._mask_key import load_mask_key
from ._policy import Policy
from ._release_check import crafted_anchor, private_rows_in_anchor
from ._sums_map import ProjectMap, project_map
from ._sums_summary import SumsSummary, entities_in, or_none, others_in, sentences_of

__all__ = ["PreparedSum", "ledger_of", "prepare_sum"]

_LEDGER_KEY = b"datacollab ledger key 1\n"
_BATCH_ROWS = 4096
_LOOKED_AT = 1000
"""Rows of each batch that the anchor is compared with."""
_OVERHEAD_BYTES = 3000
"""About what a message takes beside its numbers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedSum:
    """All that a message is made of, once it is approved.

    Attributes
    ----------
    plan : SumsPlan
    told : SumsFacts
        What its file says on the outside.
    part : ndarray of shape (n_numbers,)
        The party's sums; as sensitive as its rows.
    rows : ndarray of shape (n_rows,)
        Fingerprints of the party's rows, for the ledger.
    void : frozenset of str
        Agreements that a party has left, so that their totals are never made.
    mask_key : MaskKey
    summary : SumsSummary
    reasons : list of ExchangeError
        Why it may not leave; empty if it may.
    """

    plan: SumsPlan
    told: SumsFacts
    part: FloatArray = field(repr=False)
    rows: NDArray[np.uint64] = field(repr=False)
    void: frozenset[str]
    mask_key: MaskKey = field(repr=False)
    summary: SumsSummary
    reasons: list[ExchangeError]


def ledger_of(files: Files, policy: Policy, key: KeyPair) -> Ledger:
    """Return the ledger of the institution: in the folder that the policy names, or else beside the keys.

    If the file of keys is a link, the ledger lies beside the file that it leads to.

    Raises
    ------
    ExchangeError
        POLICY_INVALID if the folder is the party's own; STATE_DAMAGED.
    """
    folder = files.root / policy.ledger if policy.ledger else files.keys.resolve().parent / "ledger"
    if folder.resolve() == files.root.resolve():
        raise ExchangeError(
            "POLICY_INVALID",
            f"Policy {files.policy.name}: ledger is the party's own folder. Name another folder, best one for all "
            "projects of the institution.",
        )
    return Ledger(folder / "ledger.json", key=sha256(key.sign(_LEDGER_KEY)).digest())


def prepare_sum(
    project: Project,
    policy: Policy,
    name: str,
    batches: Iterable[EncodedTable],
    anchor: Anchor,
    files: Files,
    own: OwnFiles,
    *,
    withdrawals: Sequence[Withdrawal] = (),
    without: Sequence[str] = (),
) -> PreparedSum:
    """Add up a party's rows in the common map, and say what would leave.

    Parameters
    ----------
    project : Project
    policy : Policy
    name : str
        The party's.
    batches : iterable of EncodedTable
        Its rows, with targets; at least one batch.  Each is read, added up and let go.
    anchor : Anchor
    files : Files
    own : OwnFiles
    withdrawals : sequence of Withdrawal
        Of parties that left an earlier run over these rows.
    without : sequence of str
        Parties that left one and gave no withdrawal.

    Raises
    ------
    ExchangeError
        KEY_MISSING or NOT_A_MEMBER if the folder does not hold the mask key that the project names, or a withdrawal is
        of nobody who left; POLICY_INVALID, STATE_DAMAGED.
    AnchorError
        If no common map can be made of the anchor.
    """
    assert project.sharing is not None
    mask_key = _mask_key(project, name, files, own)
    common = project_map(project, anchor)
    commitment = anchor.commitment(project)
    plan = plan_of(project, anchor_commitment=commitment, n_components=common.n_components)
    if plan.roster[name] != mask_key.public:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"Party {name!r}: the mask key in {files.mask} is not the one that project {project.name!r} names. Send "
            "public.key to the project's owner, who writes its third line into the project and signs it again.",
        )
    ledger = ledger_of(files, policy, own.key)
    part, hashed, in_anchor, some = np.zeros(plan.statistic.n_numbers), [], set[int](), []
    for encoded in batches:
        assert encoded.target is not None
        part += _part(plan, common, encoded.X, encoded.target)
        hashed.append(ledger.fingerprints(encoded.X))
        some.append(encoded.X[:: -(-encoded.n_rows // _LOOKED_AT) or 1])
        in_anchor.update(find_private_rows(anchor.rows, encoded.X).tolist() if encoded.n_rows else ())
    rows, adjusted = np.concatenate(hashed), encoded.adjusted
    n_public = 0
    if project.sharing.labelled_by == name and anchor.target is not None:
        part, n_public = part + _part(plan, common, anchor.rows, anchor.target), len(anchor.rows)
    void, of_left = _left(ledger, project, withdrawals, without)
    n_numbers = len(part)
    summary = SumsSummary(
        party=name,
        project=project.name,
        analyst=project.analyst.fingerprint,
        n_rows=len(rows),
        n_public=n_public,
        n_components=common.n_components,
        n_numbers=n_numbers,
        n_bytes=8 * (n_numbers + 1) + _OVERHEAD_BYTES,
        noise=plan.noise,
        epsilon=project.sharing.epsilon,
        noise_before=or_none(ledger.noise_left(rows)),
        n_parties=len(project.parties),
        n_entities=entities_in(project),
        others=others_in(project, name),
        sentences=(*sentences_of(project), *of_left),
        n_rows_together=len(rows) + (len(project.parties) - 1) * fewest_rows(project),
        measured=measured_membership(alike=declared_alike(project.columns)),
        adjusted=adjusted.to_dict(),
    )
    created = datetime.now(UTC).isoformat(timespec="seconds")
    told = SumsFacts(
        project_digest=project.digest,
        anchor_commitment=commitment,
        n_components=common.n_components,
        created=created,
    )
    return PreparedSum(
        plan=plan,
        told=told,
        part=part,
        rows=rows,
        void=void,
        mask_key=mask_key,
        summary=summary,
        reasons=[
            *_too_few_rows(name, len(rows), policy, project),
            *private_rows_in_anchor(name, len(in_anchor), len(anchor.rows), policy),
            *crafted_anchor(name, anchor_fit(anchor.rows, np.vstack(some)) if len(rows) else None),
            *_in_the_ledger(ledger, rows, plan, project, void),
        ],
    )


def _part(plan: SumsPlan, common: ProjectMap, X: FloatArray, target: np.ndarray) -> FloatArray:
    """Sums over batches of rows: the mapped rows have many more columns than the matrix."""
    parts = (
        plan.statistic.part(common.transform(X[start : start + _BATCH_ROWS]), target[start : start + _BATCH_ROWS])
        for start in range(0, len(X), _BATCH_ROWS)
    )
    return np.asarray(sum(parts, np.zeros(plan.statistic.n_numbers)))


def _mask_key(project: Project, name: str, files: Files, own: OwnFiles) -> MaskKey:
    mask_key = load_mask_key(files, own)
    if mask_key is None:
        raise ExchangeError(
            "KEY_MISSING",
            f"Party {name!r}: {files.root} holds no unused mask key. If it has shared, send the file in the outbox. "
            "For a new run make one with `datacollab keys mask`, and send public.key to the owner of project "
            f"{project.name!r}.",
        )
    return mask_key


def _too_few_rows(name: str, n_rows: int, policy: Policy, project: Project) -> list[ExchangeError]:
    least = max(fewest_rows(project), policy.min_rows)
    if n_rows >= least:
        return []
    return [
        ExchangeError(
            "TOO_FEW_ROWS",
            f"Party {name!r} would add {n_rows} rows; at least {least} are wanted, or its part hides nobody. Take more "
            "rows, or have the owner leave the party out.",
        )
    ]


def _in_the_ledger(
    ledger: Ledger, rows: NDArray[np.uint64], plan: SumsPlan, project: Project, void: frozenset[str]
) -> list[ExchangeError]:
    try:
        ledger.check(rows, context=plan.agreed.context.hex(), agreement=project.digest, void=void)
    except ExchangeError as error:
        return [error]
    return []


def _left(
    ledger: Ledger, project: Project, withdrawals: Sequence[Withdrawal], without: Sequence[str]
) -> tuple[frozenset[str], list[str]]:
    """Return the agreements that all missing parties have left, and what the approver has to know of that."""
    here = {key.text for key in project.parties.values()}
    void, used, sentences = set[str](), set[object](), dict[str, str]()
    for entry in ledger.entries:
        gone = {name: key for name, key in entry.parties.items() if key not in here}
        said = {
            name: each
            for name, key in gone.items()
            for each in withdrawals
            if (each.project_digest, each.signer) == (entry.agreement, key)
        }
        used.update(said.values(), gone.keys() & set(without))
        if gone and gone.keys() <= {*said, *without}:
            void.add(entry.agreement)
            sentences |= {name: _of_left(name, said.get(name)) for name in gone}
    unused = [each.party for each in withdrawals if each not in used] + [each for each in without if each not in used]
    if unused:
        raise ExchangeError(
            "NOT_A_MEMBER",
            f"Project {project.name!r}: {unused} left no earlier run into which these rows went, or are in this one "
            "again. Leave the withdrawal or the name out.",
        )
    return frozenset(void), list(sentences.values())


def _of_left(name: str, said: Withdrawal | None) -> str:
    if said is not None and not said.had_shared:
        return f"Party {name} left an earlier run over these rows before it shared: no total of it can be made."
    who = "says that it shared before it left" if said is not None else "gave no withdrawal"
    return (
        f"Party {name} left an earlier run over these rows and {who}. If its file arrived, the totals of both runs "
        f"together tell what {name} added."
    )


def made_folder(path: Path) -> None:
    """Make the folder of a ledger, closed to others, if there is none.

    Raises
    ------
    ExchangeError
        POLICY_INVALID if its own folder is missing.
    """
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except (FileNotFoundError, FileExistsError, NotADirectoryError):
        raise ExchangeError(
            "POLICY_INVALID", f"The ledger's folder {path} cannot be made. Make it, or name another in policy.toml."
        ) from None
