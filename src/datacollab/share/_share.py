"""The message of a party that shares rows, its targets among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import sklearn
from numpy.typing import ArrayLike, NDArray

from .._notebooks import card, chain, table
from .._validation import FloatArray, PartyName, check_representation, check_single_targets, count_missing
from .._version import __version__
from ..bundle import Bundle, SignedFile, arrays_to_bytes, bytes_to_arrays, now
from ..errors import AgreementError, ExchangeError, RepresentationError, ShareError
from ..targets import TargetKind, named_target, target_kind

_OF_ANCHOR = "anchor_"

_STORED = {
    "bool": np.bool_,
    "float16": np.float32,
    "float32": np.float32,
    "float64": np.float64,
    "int8": np.int32,
    "int16": np.int32,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.int32,
    "uint16": np.int32,
    "uint32": np.int64,
}
"""Types of numbers, and a type that stores each without loss."""

_CHARACTER = np.dtype("U1").itemsize
_TEXTS = ("str", "object")
_MOST_TEXT = 200
"""Characters of a class: NumPy gives the room of the longest to every row."""
_MOST_BYTES = 2**30
"""The most bytes of texts, one for each row."""


def encode_targets(
    party: PartyName, target: NDArray[Any], anchor_target: NDArray[Any] | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return targets as facts and arrays that a bundle can hold; texts become codes of classes, fields an array each.

    It raises SHARE_MALFORMED for targets that are neither texts nor numbers.
    """
    kind = target_kind(target)
    if kind is not TargetKind.SINGLE:
        fields = {name: target[name] for name in target.dtype.names or ()}
        if anchor_target is not None:
            fields |= {f"{_OF_ANCHOR}{name}": anchor_target[name] for name in anchor_target.dtype.names or ()}
        return {"kind": kind.value}, {name: np.ascontiguousarray(values) for name, values in fields.items()}
    targets = {"target": target}
    if anchor_target is not None:
        targets[f"{_OF_ANCHOR}target"] = anchor_target
    dtype = _dtype_name(target)
    if dtype is None or any(_dtype_name(values) != dtype for values in targets.values()):
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"Party {party!r}: targets must all be texts or all be numbers of one type; got "
            f"{[str(values.dtype) for values in targets.values()]!r}. Convert them, and share again.",
        )
    if dtype not in _TEXTS:
        return {"dtype": dtype}, {name: values.astype(_STORED[dtype]) for name, values in targets.items()}
    # One list of classes for rows and anchor, so that equal texts have one code.
    classes = np.unique(np.concatenate([values.astype(str) for values in targets.values()]))
    # A long text is no class, and may be a note on a person.
    if classes.dtype.itemsize // _CHARACTER > _MOST_TEXT:
        raise ExchangeError(
            "SHARE_MALFORMED",
            f"Party {party!r}: a class has a name of more than {_MOST_TEXT} characters. Shorten it, and share again.",
        )
    codes = {name: np.searchsorted(classes, values.astype(str)).astype(np.int64) for name, values in targets.items()}
    return {"dtype": dtype, "classes": classes.tolist()}, codes


