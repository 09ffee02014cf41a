"""The paper's claims, held against rows."""

from collections.abc import Mapping, Sequence

from ..paper import Row
from ._claim import Claim, Verdict
from ._claim_tests import decide, describe
from ._condition_claims import ANCHOR_CLAIMS, PRIVACY_CLAIMS
from ._contrasts import Results
from ._method_claims import PARTY_CLAIMS, REGRESSION_CLAIMS

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
