"""A sum over parties under pairwise masks: one message per party, from which the analyst learns the total alone.

Each pair of parties shares a stream of numbers that nobody else knows.  One party of the pair adds it and the other
subtracts it, so that all streams cancel in the total [1]_ [2]_.  Every message is needed: any others together are
uniformly distributed and say nothing of the total.

References
----------
.. [1] Ács and Castelluccia (2011). I have a DREAM! (DiffeRentially privatE smArt Metering). Information Hiding, LNCS
   6958, 118-132.
.. [2] Bonawitz et al. (2017). Practical secure aggregation for privacy-preserving machine learning. CCS, 1175-1191.
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import ArrayLike

from .._typing import FloatArray, PartyName
from ..bundle import canonical_json
from ..errors import AgreementError, SharedBeforeError, ShareError
from ._words import FixedPoint, Words, key_stream, standard_normal

FEWEST_PARTIES = 3
"""With two parties, each learns the other's part by subtracting its own from the total."""

# Units of 1e-12 by which sums over one map may differ: less than entries by 1e-9, and far more than rounding does.
_WITNESS_SLACK = 500
_KEY_BYTES = 32
_TAG_BYTES = 32
_PRIME = 2**255 - 19
# Points of Curve25519 whose order divides 8: their shared secret is the same with every key.
_SMALL_ORDER = frozenset(
    {
        0,
        1,
        _PRIME - 1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
    }
)

_CONTEXT = b"datacollab sums 1 context\n"
_PAIR = b"datacollab sums 1 pair\n"
# Standard deviations of noise that the range of numbers leaves room for; the draw never goes beyond 8.3.
_FARTHEST = 10.0


def check_mask_key(public: bytes, party: PartyName) -> None:
    """Raise AgreementError for a public mask key with a second spelling, or whose shared secrets everybody knows."""
    number = int.from_bytes(public, "little")
    if len(public) != _KEY_BYTES or number >= _PRIME or number in _SMALL_ORDER:
        raise AgreementError(
            f"Party {party!r}: the public mask key must be 32 bytes, the one spelling of a point of large order; "
            f"got {len(public)} bytes that are not. Ask the party for a new key."
        )


class MaskKey:
    """One party's secret key for one roster of parties; `MaskedSum.mask` erases it.

    A key never serves two messages: the difference of two messages under the same masks is that of two tables.

    Only this object remembers that it was used.  A secret that a program stores and loads twice can mask twice: delete
    it with the first message, or leave files to the commands, which see to it.

    Parameters
    ----------
    secret : bytes of length 32

    Attributes
    ----------
    public : bytes of length 32
        The half that goes into the roster.

    Examples
    --------
    >>> key = MaskKey.generate()
    >>> len(key.public)
    32
    """

    def __init__(self, secret: bytes) -> None:
        self.public = X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()
        self._secret: bytearray | None = bytearray(secret)

    @classmethod
    def generate(cls) -> MaskKey:
        """Draw a key from the operating system."""
        return cls(secrets.token_bytes(_KEY_BYTES))

    @property
    def secret(self) -> bytes:
        """Return the secret half, to be kept until the message is written; SharedBeforeError if it was erased."""
        if self._secret is None:
            raise SharedBeforeError(
                "This mask key has served its message and was erased. Send the same message again, or begin a new run "
                "with new keys."
            )
        return bytes(self._secret)

    def erase(self) -> None:
        """Overwrite and drop the secret.  Copies that the interpreter made may stay in memory until it ends."""
        if self._secret is not None:
            self._secret[:] = bytes(_KEY_BYTES)
        self._secret = None

    def __repr__(self) -> str:
        return f"MaskKey({'erased' if self._secret is None else self.public.hex()[:8]})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("A MaskKey is a secret and is not copied.")


def not_of_rows(wrong: str, of: str = "") -> str:
    """Return the refusal of a total that no rows give: the fault `wrong`, and a way on for its parties."""
    whose = f" of {of}" if of else ""
    return (
        f"The total{whose} is not one of rows: {wrong}. At least one party added something else, and nobody can tell "
        "who. Ask all of them to compare table, program and version. If one leaves (`datacollab party withdraw`), the "
        "others can share again."
    )


