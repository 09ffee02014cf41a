"""What attackers make of one party's share."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from datacollab.errors import DataCollabWarning
from datacollab.risk.audit import AuditResult, audit
from datacollab.risk.audit._levels import AVERAGED_NAME, DEMIXING, FORWARD, SHADOWS

from .draws import draw
from .library import make_party
from .settings import Setting
from .tables import load_table

ATTACKS = ("kernel ridge", "emulator", AVERAGED_NAME, FORWARD, DEMIXING, "membership", SHADOWS, "subspace")
LINKAGE, LABELS, MEMBERSHIP = "linkage", "linkage by targets alone", "membership AUC"
FIGURES = (LINKAGE, LABELS, MEMBERSHIP)


def measure_risks(
    setting: Setting, seed: int, *, data_dir: Path | None = None
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Audit the first party of a trial.

    The attacker is the analyst together with another party: it has the share, all anchor rows, and up to 1,500 rows of
    the same kind with targets, or the test rows where the table has no more.
    """
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataCollabWarning)
        drawn = draw(load_table(setting.dataset, data_dir), setting, seed)
        name = next(iter(drawn.parties))
        held = drawn.held if len(drawn.held) >= 300 else drawn.test
        result = audit(
            make_party(drawn, name),
            drawn.parties[name].X,
            drawn.anchor,
            y=drawn.parties[name].y,
            anchor_target=drawn.anchor_target,
            public=held.X,
            public_target=held.y,
            levels=("T2", "T2f"),
            attacks=ATTACKS,
            random_state=np.random.RandomState([seed, 19]),
        )
    scores = {
        LINKAGE: _strongest(result, "linkage"),
        LABELS: next(
            (f.baseline for f in result.findings if f.metric == "linkage" and f.baseline is not None), math.nan
        ),
        MEMBERSHIP: _strongest(result, "membership AUC"),
    }
    return scores, {"risks": time.process_time() - started}


def _strongest(result: AuditResult, metric: str) -> float:
    return max(f.value for f in result.findings if f.metric == metric and not math.isnan(f.value))
