"""The anchor: made by the project's recipe, sealed for the parties, opened by them."""

from __future__ import annotations

import hmac
import math
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._typing import FloatArray
from ..bundle import KeyPair, arrays_to_bytes, bytes_to_arrays, canonical_json, pack, seal, unpack, unseal
from ..errors import ExchangeError
from ..table import (
    ColumnPlace,
    EncodedTable,
    NotNumericError,
    as_numbers,
    encode_table,
    encode_target,
    read_table,
)
from ._project import Project

if TYPE_CHECKING:
    from ..anchor import AnchorSampler


_SECRET_BYTES = 32
_SLACK = 3.0
_ROUNDING = 1e-9
"""The most that rows may lie outside of a range, in its widths: by the recipe "gaussian", and otherwise."""
_KIND = "datacollab.anchor"
_MEMBER = "anchor.safetensors"
_SEALED = "sealed.bin"
_COMMITMENT = b"datacollab anchor commitment 1\n"
_FORMS = {"rows": (2, ("f8",)), "secret": (1, ("i4",)), "target": (1, ("f8", "i8")), "target_text": (2, ("i4",))}
"""Dimensions and types of an anchor's arrays."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Anchor:
    """The rows that all parties obfuscate alike, known to all parties and never to the analyst."""

    rows: FloatArray
    """Shape (n_anchors, n_features), in the project's matrix: a generated row may lie between categories."""
    target: NDArray[Any] | None = None
    """Shape (n_labelled,), of the first rows; None if none has one."""
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(_SECRET_BYTES))
    """Key of the commitment, 32 bytes; drawn afresh for every anchor."""
    sealed_at: str = ""
    """Time of sealing by the owner, in ISO 8601; empty if it is not known.  The commitment does not depend on it."""

    @property
    def labelled_rows(self) -> FloatArray:
        """The rows that have a target, shape (n_labelled, n_features)."""
        if self.target is None:
            return self.rows[:0]
        return self.rows[: len(self.target)]

    @property
    def full_target(self) -> NDArray[Any] | None:
        """The targets if all rows have one; otherwise None."""
        return self.target if len(self.labelled_rows) == len(self.rows) else None

    def __repr__(self) -> str:
        words = "without targets" if self.target is None else "with targets"
        return f"Anchor({self.rows.shape[0]} rows, {self.rows.shape[1]} columns, {words})"

    def commitment(self, project: Project) -> str:
        """Return 64 hexadecimal digits for the analyst, equal if anchor and project are equal to the last bit.

        They are HMAC-SHA256 under the secret, so that nobody without it can test a guess of the rows.
        """
        arrays = {name: array for name, array in anchor_arrays(self).items() if name != "secret"}
        # A plain digest would let the analyst test guesses of the rows.
        keyed = hmac.new(self.secret, _COMMITMENT, sha256)
        shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        # Shapes first, so that no two sets of arrays have the same bytes.
        keyed.update(canonical_json({"project": project.digest, "arrays": shapes}) + b"\n")
        for name in sorted(arrays):
            keyed.update(arrays[name].tobytes())
        return keyed.hexdigest()


def anchor_to_bytes(anchor: Anchor) -> bytes:
    """Return the anchor for a party's own disk: in the clear, so the file must be readable by its owner alone."""
    facts = {"sealed": False, "sealed_at": anchor.sealed_at}
    return pack(_KIND, facts, {_MEMBER: arrays_to_bytes(anchor_arrays(anchor))})


def anchor_from_bytes(data: bytes) -> Anchor:
    """Read the bytes of `anchor_to_bytes`, or raise STATE_DAMAGED if a bit was changed, or they are something else."""
    what = "anchor.dcstate"
    try:
        bundle = unpack(data, kind=_KIND)
        if list(bundle.members) != [_MEMBER]:
            raise _no_anchor_error(what)
        anchor = anchor_from_arrays(bytes_to_arrays(bundle.members[_MEMBER], what=what), what=what)
        return replace(anchor, sealed_at=str(bundle.facts.get("sealed_at", "")))
    except ExchangeError as error:
        # An upgrade helps there, and not another file.
        if error.code == "FORMAT_TOO_NEW":
            raise
        raise ExchangeError(
            "STATE_DAMAGED",
            f"{what} is damaged, or not an anchor. Join again with the anchor file (`datacollab party join`).",
        ) from None