@dataclass(frozen=True, eq=False, repr=False)
class MaskedMessage:
    """One party's message: numbers under masks, and a tag for each other party.

    Attributes
    ----------
    party : str or int
    context : bytes of length 32
        `MaskedSum.context`.
    words : ndarray of uint64, shape (1 + n_numbers, n_words)
        A constant that counts the parties, then the numbers.
    tags : mapping of str or int to bytes of length 32
        By other party; both parties of a pair send the same tag if their keys fit.
    witness : ndarray of uint64, shape (n_witnesses,)
        `CommonMap.witness`; empty for sums that need no map.
    """

    party: PartyName
    context: bytes
    words: Words
    tags: Mapping[PartyName, bytes]
    witness: Words = field(default_factory=lambda: np.empty(0, dtype=np.uint64))

    def __post_init__(self) -> None:
        for each, n_axes in ((self.words, 2), (self.witness, 1)):
            if each.dtype != np.uint64 or each.ndim != n_axes:
                raise ShareError(
                    f"Party {self.party!r}: masked numbers must be a table of 64-bit words, and the witness a list; "
                    f"got {each.dtype} of shape {each.shape}. Have the message sent again."
                )
        lengths = {len(self.context), *map(len, self.tags.values())}
        if lengths != {_TAG_BYTES}:
            raise ShareError(
                f"Party {self.party!r}: the context and all tags must have 32 bytes; got {sorted(lengths)}. Have the "
                "message sent again."
            )

    def __repr__(self) -> str:
        return f"MaskedMessage(party={self.party!r}, words={self.words.shape})"


