"""The claims of the paper, and the verdicts of rows on them."""

import math
from collections.abc import Mapping, Sequence

from ..paper import Row
from ._claim import (
    ABOVE,
    ACCURACY,
    AT_LEAST,
    BELOW,
    KERNEL,
    LINEAR,
    Best,
    Claim,
    Results,
    Verdict,
    change,
    claims_of,
    decide,
    describe,
    each,
    excess_of_sources,
    pairs,
    rise,
    value,
)

_BEST_LINEAR = Best(LINEAR, "best linear method")
_KERNEL_REGRESSION = ("KTI", "KTI+GL", "KTI+TSL")
_EQUAL = (-0.01, 0.01)
_AT_MOST = (-math.inf, 0.02)  # two per cent of the RMSE still count as a tie
_EIGHT_OR_MORE = range(8, 10**9)
_UNDER_UMAP = value("accuracy", obfuscator=("umap",))
_RELATIVE = "the first method's RMSE less the second's, divided by the second's mean,"

PARTY_CLAIMS = (
    *claims_of(
        "rq1",
        "fig:num-existing",
        (
            "kti-above-linear",
            "Under UMAP, KTI is more accurate than every linear method in most conditions.",
            "most",
            "A comparison is a data set and a number of parties: accuracy of KTI less that of MPP, GEP, ODC and LTI, "
            "all four above 0.",
            pairs(_UNDER_UMAP, ("KTI",), LINEAR, ABOVE, together=True),
        ),
        (
            "kti-above-linear-many-parties",
            "Under UMAP and with eight parties or more, KTI is more accurate than every linear method.",
            "all",
            "A comparison is a data set and a number of parties from 8 on: accuracy of KTI less that of MPP, GEP, ODC "
            "and LTI, all four above 0.",
            pairs(
                value("accuracy", obfuscator=("umap",), n_parties=_EIGHT_OR_MORE),
                ("KTI",),
                LINEAR,
                ABOVE,
                together=True,
            ),
        ),
        (
            "advantage-grows",
            "Under UMAP, KTI's advantage over the best linear method grows with the number of parties.",
            "all",
            "A comparison is a data set: for each seed, the rise of the least-squares line of KTI's accuracy over "
            "log K from the fewest to the most parties, less the rise for the linear method with the best mean at each "
            "K on seeds that do not judge it, above 0.",
            pairs(rise("accuracy", "n_parties", obfuscator=("umap",)), ("KTI",), (_BEST_LINEAR,), ABOVE),
        ),
        (
            "lti-equals-gep",
            "Under UMAP, LTI and GEP are equally accurate, to within .01.",
            "all",
            "A comparison is a data set and a number of parties: accuracy of LTI less that of GEP, between -.01 and "
            ".01 (two one-sided tests).",
            pairs(_UNDER_UMAP, ("LTI",), ("GEP",), _EQUAL),
        ),
        (
            "lti-gep-above-mpp-odc",
            "Under UMAP, LTI and GEP are more accurate than MPP and ODC in most conditions.",
            "most",
            "A comparison is a data set, a number of parties and one of the four pairs: the difference in accuracy, "
            "above 0.",
            pairs(_UNDER_UMAP, ("LTI", "GEP"), ("MPP", "ODC"), ABOVE),
        ),
        (
            "linear-below-local",
            "Under UMAP, linear methods are less accurate than Local in most conditions.",
            "most",
            "A comparison is a data set, a number of parties and a linear method: its accuracy less that of Local, "
            "below 0.",
            pairs(_UNDER_UMAP, LINEAR, ("Local",), BELOW),
        ),
    ),
    *claims_of(
        "rq2",
        "fig:num_2",
        (
            "tsl-above-kti",
            "KTI+TSL is more accurate than KTI with every number of parties.",
            "all",
            "A comparison is a data set and a number of parties: accuracy of KTI+TSL less that of KTI, above 0.",
            pairs(ACCURACY, ("KTI+TSL",), ("KTI",), ABOVE),
        ),
        (
            "tsl-center-above-kti",
            "KTI+TSL+Center is more accurate than KTI with every number of parties.",
            "all",
            "A comparison is a data set and a number of parties: accuracy of KTI+TSL+Center less that of KTI, above 0.",
            pairs(ACCURACY, ("KTI+TSL+Center",), ("KTI",), ABOVE),
        ),
        (
            "tsl-center-highest",
            "In most conditions KTI+TSL+Center has the highest accuracy among the variants of KTI, or ties to within "
            ".01.",
            "most",
            "A comparison is a data set and a number of parties: accuracy of KTI+TSL+Center less that of each other "
            "variant, all above -.01.",
            pairs(
                ACCURACY,
                ("KTI+TSL+Center",),
                ("KTI", "KTI+Center", "KTI+GL", "KTI+TSL", "KTI+GL+Center"),
                AT_LEAST,
                together=True,
            ),
        ),
        (
            "tsl-second",
            "In most conditions KTI+TSL comes next: no variant but KTI+TSL+Center is more accurate by .01.",
            "most",
            "A comparison is a data set and a number of parties: accuracy of KTI+TSL less that of KTI, KTI+Center, "
            "KTI+GL and KTI+GL+Center, all above -.01.",
            pairs(ACCURACY, ("KTI+TSL",), ("KTI", "KTI+Center", "KTI+GL", "KTI+GL+Center"), AT_LEAST, together=True),
        ),
    ),
)