def anchor_arrays(anchor: Anchor) -> dict[str, NDArray[Any]]:
    """Return an anchor as little-endian arrays; text becomes code points."""
    arrays: dict[str, NDArray[Any]] = {
        "rows": np.ascontiguousarray(anchor.rows, dtype="<f8"),
        "secret": np.frombuffer(anchor.secret, dtype="<i4").copy(),
    }
    if (target := anchor.target) is None:
        return arrays
    if target.dtype.kind in "OU":
        text = np.ascontiguousarray(target.astype(np.str_)).astype("<U")
        return arrays | {"target_text": text.view("<i4").reshape(len(text), -1)}
    if target.dtype.kind == "f":
        return arrays | {"target": np.ascontiguousarray(target, dtype="<f8")}
    return arrays | {"target": np.ascontiguousarray(target, dtype="<i8")}


def anchor_from_arrays(arrays: dict[str, NDArray[Any]], *, what: str) -> Anchor:
    """Return the anchor of `anchor_arrays`, or refuse arrays that are missing or do not fit together."""
    _check_arrays(arrays, what)
    if (target := arrays.get("target_text")) is not None:
        # Surrogates are no characters; a text with one cannot be written.
        if ((target < 0) | (target > 0x10FFFF) | ((target >= 0xD800) & (target < 0xE000))).any():
            raise _no_anchor_error(what)
        target = np.ascontiguousarray(target, dtype="<i4").view(f"<U{target.shape[1]}").ravel()
    secret = arrays["secret"].astype("<i4").tobytes()
    return Anchor(rows=arrays["rows"], target=arrays.get("target", target), secret=secret)


def _check_arrays(arrays: dict[str, NDArray[Any]], what: str) -> None:
    """Refuse arrays of an anchor by their names, types, shapes and sizes."""
    targets = arrays.keys() - {"rows", "secret"}
    if arrays.keys() - targets != {"rows", "secret"} or not targets <= _FORMS.keys() or len(targets) > 1:
        raise _no_anchor_error(what)
    for name, array in arrays.items():
        ndim, types = _FORMS[name]
        has_form = array.ndim == ndim and array.dtype.str[1:] in types and 0 not in array.shape
        if not has_form or not np.isfinite(array).all():
            raise _no_anchor_error(what)
    # Lengths only once all arrays have one.
    if any(len(arrays[name]) > len(arrays["rows"]) for name in targets):
        raise _no_anchor_error(what)
    # A short secret could be guessed, and with it the rows.
    if arrays["secret"].nbytes != _SECRET_BYTES:
        raise _no_anchor_error(what)


def _no_anchor_error(what: str) -> ExchangeError:
    return ExchangeError(
        "BUNDLE_MALFORMED", f"{what} holds something else than an anchor's arrays. Have it sent again."
    )


_N_EXPECTED = 4000
"""Rows whose mean and spread stand for the recipe's own."""
_GENERATOR_BITS = 128
"""The operating system's randomness in the generator that draws anchors."""


@dataclass(frozen=True, kw_only=True)
class Guessing:
    """How hard an anchor is to guess, as level "ok" or "warning", bits of a row, and a sentence.

    The attacker has the public table, knows the recipe, and tests guesses against a share.
    """

    level: str
    bits: float
    sentence: str


