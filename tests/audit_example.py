"""An audit as it comes out: a party of 100 images behind UMAP, figures of the size that is measured there."""

from datacollab.risk.audit import LEVELS, AuditResult, Finding, Record, audit

LABEL_ONLY = {
    "re-identification@1": 0.083, "re-identification@5": 0.36, "linkage": 0.09, "open-world re-identification": 0.017,
    "open-world linkage": 0.017, "R2c": 0.0, "R2": 0.21, "attribute ink": 0.30, "attribute slant": 0.06,
    "attribute aspect": 0.30,
}  # fmt: skip
CHANCE = {
    "re-identification@1": 0.01, "re-identification@5": 0.05, "linkage": 0.01, "open-world re-identification": 0.001,
    "open-world linkage": 0.001, "membership AUC": 0.5, "membership TPR": 0.01, "label match": 1 / 7,
}  # fmt: skip
MEAN_ROW = {"re-identification@1": 0.02, "linkage": 0.01, "R2": 0.0, "R2c": -0.25}
T1_LEAKS = ("30 anchor rows at random", "300 anchor rows at random", "the 300 anchor rows of 3 of 10 classes")
VALUES = {
    ("T0", "nothing", "Procrustes"): {
        "re-identification@1": 0.07, "re-identification@5": 0.25, "linkage": 0.08, "open-world linkage": 0.02,
        "R2c": -0.31,
    },
    ("T1", T1_LEAKS[0], "kernel ridge"): {
        "re-identification@1": 0.25, "linkage": 0.417, "open-world linkage": 0.053, "R2c": 0.07, "membership AUC": 0.57,
    },
    ("T1", T1_LEAKS[1], "kernel ridge"): {
        "re-identification@1": 0.363, "linkage": 0.89, "open-world linkage": 0.147, "R2c": 0.26, "membership AUC": 0.67,
        "attribute ink": 0.49, "attribute slant": 0.68, "attribute aspect": 0.60,
    },
    ("T1", T1_LEAKS[2], "linear regression"): {"re-identification@1": 0.15, "linkage": 0.14, "R2c": -0.18},
    ("T1", T1_LEAKS[2], "kernel ridge and emulator, averaged"): {
        "re-identification@1": 0.277, "linkage": 0.613, "open-world linkage": 0.077,
        "open-world re-identification": 0.09, "R2c": 0.14, "membership AUC": 0.59, "attribute ink": 0.40,
        "attribute slant": 0.59, "attribute aspect": 0.46, "label match": 0.159,
    },
    ("T2", "all anchor rows", "linear regression"): {"re-identification@1": 0.23, "linkage": 0.61, "R2c": 0.11},
    ("T2", "all anchor rows", "pseudoinverse"): {"re-identification@1": 0.01, "linkage": 0.02, "R2c": -0.23},
    ("T2", "all anchor rows", "emulator"): {"re-identification@1": 0.52, "linkage": 0.95, "R2c": 0.31},
    ("T2", "all anchor rows", "kernel ridge"): {"re-identification@1": 0.56, "linkage": 0.96, "R2c": 0.30},
    ("T2", "all anchor rows", "kernel ridge and emulator, averaged"): {
        "re-identification@1": 0.573, "re-identification@5": 0.89, "linkage": 0.993, "open-world linkage": 0.237,
        "open-world re-identification": 0.21, "R2c": 0.34, "R2": 0.48, "membership AUC": 0.75, "membership TPR": 0.12,
        "attribute ink": 0.57, "attribute slant": 0.77, "attribute aspect": 0.72, "label match": 0.82,
    },
    ("T2f", "all anchor rows", "subspace"): {"membership AUC": 0.48},
    ("T3", "all anchor rows", "kernel ridge"): {"re-identification@1": 0.38, "linkage": 0.47, "R2c": 0.12},
    ("T4", "nothing", "search for stored rows"): {"training rows in files": 0.0},
}  # fmt: skip


def finding(metric="linkage", value=0.5, *, level="T2", leak="all anchor rows", attack="kernel ridge", **given):
    """A finding with an interval of three seeds of 100 rows, and the usual baselines."""
    half_width = 1.96 * (max(value * (1 - value), 0.001) / 300) ** 0.5
    defaults = {
        "low": max(value - half_width, 0.0 if value >= 0 else value - half_width),
        "high": min(value + half_width, 1.0),
        "baseline": LABEL_ONLY.get(metric),
        "chance": CHANCE.get(metric),
        "mean_reconstruction": MEAN_ROW.get(metric),
        "control": 0.823 if metric == "linkage" and level == "T2" else None,
        "n": 300,
        "per_seed": (value - 0.02, value, value + 0.02),
    }
    return Finding(level=level, leak=leak, metric=metric, attack=attack, value=value, **(defaults | given))


def audit_result(**given):
    """The whole result; fields given replace its own."""
    findings = tuple(
        finding(metric, value, level=level, leak=leak, attack=attack)
        for (level, leak, attack), values in VALUES.items()
        for metric, value in values.items()
    )
    fields = {
        "party": "hospital-a",
        "obfuscator": "UMAPObfuscator",
        "n_rows": 100,
        "n_attacked": 100,
        "n_candidates": 100,
        "n_open_candidates": 1000,
        "n_anchors": 1000,
        "n_components": 16,
        "findings": findings,
        "levels": tuple(LEVELS.values()),
        "worst_records": tuple(
            Record(index=index, margin=3.1 - 0.2 * place, level="T2" if place % 3 else "T1")
            for place, index in enumerate((17, 3, 88, 41, 64, 9, 72, 25, 50, 96))
        ),
        "assumptions": (
            "Closed world: the attacker holds the originals of 100 records and knows that they are among those shared. "
            "Rates depend on this number.",
            "Targets and the number of rows are disclosed by the protocol; only what goes beyond them is counted.",
            "The attacker holds 4500 public rows of the same kind, with targets.",
            "Columns are compared in units of their standard deviation among public rows.",
        ),
        "not_tested": (
            "Other files than the obfuscator, the integration function and the model.",
            "T3 was played with one made-up party and KTI's defaults, not with the actual parties.",
            "Inference of attributes other than ink, slant and aspect.",
            "Attacks not known today, several shares of the same rows, and side information about a person.",
        ),
        "seeds": (0, 1, 2),
        "seconds": 41.7,
        "version": "0.1.0",
        "complete": True,
    }  # fmt: skip
    return AuditResult(**(fields | given))


def audited_rows(party, X, anchor, public, control, **options):
    """An audit of level T2, from rows and targets of the anchor, of the public and of those that nobody holds."""
    known = zip(("anchor", "public", "control"), (anchor, public, control), strict=True)
    given = {name + part: each for name, pair in known for part, each in zip(("", "_target"), pair, strict=True)}
    return audit(party, X, **{"levels": ["T2"], "random_state": 0} | given | options)


def value_of(result, metric, attack):
    """The figure of an attack."""
    return next(one.value for one in result.findings if (one.metric, one.attack) == (metric, attack))
