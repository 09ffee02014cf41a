"""Presets of settings, fixed before they were run."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal

from ..harness import cell_id

# To be raised whenever the same setting would give other scores, so that older results are not taken for new ones.
PROTOCOL = 3

Split = Literal["iid", "label-skew", "feature-shift"]
Defence = Literal["none", "sums"]

MOST_COLUMNS = 48


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Parties, public rows, f_k and defence.

    Attributes
    ----------
    split : {"iid", "label-skew", "feature-shift"}
        Skews draw each party's mix of classes, or of ten slices of the table, from a Dirichlet distribution of .5.
    n_public : int
        Public rows.  With 0 there are declared ranges alone, and the anchor is uniform in them.
    labelled : bool
        Whether public rows have targets.
    f : {"public", "own"}
        PCA fitted on the anchor, or on the party's own rows.
    defence : {"none", "sums"}
        Whether rows are shared under f_k, or sums under masks.
    most_columns : int
        Largest width of the intermediate representation.
    """

    dataset: str
    n_parties: int
    n_per_party: int
    split: Split = "iid"
    n_public: int = 100
    labelled: bool = True
    f: Literal["public", "own"] = "public"
    defence: Defence = "none"
    most_columns: int = MOST_COLUMNS

    def __post_init__(self) -> None:
        if self.n_public == 0 and self.labelled:
            raise ValueError(f"{self.dataset}: without public rows there are none with targets; set labelled=False.")

    @property
    def public(self) -> str:
        if self.n_public == 0:
            return "no rows"
        return f"{self.n_public:,} {'with' if self.labelled else 'without'} targets"

    @property
    def label(self) -> str:
        words = [f"{self.dataset} {self.n_parties}×{self.n_per_party}", self.split, self.public]
        if self.f == "own":
            words.append("own PCA")
        if self.defence != "none":
            words.append(self.defence)
        return ", ".join(words)

    def cell(self, part: str) -> str:
        """Hash of all that determines scores but the seed."""
        return cell_id({"protocol": PROTOCOL, "part": part, **asdict(self)})


@dataclass(frozen=True)
class Preset:
    """Settings and seeds."""

    settings: tuple[Setting, ...]
    seeds: tuple[int, ...]


# Parties and rows of each.
SIZES = {
    "digits": (10, 25),
    "mnist": (10, 100),
    "fashion-mnist": (10, 100),
    "ujiindoorloc": (10, 100),
    "breast-cancer": (5, 30),
    "diabetes": (5, 30),
    "whas500": (5, 40),
    "gbsg2": (5, 50),
    "flchain": (10, 50),
    "attrition": (10, 50),
    "mlc_churn": (10, 100),
    "hmda": (10, 50),
}

_REGRESSION = ("diabetes", "ujiindoorloc")
_SKEWED = ("digits", "mnist", "breast-cancer", "flchain", "attrition", "mlc_churn", "hmda")
_UNLABELLED = (*_SKEWED, *_REGRESSION)
_RANGES_SUFFICE = ("digits", "breast-cancer", "flchain", "attrition", "mlc_churn", "hmda")


def _of(dataset: str, **changes: object) -> Setting:
    n_parties, n_per_party = SIZES[dataset]
    return Setting(dataset=dataset, n_parties=n_parties, n_per_party=n_per_party, **changes)  # type: ignore[arg-type]


def _quick() -> Iterator[Setting]:
    for dataset in SIZES:
        yield _of(dataset)
        yield _of(dataset, defence="sums")
        yield _of(dataset, defence="sums", labelled=False)
    for dataset in _UNLABELLED:
        yield _of(dataset, labelled=False)
    for dataset in _SKEWED:
        yield _of(dataset, split="label-skew")
    for dataset in _RANGES_SUFFICE:
        yield _of(dataset, n_public=0, labelled=False, f="own")
    for dataset in ("flchain", "hmda"):
        yield _of(dataset, split="feature-shift")
    for dataset, n_public in (("digits", 50), ("mlc_churn", 500)):
        yield _of(dataset, n_public=n_public)


def _smoke() -> Iterator[Setting]:
    yield Setting(dataset="digits", n_parties=3, n_per_party=40)
    yield Setting(dataset="breast-cancer", n_parties=3, n_per_party=40, defence="sums")
    yield Setting(dataset="breast-cancer", n_parties=3, n_per_party=40, n_public=0, labelled=False, f="own")
    yield Setting(dataset="diabetes", n_parties=3, n_per_party=40, split="feature-shift", labelled=False)


PRESETS = {"smoke": Preset(tuple(_smoke()), (0, 1)), "quick": Preset(tuple(dict.fromkeys(_quick())), (0, 1, 2, 3, 4))}
