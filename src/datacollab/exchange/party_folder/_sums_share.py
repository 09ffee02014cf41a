"""A party's part of a sum: from its rows to the numbers that its mask key hides; nothing leaves here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ...anchor import find_private_rows
from ...bundle import KeyPair
from ...errors import ExchangeError
from ...sums import MaskKey, SumsPlan
from ..ledger import Ledger
from ..project import Anchor, EncodedTable, Project
from ..sums import Told, fewest_rows, plan_of
from ._files import Files, OwnFiles
from ._mask_key import load_mask_key
from ._policy import Policy
from ._release_check import private_rows_in_anchor
from ._sums_map import ProjectMap, project_map
from ._sums_summary import SumsSummary, entities_in, or_none, sentences_of

__all__ = ["PreparedSum", "ledger_of", "prepare_sum"]

_LEDGER_KEY = b"datacollab ledger key 1\n"
_BATCH_ROWS = 4096
_OVERHEAD_BYTES = 3000
"""About what a message takes beside its numbers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedSum:
    """All that a message is made of, once it is approved.

    Attributes
    ----------
    plan : SumsPlan
    told : Told
        What its file says on the outside.
    part : ndarray of shape (n_numbers,)
        The party's sums; as sensitive as its rows.
    rows : ndarray of shape (n_rows,)
        Fingerprints of the party's rows, for the ledger.
    mask_key : MaskKey
    summary : SumsSummary
    reasons : list of ExchangeError
        Why it may not leave; empty if it may.
    """

    plan: SumsPlan
    told: Told
    part: FloatArray = field(repr=False)
    rows: NDArray[np.uint64] = field(repr=False)
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

    Raises
    ------
    ExchangeError
        KEY_MISSING or NOT_A_MEMBER if the folder does not hold the mask key that the project names; POLICY_INVALID,
        STATE_DAMAGED.
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
    part, hashed, in_anchor = np.zeros(plan.statistic.n_numbers), [], set[int]()
    for encoded in batches:
        assert encoded.target is not None
        part += _part(plan, common, encoded.X, encoded.target)
        hashed.append(ledger.fingerprints(encoded.X))
        in_anchor.update(find_private_rows(anchor.rows, encoded.X).tolist() if encoded.n_rows else ())
    rows, adjusted = np.concatenate(hashed), encoded.adjusted
    n_public = 0
    if project.sharing.labelled_by == name and anchor.target is not None:
        part, n_public = part + _part(plan, common, anchor.rows, anchor.target), len(anchor.rows)
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
        sentences=sentences_of(project),
        adjusted=adjusted.to_dict(),
    )
    created = datetime.now(UTC).isoformat(timespec="seconds")
    told = Told(
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
        mask_key=mask_key,
        summary=summary,
        reasons=[
            *_too_few_rows(name, len(rows), policy, project),
            *private_rows_in_anchor(name, len(in_anchor), len(anchor.rows), policy),
            *_in_the_ledger(ledger, rows, plan),
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


def _in_the_ledger(ledger: Ledger, rows: NDArray[np.uint64], plan: SumsPlan) -> list[ExchangeError]:
    try:
        ledger.check(rows, context=plan.agreed.context.hex())
    except ExchangeError as error:
        return [error]
    return []


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