def guessing(method: str, *, n_public: int | None = None, n_features: int = 1) -> Guessing:
    """Return the protection of an anchor by a recipe, or of "given" rows; `n_public` is None if it is not known yet.

    As many rows as the matrix has columns, and one, determine a linear map; another row tests a guess.  Bits are those
    of one row, because rows of a known table can be matched one after another.  "ok" means that an exhaustive search is
    hopeless, not that no computation succeeds.
    """
    of_table = math.log2(n_public or 1)
    if method == "given":
        sentence = "Anybody with the table has the anchor: keep it secret."
        return Guessing(level="warning", bits=0.0, sentence=sentence)
    if method == "sample":
        rows = f"{n_public or ''} rows".strip()
        sentence = (
            f"Do not tell the analyst which table the anchor is made of: each anchor row is one of the table's {rows}."
        )
        return Guessing(level="warning", bits=of_table, sentence=sentence)
    # The place between two rows of the table, or a number, is drawn with 53 bits.
    if method == "smote":
        bits = min(_GENERATOR_BITS, 53 + of_table)
        sentence = (
            f"Each row lies at a random place between two public rows, {bits:.0f} bits; the table gives the lines "
            "away, not the places."
        )
        return Guessing(level="ok", bits=bits, sentence=sentence)
    bits = float(min(_GENERATOR_BITS, 53 * n_features))
    return Guessing(
        level="ok", bits=bits, sentence=f"Each number is drawn anew, {bits:.0f} bits a row; no table gives it away."
    )


def make_anchor(project: Project, table: Any, *, where: str, random_state: int | None = None) -> Anchor:
    """Make the anchor from public rows, with a fresh secret.

    The anchor is made in the columns of the project's matrix, so that a row of SMOTE may lie between two categories.
    Uniform rows are drawn from the declared ranges.
    SMOTE scales numbers by their declared range, or the largest column alone would decide which rows are neighbours.

    Parameters
    ----------
    project : Project
    table : DataFrame, or what `table.read_table` reads
        Public rows.  If the table and the method have targets, the anchor has them too; rows with targets come first.
    where : str
        Name of the table in errors.
    random_state : int, optional
        For a repeatable anchor; the secret stays fresh.

    Raises
    ------
    ExchangeError, AnchorError
        If the rows do not fit the project, or the recipe cannot be followed, such as with too few public rows.
    """
    check_has_anchor(project)
    encoded = _encode_public(project, table, where)
    recipe = project.anchor
    # In widths of declared ranges, or the largest column alone would decide which rows are neighbours.
    low, high = _bounds(project)
    scale = np.ones(project.n_features)
    if recipe.method == "smote":
        scale = high - low
    # Here, as the commands that only read a project should start at once.
    from ..anchor import GaussianAnchor, SampleAnchor, SMOTEAnchor, UniformAnchor

    kind = project.task.kind if project.task.is_single else "auto"
    samplers: dict[str, AnchorSampler] = {
        "smote": SMOTEAnchor(recipe.n_rows, task=kind),
        "uniform": UniformAnchor(recipe.n_rows, low=low, high=high),
        "gaussian": GaussianAnchor(recipe.n_rows),
        "sample": SampleAnchor(recipe.n_rows),
    }
    X = encoded.X / scale
    known = encoded.labelled
    if encoded.target is None or known.all() or recipe.method in ("uniform", "gaussian"):
        # Targets of some rows only would be lost among made-up rows of all.
        y = encoded.target
        if not known.all():
            y = None
        rows, target = samplers[recipe.method].sample(X, y, random_state=random_state)
    elif recipe.method == "sample":
        rows, target = _sample_partly(recipe.n_rows, X, encoded, random_state)
    else:
        # Rows with a target, in their proportion, are interpolated between such rows alone.
        n_labelled = min(recipe.n_rows - 1, max(1, round(recipe.n_rows * known.mean())))
        of_labelled, target = SMOTEAnchor(n_labelled, task=kind).sample(
            X[known], encoded.target, random_state=random_state
        )
        others, _ = SMOTEAnchor(recipe.n_rows - n_labelled).sample(X, random_state=random_state)
        rows = np.vstack([of_labelled, others])
    return _check_fit(Anchor(rows=rows * scale, target=target), project, where)


def _sample_partly(
    n_rows: int, X: FloatArray, encoded: EncodedTable, random_state: int | None
) -> tuple[FloatArray, NDArray[Any] | None]:
    """Draw rows of a table that has targets of some, those with targets first; return these targets too."""
    from ..anchor import SampleAnchor

    rows, at = SampleAnchor(n_rows).sample(X, np.arange(len(X)), random_state=random_state)
    assert at is not None
    assert encoded.target is not None
    is_labelled = encoded.labelled[at]
    order = np.argsort(~is_labelled, kind="stable")
    place_of = np.cumsum(encoded.labelled) - 1
    target = encoded.target[place_of[at[order][: is_labelled.sum()]]]
    return rows[order], target if len(target) else None