def decode_targets(
    facts: Any, arrays: Mapping[str, NDArray[Any]], n_rows: int, n_anchors: int
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return targets of the rows and of the anchor from the facts and arrays of `encode_targets`.

    The share checks the meaning of their entries.  It raises SHARE_MALFORMED or TOO_LARGE.
    """
    if isinstance(facts, Mapping) and "kind" in facts:
        return _decode_fields(facts, arrays, n_rows, n_anchors)
    if not {"target"} <= arrays.keys() <= {"target", f"{_OF_ANCHOR}target"}:
        raise _target_error("not one array")
    dtype, classes = _check_facts(facts)
    targets = {name: _decode(values, dtype, classes) for name, values in arrays.items()}
    return targets["target"], targets.get(f"{_OF_ANCHOR}target")


def _decode_fields(
    facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], n_rows: int, n_anchors: int
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    kinds = {kind.value: kind.dtype for kind in TargetKind if kind is not TargetKind.SINGLE}
    kind = facts["kind"]
    # The manifest is another party's: its kind may be anything, also what no dictionary can look up.
    dtype = kinds.get(kind) if isinstance(kind, str) else None
    if dtype is None or facts.keys() != {"kind"}:
        raise _target_error("of no known kind")
    own: set[str] = set(dtype.names or ())
    anchor = {f"{_OF_ANCHOR}{name}" for name in own}
    if arrays.keys() not in (own, own | anchor):
        raise _target_error(f"of kind {kind}, but its arrays are {sorted(arrays)}")
    target = _fill(dtype, arrays, "", n_rows)
    if not anchor or not anchor <= arrays.keys():
        return target, None
    return target, _fill(dtype, arrays, _OF_ANCHOR, n_anchors)


def _fill(dtype: np.dtype[Any], arrays: Mapping[str, NDArray[Any]], prefix: str, n_rows: int) -> NDArray[Any]:
    target = np.zeros(n_rows, dtype=dtype)
    for name in dtype.names or ():
        values = arrays[prefix + name]
        if values.dtype != dtype[name] or values.shape != (n_rows,):
            raise _target_error(f"of a field {name} that is not of {dtype[name]}, one for each row")
        target[name] = values
    return target


def _check_facts(facts: Any) -> tuple[str, NDArray[Any] | None]:
    """Return the type of the targets, and the classes if they are texts."""
    dtype = facts.get("dtype") if isinstance(facts, Mapping) else None
    if isinstance(dtype, str) and dtype in _STORED:
        return dtype, None
    if dtype not in _TEXTS or not isinstance(facts.get("classes"), list) or not facts["classes"]:
        raise _target_error("of no known type")
    classes = facts["classes"]
    # NumPy drops a trailing null character, which would make two classes one.
    if any(not isinstance(name, str) or len(name) > _MOST_TEXT or name.endswith("\0") for name in classes):
        raise _target_error("of classes that are no short texts")
    if len(set(classes)) != len(classes):
        raise _target_error("of a class that is listed twice")
    return dtype, np.array(classes, dtype=str if dtype == "str" else object)


def _decode(values: NDArray[Any], dtype: str, classes: NDArray[Any] | None) -> NDArray[Any]:
    stored = _STORED[dtype] if classes is None else np.int64
    if values.dtype != stored or values.ndim != 1:
        raise _target_error("of another type than its manifest says")
    if classes is not None:
        if values.size and not 0 <= values.min() <= values.max() < len(classes):
            raise _target_error("of classes that are not listed")
        # Before the texts are made: a small file must not fill the memory.
        if values.size * max(map(len, classes)) * _CHARACTER > _MOST_BYTES:
            raise too_large(f"targets take more than {_MOST_BYTES} bytes as texts")
        return np.asarray(classes[values])
    with np.errstate(over="ignore"):
        decoded = values.astype(dtype)
    # Whole numbers are stored wider than they were.
    if values.dtype.kind != "f" and not np.array_equal(decoded, values):
        raise _target_error("beyond the range of their type")
    return decoded


def _dtype_name(values: NDArray[Any]) -> str | None:
    if values.dtype.kind == "U":
        return "str"
    if values.dtype == object:
        return "object" if all(isinstance(value, str) for value in values) else None
    return values.dtype.name if values.dtype.name in _STORED else None


def _target_error(fault: str) -> ExchangeError:
    return _share_error(f"its targets are {fault}")


def too_large(fault: str) -> ExchangeError:
    """Return the error for a share that takes more memory than it may."""
    return ExchangeError("TOO_LARGE", f"The share cannot be used: its {fault}. Have a smaller one made.")


SHARE_KIND = "datacollab.share"
_MOST_ENTRY = 1e30
"""Products of four are finite in double precision, and entries are in single."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Share(SignedFile):
    r"""The message of one party to the analyst: every field here, and nothing else.

    Row counts, and how often each target occurs, follow from the fields.  Arrays are copied and made read-only.

    Attributes
    ----------
    party : str or int
        The party's name.
    representation : ndarray of shape (n_samples, n_intermediate)
        :math:`\tilde X^{(k)} = f_k(X^{(k)})`, obfuscated, never raw.
    anchor_representation : ndarray of shape (n_anchors, n_intermediate)
        :math:`\tilde A^{(k)} = f_k(A)`, in the row order of the anchor.
    target : ndarray of shape (n_samples,)
        :math:`y^{(k)}`.  Targets are disclosed to the analyst as they are.  Times to events and effects have fields,
        see `datacollab.targets`; without targets, the array has none.
    anchor_target : ndarray of shape (n_anchors,) or None
        Targets of the anchor rows, if assigned.
    one_to_one : bool
        Whether each shared row is the representation of one own row, unchanged.  Where a defence was at work it is
        not, and a model's predictions for the shared rows are not those for the party's own.

    Raises
    ------
    ShareError
        If the arrays do not fit together, or are not finite.

    Examples
    --------
    >>> Share(party="a", representation=[[0.1], [0.2]], anchor_representation=[[0.0], [1.0], [2.0]], target=[0, 1])
    Share(party='a', representation=(2, 1), anchor_representation=(3, 1), target=(2,), anchor_target=None)
    """

    kind: ClassVar[str] = SHARE_KIND
    party: PartyName
    representation: FloatArray
    anchor_representation: FloatArray
    target: NDArray[Any]
    anchor_target: NDArray[Any] | None = None
    one_to_one: bool = True

    def __post_init__(self) -> None:
        try:
            X = check_representation(self.representation, self.party)
            A = check_representation(self.anchor_representation, self.party, what="anchor representation")
        except RepresentationError as error:
            raise ShareError(str(error)) from None
        # One map made both, or the anchor says nothing of the rows.
        if X.shape[1] != A.shape[1]:
            raise ShareError(
                f"Party {self.party!r}: its rows have {X.shape[1]} columns but its anchor has {A.shape[1]}; transform "
                "both with the same fitted obfuscator."
            )
        for what, rows in (("representation", X), ("anchor representation", A)):
            # Finite, and yet products of them are not.
            if np.abs(rows).max() > _MOST_ENTRY:
                raise ShareError(
                    f"Party {self.party!r}: the {what} has entries beyond {_MOST_ENTRY:g}, with which no "
                    "representation could be integrated. Scale the columns before or after the obfuscator."
                )
        self._freeze("representation", X)
        self._freeze("anchor_representation", A)
        self._freeze("target", self._check_target(self.target, X.shape[0], "target"))
        if self.anchor_target is not None:
            self._freeze("anchor_target", self._check_target(self.anchor_target, A.shape[0], "anchor_target"))
            if target_kind(self.anchor_target) is not self.target_kind:
                raise ShareError(
                    f"Party {self.party!r}: targets are of kind {self.target_kind}, but the anchor's of kind "
                    f"{target_kind(self.anchor_target)}. Give the anchor targets of the same kind, or none."
                )

    def _freeze(self, name: str, array: NDArray[Any]) -> None:
        # A later change of the party's own array must not reach the message.
        copy = array.copy()
        copy.setflags(write=False)
        object.__setattr__(self, name, copy)

    def _check_target(self, values: ArrayLike, n_rows: int, name: str) -> NDArray[Any]:
        target = np.asarray(values)
        if target.dtype.names is None:
            check_single_targets(target, f"Party {self.party!r}: {name}", ShareError)
        if target.shape != (n_rows,):
            raise ShareError(
                f"Party {self.party!r}: {name} must have one entry per row, shape ({n_rows},); got {target.shape}."
            )
        if count_missing(target) or (target.dtype.kind == "f" and not np.isfinite(target).all()):
            way_on = "drop such rows"
            if name == "anchor_target":
                # Anchor rows cannot be dropped by one party: all have them in one order.
                way_on = "send none; KTI.fit takes partly labelled anchors as y"
            raise ShareError(f"Party {self.party!r}: {name} contains NaN, None or infinity; {way_on}.")
        try:
            return named_target(target)
        except AgreementError as error:
            raise ShareError(f"Party {self.party!r}: {name}: {error}") from None

    @property
    def target_kind(self) -> TargetKind:
        """The kind of the targets."""
        return target_kind(self.target)

    @property
    def nbytes(self) -> int:
        """Size of the arrays, in bytes."""
        arrays = (self.representation, self.anchor_representation, self.target, self.anchor_target)
        return sum(array.nbytes for array in arrays if array is not None)

    def _contents(self) -> tuple[dict[str, Any], dict[str, bytes]]:
        return share_contents(self)

    @classmethod
    def _from_bundle(cls, bundle: Bundle) -> Share:
        return share_from(bundle)

    def __repr__(self) -> str:
        text = (
            f"Share(party={self.party!r}, representation={self.representation.shape}, "
            f"anchor_representation={self.anchor_representation.shape}, target={self.target.shape}, "
            f"anchor_target={getattr(self.anchor_target, 'shape', None)}"
        )
        if self.target_kind is not TargetKind.SINGLE:
            text += f", target_kind={self.target_kind.value!r}"
        return f"{text})"

    def _repr_html_(self) -> str:
        n_rows, n_columns = self.representation.shape
        targets = f"{len(self.target)}"
        if self.target_kind is TargetKind.NONE:
            targets = "none"
        elif self.target_kind is not TargetKind.SINGLE:
            targets += f", {self.target_kind.value}"
        anchor_targets = "without targets" if self.anchor_target is None else "with targets"
        each = "the map of one own row" if self.one_to_one else "no own row by itself: defences were at work"
        return card(
            f"Share of party {self.party}",
            chain(held=["shared"], f="stays at the party", shared=f"{n_rows} \u00d7 {n_columns}"),
            table(
                [
                    ("rows", f"{n_rows} of {n_columns} columns, each {each}"),
                    ("targets", targets),
                    ("anchor", f"{len(self.anchor_representation)} rows, {anchor_targets}"),
                    ("size", f"{self.nbytes:,} bytes"),
                ]
            ),
        )


_MOST_NAME = 200
_ARRAYS = "share.safetensors"
_TABLES = {"representation", "anchor_representation"}


def share_contents(share: Share) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return facts for the manifest, to which a project adds its own, and members of a `.dcshare` file.

    It raises SHARE_MALFORMED if targets are neither texts, numbers nor of a kind of `datacollab.targets`.
    """
    target_facts, targets = encode_targets(share.party, share.target, share.anchor_target)
    facts = {
        "party": share.party,
        **_counts(share),
        "one_to_one": share.one_to_one,
        "target": target_facts,
        "created": now(),
        "versions": {"datacollab": __version__, "numpy": np.__version__, "sklearn": sklearn.__version__},
    }
    arrays = {"representation": share.representation, "anchor_representation": share.anchor_representation, **targets}
    return facts, {_ARRAYS: arrays_to_bytes(arrays)}


def _counts(share: Share) -> dict[str, int]:
    n_rows, n_components = share.representation.shape
    return {"n_rows": n_rows, "n_components": n_components, "n_anchors": share.anchor_representation.shape[0]}


def share_from(bundle: Bundle) -> Share:
    """Return the share in an unsealed bundle, after checks of every part.

    It raises WRONG_KIND, TOO_LARGE, or SHARE_MALFORMED if the arrays do not fit one another or the manifest.
    """
    if bundle.kind != SHARE_KIND:
        raise ExchangeError("WRONG_KIND", f"Expected a share, got a bundle of kind {bundle.kind!r}.")
    try:
        return _share_of(bundle)
    except MemoryError:
        raise too_large("arrays take more memory than this machine has") from None


def _share_of(bundle: Bundle) -> Share:
    facts = bundle.facts
    party = facts.get("party")
    # True and False are whole numbers to isinstance, but no names.
    if type(party) is not int and not (isinstance(party, str) and len(party) <= _MOST_NAME):
        raise _share_error("it does not say whose it is")
    # A message holds its fields and nothing else.
    if bundle.members.keys() != {_ARRAYS}:
        raise _share_error(f"it has the members {sorted(bundle.members)!r}; expected {_ARRAYS!r} alone")
    try:
        arrays = bytes_to_arrays(bundle.members[_ARRAYS], what=_ARRAYS)
    except ExchangeError as error:
        raise ExchangeError("SHARE_MALFORMED", str(error)) from None
    if not arrays.keys() >= _TABLES:
        raise _share_error(f"it does not hold the arrays {sorted(_TABLES)!r}")
    for name in sorted(_TABLES):
        if arrays[name].dtype != np.float64 or arrays[name].ndim != 2:
            raise _share_error(f"its {name} is no table of double precision")
    if type(facts.get("one_to_one")) is not bool:
        raise _share_error("it does not say whether its rows are the party's own")
    # The other arrays are targets, whose names depend on their kind.
    X = arrays.pop("representation")
    A = arrays.pop("anchor_representation")
    target, anchor_target = decode_targets(facts.get("target"), arrays, len(X), len(A))
    try:
        share = Share(
            party=party,
            representation=X,
            anchor_representation=A,
            target=target,
            anchor_target=anchor_target,
            one_to_one=facts["one_to_one"],
        )
    except ShareError as error:
        raise ExchangeError("SHARE_MALFORMED", f"{error} Have the share made again.") from None
    # The manifest is read without the arrays elsewhere, and must not say another thing than they do.
    wrong = [name for name, value in _counts(share).items() if type(facts.get(name)) is not int or facts[name] != value]
    if wrong:
        raise _share_error(f"its manifest says something else than its arrays of {wrong!r}")
    return share


def _share_error(fault: str) -> ExchangeError:
    return ExchangeError("SHARE_MALFORMED", f"The share cannot be used: {fault}. Have it made again.")