REGRESSION_CLAIMS = claims_of(
    "regression slice",
    "tab:recon-score-2datasets-transposed-se",
    (
        "kti-below-linear-under-umap",
        "Under UMAP, KTI, KTI+GL and KTI+TSL have a lower RMSE than every linear method.",
        "all",
        f"A comparison is a data set and a pair of methods: {_RELATIVE} below 0.",
        pairs(value("rmse", obfuscator=("umap",)), _KERNEL_REGRESSION, LINEAR, BELOW, relative=True),
    ),
    (
        "kti-ties-under-kernel-pca",
        "Under kernel PCA, KTI, KTI+GL and KTI+TSL mostly have an RMSE at or below that of linear methods, to within "
        "2 %.",
        "most",
        f"A comparison is a data set and a pair of methods: {_RELATIVE} below .02.",
        pairs(value("rmse", obfuscator=("kernel-pca",)), _KERNEL_REGRESSION, LINEAR, _AT_MOST, relative=True),
    ),
    (
        "linear-ties-under-pca",
        "Under PCA, the RMSE of every linear method is at or below that of KTI, KTI+GL and KTI+TSL, to within 2 %.",
        "all",
        f"A comparison is a data set and a pair of methods: {_RELATIVE} below .02.",
        pairs(value("rmse", obfuscator=("pca",)), LINEAR, _KERNEL_REGRESSION, _AT_MOST, relative=True),
    ),
)


_ATTACKS = ("LR", "MLP", "PINV")
_STRONGEST = Best(_ATTACKS, "strongest attack")
_NONLINEAR = ("kernel-pca", "umap")
_RECONSTRUCTION = "reconstruction_accuracy"
_RISE = "for each seed, the rise of the least-squares line of accuracy over the logarithm from"
_EXPONENT = "A comparison is a data set and a method: the slope of log seconds over log anchors, fitted for each seed,"