def check_has_anchor(project: Project) -> None:
    """Refuse an anchor for a project that needs none."""
    if not project.has_anchor:
        raise ExchangeError(
            "ANCHOR_UNFIT",
            f"Project {project.name!r} needs no anchor: its statistics are sums over the table's own columns. Parties "
            "join with the project file alone.",
        )


def _encode_public(project: Project, table: Any, where: str) -> EncodedTable:
    """Encode public rows, which may lack a target."""
    table = read_table(table, schema=project)
    return encode_table(project, table, where=where, with_target=_has_target(project, table), partly=True)


def draw_expected_rows(project: Project) -> FloatArray | None:
    """Draw rows as an honest anchor has them, if the recipe draws from declared ranges; otherwise return None."""
    if project.anchor.method != "uniform":
        return None
    from ..anchor import UniformAnchor

    low, high = _bounds(project)
    return UniformAnchor(_N_EXPECTED, low=low, high=high).sample(random_state=0)[0]


def anchor_of_rows(project: Project, table: Any, *, where: str) -> Anchor:
    """Take the rows of a table, of the name `where`, as the anchor, with a fresh secret.

    The table has the columns of the project's matrix (`Project.feature_names`), which are taken as they are, or else
    the project's own columns.  Rows that do not fit the project raise an ExchangeError.
    """
    check_has_anchor(project)
    names = [str(name) for name in table.columns]
    # Columns that are numbers alone have one name in both; the project's rules then hold for all of them.
    has_own_columns = {column.name for column in project.columns} <= set(names)
    if has_own_columns or set(project.feature_names) - set(names):
        encoded = _encode_public(project, table, where)
        order = np.argsort(~encoded.labelled, kind="stable")
        return _check_fit(Anchor(rows=encoded.X[order], target=encoded.target), project, where)
    try:
        features = [as_numbers(table.iloc[:, names.index(name)]) for name in project.feature_names]
    except NotNumericError as error:
        raise _unfit(where, f"a column {error}; expected numbers") from None
    target = None
    if _has_target(project, table):
        (declared,) = project.task.targets()
        place = ColumnPlace(f"{where}: target {declared.name!r}")
        target, _ = encode_target(declared, table.iloc[:, names.index(declared.name)], place)
    return _check_fit(Anchor(rows=np.column_stack(features), target=target), project, where)


def _check_fit(anchor: Anchor, project: Project, what: str) -> Anchor:
    """Return an anchor that fits the project, with targets of the project's type, or refuse it."""
    n_rows = project.anchor.n_rows
    n_features = project.n_features
    if anchor.rows.shape != (n_rows, n_features):
        shape = f"{anchor.rows.shape[0]} rows in {anchor.rows.shape[-1]} columns"
        raise _unfit(what, f"{shape}; the project wants {n_rows} rows in {n_features}")
    if not np.isfinite(anchor.rows).all():
        raise _unfit(what, "entries are missing or infinite")
    # Also for anchors that came sealed: the owner is not trusted with this.
    _check_ranges(anchor.rows, project, what)
    if (target := anchor.target) is None:
        return anchor
    task = project.task
    if not task.is_single:
        raise _unfit(what, f"it has targets, and anchors of kind {task.kind!r} have none")
    if target.ndim != 1 or not 0 < len(target) <= n_rows:
        raise _unfit(what, "it has more targets than rows, or none")
    if task.kind == "regression":
        if target.dtype.kind not in "fi" or not np.isfinite(target).all():
            raise _unfit(what, "its targets are no finite numbers")
        return replace(anchor, target=target.astype(np.float64))
    classes = task.class_array
    if target.dtype.kind != classes.dtype.kind or not np.isin(target, classes).all():
        raise _unfit(what, "its targets are other classes than the project's")
    return replace(anchor, target=target.astype(classes.dtype))


