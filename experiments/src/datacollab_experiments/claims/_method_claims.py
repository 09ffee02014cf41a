"""The paper's claims about methods: accuracy over the number of parties, and regression."""

import math

from ._claim import ABOVE, ACCURACY, AT_LEAST, BELOW, LINEAR, claims_of
from ._contrasts import Best, pairs, rise, value

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