ANCHOR_CLAIMS = (
    *claims_of(
        "rq3",
        "fig:rq3_size",
        (
            "more-anchors",
            "Accuracy rises with the number of anchors for most methods.",
            "most",
            f"A comparison is a data set and a method: {_RISE} the fewest to the most anchors, above 0.",
            each(rise("accuracy", "n_anchors"), (*LINEAR, *KERNEL), ABOVE),
        ),
        (
            "more-anchors-help-kti-more",
            "More anchors raise the accuracy of KTI and KTI+TSL more than that of any linear method.",
            "all",
            f"A comparison is a data set and a pair of methods: {_RISE} the fewest to the most anchors, of KTI or "
            "KTI+TSL less that of a linear method, above 0.",
            pairs(rise("accuracy", "n_anchors"), KERNEL, LINEAR, ABOVE),
        ),
    ),
    *claims_of(
        "rq3",
        "fig:rq3_quality",
        (
            "more-sources",
            "Accuracy rises with the number of real rows behind the anchors for most methods.",
            "most",
            f"A comparison is a data set and a method: {_RISE} the fewest to the most source rows, above 0.",
            each(rise("accuracy", "n_sources"), (*LINEAR, *KERNEL), ABOVE),
        ),
        (
            "sources-beat-anchors",
            "For most methods, accuracy rises more with the source rows than with the number of anchors.",
            "most",
            f"A comparison is a data set and a method: {_RISE} the fewest to the most source rows, less the same over "
            "anchors, above 0.",
            each(excess_of_sources("accuracy"), (*LINEAR, *KERNEL), ABOVE),
        ),
        (
            "sources-beat-anchors-for-kti",
            "By how much source rows matter more than the number of anchors is larger for KTI and KTI+TSL than for any "
            "linear method.",
            "all",
            "A comparison is a data set and a pair of methods: the rise over source rows less the rise over anchors, "
            "of KTI or KTI+TSL less that of a linear method, above 0.",
            pairs(excess_of_sources("accuracy"), KERNEL, LINEAR, ABOVE),
        ),
    ),
    *claims_of(
        "rq3",
        "fig:rq3_func_time",
        (
            "construction-kernel",
            "Time to construct the integration functions grows with about the third power of the anchors for KTI and "
            "KTI+TSL.",
            "all",
            f"{_EXPONENT} between 2.5 and 3.5 (two one-sided tests).",
            each(rise("construct", "n_anchors", exponent=True), KERNEL, (2.5, 3.5)),
        ),
        (
            "construction-linear",
            "Time to construct the integration functions grows about in proportion to the anchors for linear methods.",
            "all",
            f"{_EXPONENT} between 0.5 and 1.5 (two one-sided tests).",
            each(rise("construct", "n_anchors", exponent=True), LINEAR, (0.5, 1.5)),
        ),
        (
            "construction-kernel-faster",
            "Time to construct the integration functions grows faster for KTI and KTI+TSL than for any linear method.",
            "all",
            "A comparison is a data set and a pair of methods: the slope of log seconds over log anchors of KTI or "
            "KTI+TSL less that of a linear method, above 0.",
            pairs(rise("construct", "n_anchors", exponent=True), KERNEL, LINEAR, ABOVE),
        ),
    ),
    *claims_of(
        "rq3",
        "fig:rq3_repr_time",
        (
            "representation-kernel",
            "Time to represent the test rows grows about in proportion to the anchors for KTI and KTI+TSL.",
            "all",
            f"{_EXPONENT} between 0.5 and 1.5 (two one-sided tests).",
            each(rise("represent", "n_anchors", exponent=True), KERNEL, (0.5, 1.5)),
        ),
        (
            "representation-linear",
            "Time to represent the test rows does not depend on the anchors for linear methods.",
            "all",
            f"{_EXPONENT} between -0.5 and 0.5 (two one-sided tests).",
            each(rise("represent", "n_anchors", exponent=True), LINEAR, (-0.5, 0.5)),
        ),
    ),
)