@dataclass(frozen=True, eq=False)
class MaskedSum:
    """A sum over parties that all of them agree on, before anyone masks anything.

    Parameters
    ----------
    facts : mapping
        All that was agreed: project, anchor, purpose, recipe, columns, units, run.  JSON.
    roster : mapping of str or int to bytes
        Public mask keys, by party.
    noise : array-like of shape (n_numbers,)
        Standard deviation of the noise in each number of the total, less the parts of the colluding parties.  With
        these it is √(K / (K − t)) times that: 1.6 times for five parties if three of them may collude.
    numbers : FixedPoint
    n_colluding : int, optional
        How many parties may work with the analyst: the noise of the others alone reaches `noise`.  Half of the
        parties, rounded up, by default, but all but two at most.

    Attributes
    ----------
    context : bytes of length 32
        SHA-256 of everything above.  Masks and tags depend on it.

    Raises
    ------
    AgreementError
        If there are fewer than three parties, or more than the numbers can count; if two have the same key, or a key is
        refused (`check_mask_key`); if fewer than two parties remain beside the colluding ones; if the noise is negative
        or not finite.

    Examples
    --------
    >>> keys = {name: MaskKey.generate() for name in ("north", "south", "west")}
    >>> roster = {name: key.public for name, key in keys.items()}
    >>> counts = MaskedSum({"purpose": "rows of each class"}, roster, noise=[2.0, 2.0])
    >>> messages = [counts.mask(name, [20.0, 30.0], key) for name, key in keys.items()]
    >>> counts.total(messages).shape
    (2,)
    """

    facts: Mapping[str, Any]
    roster: Mapping[PartyName, bytes] = field(repr=False)
    noise: ArrayLike = field(repr=False)
    numbers: FixedPoint = field(default_factory=FixedPoint)
    n_colluding: int | None = None
    context: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        n = len(self.roster)
        if n < FEWEST_PARTIES:
            raise AgreementError(
                f"A sum needs at least {FEWEST_PARTIES} parties; got {n}. With two, each party learns the other's part "
                "by subtracting its own from the total."
            )
        if n >= self.numbers.largest:
            raise AgreementError(
                f"{self.numbers} has no place for a total of {n}, the count of parties. Take fewer fraction_bits."
            )
        for party, public in self.roster.items():
            check_mask_key(public, party)
        if len(set(self.roster.values())) < n:
            raise AgreementError("Two parties of the roster have the same mask key. Each party needs one of its own.")
        noise = np.array(self.noise, dtype=np.float64)
        if noise.ndim != 1 or not len(noise) or not (np.isfinite(noise) & (noise >= 0)).all():
            raise AgreementError("noise must be a list of finite standard deviations, none negative.")
        noise.flags.writeable = False
        n_colluding = self.n_colluding
        if n_colluding is None:
            n_colluding = min(math.ceil(n / 2), n - 2)
        if not 0 <= n_colluding <= n - 2:
            raise AgreementError(
                f"n_colluding must be from 0 to {n - 2}, so that two of {n} parties are left; got {n_colluding}."
            )
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "n_colluding", n_colluding)
        object.__setattr__(self, "roster", dict(self.roster))
        agreed = {
            "facts": self.facts,
            "roster": sorted([public.hex(), party] for party, public in self.roster.items()),
            "noise": noise.astype("<f8").tobytes().hex(),
            "n_colluding": n_colluding,
            "bits": self.numbers.bits,
            "fraction_bits": self.numbers.fraction_bits,
        }
        object.__setattr__(self, "context", hashlib.sha256(_CONTEXT + canonical_json(agreed)).digest())

    def mask(
        self,
        party: PartyName,
        values: ArrayLike,
        key: MaskKey,
        *,
        noise_key: bytes | None = None,
        witness: Words | None = None,
    ) -> MaskedMessage:
        """Make a party's message, and erase its key.

        The numbers are rounded, then the party's part of the noise is added, then the masks.

        Parameters
        ----------
        party : str or int
        values : array-like of shape (n_numbers,)
            The party's part of the sum.
        key : MaskKey
        noise_key : bytes of length 32, optional
            For experiments that are to be repeated: the noise follows from it.  Each message needs its own, for who
            knows it subtracts the noise.  By default the operating system draws.
        witness : ndarray of uint64, optional
            `CommonMap.witness` of this sum's `context`, so that maps which differ are noticed.

        Raises
        ------
        AgreementError
            If the key is not the roster's, or the numbers are too many, too few or too large.
        SharedBeforeError
            If the key was erased.
        """
        if self.roster.get(party) != key.public:
            raise AgreementError(
                f"Party {party!r}: the mask key is not the one in the roster. Use the key made for it."
            )
        noise = np.asarray(self.noise)
        try:
            part = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            # numpy's own message quotes an entry.
            raise AgreementError(f"Party {party!r}: the values are not all numbers. Nothing was sent.") from None
        if part.shape != noise.shape:
            raise AgreementError(f"Party {party!r}: expected {len(noise)} numbers, got an array of shape {part.shape}.")
        # The noise of the honest parties adds up to the agreed one, whatever colluding ones leave out.
        spread = noise / math.sqrt(len(self.roster) - self._colluding)
        bound = self.numbers.largest / len(self.roster)
        if not (np.abs(part) + _FARTHEST * spread < bound).all():
            raise AgreementError(
                f"Party {party!r}: a number is not finite, or beyond the {bound:g} that {self.numbers} leaves for "
                f"each of {len(self.roster)} parties. Nothing was sent. Scale the numbers."
            )
        secret = key.secret
        # The first number is 1: if the masks cancel, the total of it is the number of parties.
        words = self.numbers.encode(np.r_[1.0, part])
        drawn = standard_normal(noise_key or secrets.token_bytes(_KEY_BYTES), len(part)) * spread
        words = self.numbers.add(words, self.numbers.encode(np.r_[0.0, drawn]))
        tags: dict[PartyName, bytes] = {}
        for other, public in self.roster.items():
            if other != party:
                stream_key, tags[other] = self._pair(secret, key.public, public)
                mask = key_stream(stream_key, words.size).reshape(words.shape)
                # One of the pair adds the mask and the other subtracts it, by the order of their keys.
                if key.public > public:
                    mask = self.numbers.negate(mask)
                words = self.numbers.add(words, mask)
        key.erase()
        message = MaskedMessage(party, self.context, words, tags)
        return message if witness is None else replace(message, witness=witness)

    def total(self, messages: Sequence[MaskedMessage]) -> FloatArray:
        """Add up the messages of all parties, shape (n_numbers,).

        Parameters
        ----------
        messages : sequence of MaskedMessage
            One of each party, in any order.

        Raises
        ------
        AgreementError
            If a message is missing, doubled, of nobody in the roster, made for another sum, with another key or by
            another common map.
        ShareError
            If a message has another number of words, or the masks do not cancel.
        """
        by_party: dict[PartyName, MaskedMessage] = {}
        for message in messages:
            self.check(message)
            if message.party in by_party:
                raise AgreementError(f"Party {message.party!r}: there are two messages. Use the first one that came.")
            by_party[message.party] = message
        missing = [party for party in self.roster if party not in by_party]
        if missing:
            raise AgreementError(
                f"The messages of {missing} are missing. Without them nothing can be added up: wait for them, or begin "
                "a new run without these parties."
            )
        # Wrong keys and maps are named before anything is added up.
        self._check_tags(by_party)
        _check_witnesses(by_party)
        total = np.zeros((1 + len(np.asarray(self.noise)), self.numbers.n_words), dtype=np.uint64)
        for message in messages:
            total = self.numbers.add(total, message.words)
        count, *numbers = self.numbers.decode(total)
        if count != len(self.roster):
            raise ShareError(
                "The masks do not cancel: at least one message was changed, or made by another program. Have all "
                "messages compared with what the parties sent."
            )
        return np.array(numbers)

    @property
    def excess(self) -> float:
        r"""Return :math:`\sqrt{K / (K - t)}`, the factor of all noise in the total, colluding parties' included."""
        return math.sqrt(len(self.roster) / (len(self.roster) - self._colluding))

    @property
    def _colluding(self) -> int:
        assert self.n_colluding is not None
        return self.n_colluding

    def _pair(self, secret: bytes, own: bytes, other: bytes) -> tuple[bytes, bytes]:
        """Derive the key of a pair's stream, and its tag."""
        # Both halves of the pair derive the same: their keys stand in byte order.
        shared = X25519PrivateKey.from_private_bytes(secret).exchange(X25519PublicKey.from_public_bytes(other))
        info = _PAIR + b"".join(sorted([own, other]))
        derived = HKDF(hashes.SHA256(), _KEY_BYTES + _TAG_BYTES, self.context, info).derive(shared)
        return derived[:_KEY_BYTES], derived[_KEY_BYTES:]

    def check(self, message: MaskedMessage) -> None:
        """Refuse a message that is not one of this sum; tags are compared in `total`.

        It raises AgreementError if it is of nobody in the roster, or was made for another sum, and ShareError if it has
        another number of words, or tags.
        """
        if message.party not in self.roster:
            raise AgreementError(
                f"There is a message of {message.party!r}, who is not in the roster {list(self.roster)}. Leave it out."
            )
        if message.context != self.context:
            raise AgreementError(
                f"Party {message.party!r}: the message was made for another sum: another project file, anchor, roster, "
                "run or recipe. Ask the party for the message of this one."
            )
        expected = (1 + len(np.asarray(self.noise)), self.numbers.n_words)
        if message.words.shape != expected or message.tags.keys() != self.roster.keys() - {message.party}:
            raise ShareError(
                f"Party {message.party!r}: expected {expected} words and a tag for each other party, got "
                f"{message.words.shape} words and {len(message.tags)} tags. Have the message sent again."
            )

    def _check_tags(self, messages: Mapping[PartyName, MaskedMessage]) -> None:
        """Name the parties whose keys do not fit, before anything is added up."""
        wrong = {
            party: sum(message.tags[other] != messages[other].tags[party] for other in message.tags)
            for party, message in messages.items()
        }
        if any(wrong.values()):
            # Some parties may lie about one: only of a key that fits nobody's can it be said whose it is.
            of_all = [party for party, count in wrong.items() if count == len(messages) - 1]
            named = of_all or [party for party, count in wrong.items() if count]
            others = "the other parties" if of_all else "each other"
            raise AgreementError(
                f"The keys of {named} do not fit {others}: "
                f"{max(wrong.values())} of {len(messages) - 1} tags differ. Have them compare the roster with their "
                "own keys, or begin a new run without them."
            )


def _check_witnesses(messages: Mapping[PartyName, MaskedMessage]) -> None:
    """Name the parties whose common maps differ from most of the others'."""
    fits = {party: sum(_fit(message, other) for other in messages.values()) for party, message in messages.items()}
    most = max(fits.values())
    if most < len(messages):
        named = [party for party, count in fits.items() if count < most] or list(fits)
        raise AgreementError(
            f"The common maps of {named} differ from those of the other parties by more than 1e-9, so the messages "
            "cannot be added up. Have them compare anchor, secret and versions of datacollab, NumPy and SciPy. Then "
            "begin a new run."
        )


def _fit(message: MaskedMessage, other: MaskedMessage) -> bool:
    """Return whether two messages were made with one map, but for rounding."""
    if message.witness.shape != other.witness.shape:
        return False
    # Differences modulo 2^64, as the pads are.
    apart = (message.witness - other.witness).view(np.int64).astype(np.float64)
    return bool((np.abs(apart) <= _WITNESS_SLACK).all())
