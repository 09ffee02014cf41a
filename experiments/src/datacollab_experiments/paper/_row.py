"""One number of an experiment, and where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ._condition import Condition


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result of one method, or one attack, in one trial of an experiment.

    Attributes
    ----------
    experiment : str
        Name of the definition, such as "rq1".
    condition : Condition
        The fixed settings, the preset of hyperparameters included.
    name : str
        Name in the tables: "KTI+TSL", "Central", "PINV".
    cell : str
        Hash of all that determines the scores but the seed.  Rows of several experiments, or conditions, that share
        a cell are one computation.
    scores : mapping of str to float
        For a method "accuracy", or "rmse" in the target's own units.  For an attack "reconstruction_accuracy",
        "most_common_share" (of the reconstructions, how many the judge puts into its most frequent class),
        "mean_image_accuracy" (of a reconstruction that always is the mean leaked row) and "original_accuracy" (of the
        originals themselves); for the attack "audit" those of `score_risks`.  Empty where the row failed.
    seconds : mapping of str to float
        Wall times; for a method of integration "construct" (all g_k) and "represent" (the test rows of all parties),
        "train" and "predict" of h.  Empty where the row failed.
    error : str or None
        Why the row failed.  Failures are counted, never averaged.
    versions : mapping of str to str
        Of Python and of the libraries that compute.
    commit : str
        Commit of the source, where known; with "+" where it had been changed since.
    """

    experiment: str
    condition: Condition
    kind: str
    name: str
    seed: int
    cell: str
    scores: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