def _check_ranges(rows: FloatArray, project: Project, what: str) -> None:
    """Refuse numbers outside of the declared ranges: a map fitted on far rows can single out any own row.

    Recipes that draw from a normal distribution may leave a range by three of its widths.
    """
    slack = _ROUNDING
    if project.anchor.method == "gaussian":
        slack = _SLACK
    for name, low, high, entries in zip(project.feature_names, *_bounds(project), rows.T, strict=True):
        outside = (entries < low - slack * (high - low)) | (entries > high + slack * (high - low))
        if outside.any():
            raise _unfit(
                what, f"in column {name!r} {outside.sum()} of {len(rows)} rows lie outside of {low:g} to {high:g}"
            )


def _has_target(project: Project, table: Any) -> bool:
    """Return whether anchor rows get targets; times to events and effects are of no use there."""
    return project.task.is_single and project.task.target in map(str, table.columns)


def _bounds(project: Project) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest number that rows can have, for each column of the matrix."""
    low = np.zeros(project.n_features)
    high = np.ones(project.n_features)
    for column, places in project.blocks(np.arange(project.n_features)):
        if column.minimum is not None and column.maximum is not None:
            low[places[0]] = column.minimum
            high[places[0]] = column.maximum
    return low, high


def _unfit(what: str, reason: str) -> ExchangeError:
    return ExchangeError(
        "ANCHOR_UNFIT",
        f"The anchor from {what} does not fit the project: {reason}. The project's owner has to make another.",
    )


def seal_anchor(anchor: Anchor, project: Project, key: KeyPair) -> bytes:
    """Seal an anchor to all parties of a project, signed by the owner's key, and return a `.dcanchor` file's bytes.

    An ExchangeError is raised if the key is not the owner's, or the anchor does not fit the project.
    """
    project.check_owner(key.public, "seals the anchor")
    # Parties would refuse it later; the owner can still make another.
    checked = _check_fit(anchor, project, "the owner")
    # For the parties alone: the analyst must never open it.
    sealed = seal(arrays_to_bytes(anchor_arrays(checked)), list(project.parties.values()), purpose=_purpose(project))
    # To the microsecond, so that of two anchors the later one is known.
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    facts = {"sealed": True, "sealed_at": now, "project": project.name, "project_digest": project.digest}
    return pack(_KIND, facts, {_SEALED: sealed}, key=key)


def open_anchor(path: Path, project: Project, key: KeyPair) -> Anchor:
    """Open a `.dcanchor` file with a party's key.

    An ExchangeError is raised if the file is not the owner's, belongs to another version of the project, was changed,
    is not for this key, or holds an anchor that does not fit the project.
    """
    check_has_anchor(project)
    bundle = unpack(path, kind=_KIND, signed_by=project.owner)
    # Columns or members may differ, and with them the meaning of each number.
    if bundle.facts.get("project_digest") != project.digest:
        raise ExchangeError(
            "PROJECT_HASH_MISMATCH",
            f"{path} was sealed for another version of project {project.name!r} than {project.fingerprint}. Compare "
            "`datacollab project show`; the owner seals the anchor again after each change of the project.",
        )
    if list(bundle.members) != [_SEALED]:
        raise ExchangeError("BUNDLE_MALFORMED", f"{path} holds no sealed anchor. Have it sent again.")
    # The purpose binds the seal to this project: no other anchor can stand in.
    data = unseal(bundle.members[_SEALED], key, purpose=_purpose(project))
    anchor = anchor_from_arrays(bytes_to_arrays(data, what=str(path)), what=str(path))
    sealed_at: Any = bundle.facts.get("sealed_at")
    try:
        if datetime.fromisoformat(sealed_at).utcoffset() != timedelta(0):
            raise ValueError
    except (TypeError, ValueError):
        raise ExchangeError(
            "BUNDLE_MALFORMED", f"{path} does not say when the anchor was sealed. Have it sent again."
        ) from None
    return replace(_check_fit(anchor, project, str(path)), sealed_at=str(sealed_at))


def _purpose(project: Project) -> str:
    return f"datacollab anchor of project {project.digest}"
