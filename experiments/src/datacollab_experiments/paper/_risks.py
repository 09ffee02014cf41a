"""The library's audit of one party of a trial."""

import copy
import math
import time
from collections.abc import Collection

import numpy as np

from datacollab.datasets import Dataset
from datacollab.risk.audit import AuditResult, audit
from datacollab.risk.audit._findings import AVERAGED_NAME, FORWARD

from ._attack import AttackScore
from ._trial import Trial

_ZERO_LEAK = "T0"
_FULL_LEAK = "T2"
_MAP = "T2f"
# Those that are strongest on some obfuscator, so that a trial does not take minutes.
_ATTACKS = ("Procrustes", "kernel ridge", "emulator", AVERAGED_NAME, FORWARD, "membership", "subspace")

# Rows that the attacker has beside the anchor, and strangers to tell the party's rows from.
_N_PUBLIC = 5000
_N_CONTROL = 500


def score_risks(trial: Trial, data: Dataset) -> AttackScore:
    """Audit one party: another one with every seed.

    The attacker is the analyst together with another party, and so knows the share and all anchor rows; it also has
    up to 5,000 rows of the same kind, with targets, that are nowhere in the trial.

    Returns
    -------
    AttackScore
        Each score is that of the strongest attack.  "linkage": share of the party's rows put together with their
        originals, when each is assigned another one; "linkage_labels": the same by targets alone;
        "open_world_linkage": the same, when nine strangers stand beside each original; "reidentification":
        share of the reconstructions that are nearest to their own original, "reidentification_labels" by targets
        alone; "r2c": variance within classes that reconstructions explain; "membership_auc": area under the curve of
        telling the party's rows from others by the share, and "map_membership_auc" by f_k alone;
        "zero_leak_reidentification": re-identification when no anchor row is known.
    """
    random = np.random.RandomState([trial.seed, 0, 1])
    # Over the seeds every party has its turn.
    name = list(trial.split)[trial.seed % len(trial.split)]
    own = trial.split[name]
    party = copy.copy(trial.parties[name])
    # The trial's own generator has moved by however many shares were made before.
    party.random_state = np.random.RandomState([trial.seed, 0, 2])
    held = random.permutation(trial.unused)[: _N_PUBLIC + _N_CONTROL]
    start = time.perf_counter()
    result = audit(
        party,
        own.X,
        trial.anchor,
        anchor_target=trial.anchor_target,
        public=data.X[held],
        public_target=data.y[held],
        levels=(_ZERO_LEAK, _FULL_LEAK, _MAP),
        attacks=_ATTACKS,
        random_state=random,
    )
    # An attacker that knows more may also do what one that knows less does.
    every = (_ZERO_LEAK, _FULL_LEAK)
    scores = {
        "linkage": _strongest(result, "linkage", every),
        "linkage_labels": _labels_alone(result, "linkage"),
        "open_world_linkage": _strongest(result, "open-world linkage", every),
        "reidentification": _strongest(result, "re-identification@1", every),
        "reidentification_labels": _labels_alone(result, "re-identification@1"),
        "r2c": _strongest(result, "R2c", every),
        "membership_auc": _strongest(result, "membership AUC", (_FULL_LEAK,)),
        "map_membership_auc": _strongest(result, "membership AUC", (_MAP,)),
        "zero_leak_reidentification": _strongest(result, "re-identification@1", (_ZERO_LEAK,)),
    }
    return AttackScore(scores, {"attack": time.perf_counter() - start})


def _strongest(result: AuditResult, metric: str, levels: Collection[str]) -> float:
    found = [each.value for each in result.findings if each.metric == metric and each.level in levels]
    # An attack that does not apply has no number.
    return max(value for value in found if not math.isnan(value))


def _labels_alone(result: AuditResult, metric: str) -> float:
    return next(each.baseline for each in result.findings if each.metric == metric and each.baseline is not None)