PRIVACY_CLAIMS = (
    *claims_of(
        "rq4",
        "tab:rq4-tradeoff-main-wide",
        (
            "accuracy-rises",
            "The accuracy of KTI+TSL rises with the intermediate dimension under every obfuscator.",
            "all",
            f"A comparison is a data set and an obfuscator: {_RISE} the smallest to the largest dimension, above 0.",
            each(rise("accuracy", "n_components"), ("KTI+TSL",), ABOVE),
        ),
        (
            "reconstruction-rises",
            "Under PCA and kernel PCA, the reconstruction accuracy of the strongest attack rises with the intermediate "
            "dimension.",
            "all",
            "A comparison is a data set and an obfuscator: for each seed, the rise of the least-squares line over the "
            "log dimension of the reconstruction accuracy of the attack with the highest mean at each, above 0.",
            each(rise(_RECONSTRUCTION, "n_components", obfuscator=("pca", "kernel-pca")), (_STRONGEST,), ABOVE),
        ),
        (
            "umap-resists",
            "Under UMAP, no attack reaches a reconstruction accuracy of .25, whatever the intermediate dimension.",
            "all",
            "A comparison is a data set, a dimension and an attack: its reconstruction accuracy, below .25, which is "
            "above all that the table has for UMAP.",
            each(value(_RECONSTRUCTION, obfuscator=("umap",)), _ATTACKS, (-math.inf, 0.25)),
        ),
        (
            "umap-resists-better-than-pca",
            "The strongest attack reconstructs less under UMAP than under PCA.",
            "all",
            "A comparison is a data set and a dimension: reconstruction accuracy of the attack with the highest mean "
            "under UMAP, less the same under PCA, below 0.",
            each(change(_RECONSTRUCTION, "obfuscator", "pca", "umap"), (_STRONGEST,), BELOW),
        ),
        (
            "umap-costs-accuracy",
            "Under UMAP, KTI+TSL is less accurate than under PCA in most conditions.",
            "most",
            "A comparison is a data set and a dimension: accuracy under UMAP less that under PCA, below 0.",
            each(change("accuracy", "obfuscator", "pca", "umap"), ("KTI+TSL",), BELOW),
        ),
        (
            "pinv-strongest-under-pca",
            "Under PCA, PINV is the strongest attack in most conditions.",
            "most",
            "A comparison is a data set and a dimension: reconstruction accuracy of PINV less that of LR and MLP, both "
            "above 0.",
            pairs(value(_RECONSTRUCTION, obfuscator=("pca",)), ("PINV",), ("LR", "MLP"), ABOVE, together=True),
        ),
        (
            "lr-strongest-otherwise",
            "Under kernel PCA and UMAP, LR is the strongest attack in most conditions.",
            "most",
            "A comparison is a data set, an obfuscator and a dimension: reconstruction accuracy of LR less that of MLP "
            "and PINV, both above 0.",
            pairs(value(_RECONSTRUCTION, obfuscator=_NONLINEAR), ("LR",), ("MLP", "PINV"), ABOVE, together=True),
        ),
    ),
    *claims_of(
        "rq4",
        "tab:rq4-integration-accuracy-wide",
        (
            "lti-competes-under-pca",
            "Under PCA, LTI is at least as accurate as KTI without a graph, to within .01.",
            "all",
            "A comparison is a data set and a dimension: accuracy of LTI less that of KTI, above -.01.",
            pairs(value("accuracy", obfuscator=("pca",)), ("LTI",), ("KTI",), AT_LEAST),
        ),
        (
            "kti-above-lti-otherwise",
            "Under kernel PCA and UMAP, KTI and KTI+TSL are more accurate than LTI in most conditions.",
            "most",
            "A comparison is a data set, an obfuscator and a dimension: accuracy of KTI and of KTI+TSL less that of "
            "LTI, both above 0.",
            pairs(value("accuracy", obfuscator=_NONLINEAR), KERNEL, ("LTI",), ABOVE, together=True),
        ),
        (
            "tsl-helps",
            "KTI+TSL is more accurate than KTI in most conditions.",
            "most",
            "A comparison is a data set, an obfuscator and a dimension: accuracy of KTI+TSL less that of KTI, above 0.",
            pairs(ACCURACY, ("KTI+TSL",), ("KTI",), ABOVE),
        ),
    ),
)


# In the order of the paper.
CLAIMS = (*PARTY_CLAIMS, *ANCHOR_CLAIMS, *PRIVACY_CLAIMS, *REGRESSION_CLAIMS)


def check_claims(rows: Mapping[str, Sequence[Row]], hyperparameters: str = "paper") -> tuple[Verdict, ...]:
    """Test every claim of the paper on the rows of one preset of hyperparameters, in the order of `CLAIMS`.

    Conditions and methods that were not run, failed or lack a partner of the same seed do not count.
    """
    results = {}
    for experiments in dict.fromkeys(claim.experiments for claim in CLAIMS):
        found = [row for name in experiments for row in rows.get(name, ())]
        results[experiments] = Results(row for row in found if row.condition.hyperparameters == hyperparameters)
    return tuple(_check(claim, results[claim.experiments]) for claim in CLAIMS)


def _check(claim: Claim, results: Results) -> Verdict:
    comparisons = claim.comparisons(results)
    n_seeds = [len(part.values) for each in comparisons for part in each.contrasts]
    return Verdict(
        claim=claim,
        verdict=decide(comparisons, claim.quota),
        evidence=describe(comparisons),
        n_seeds=min(n_seeds, default=0),
        most_seeds=max(n_seeds, default=0),
    )
