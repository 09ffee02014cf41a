"""
An effect from sums: how giving up smoking changes weight
=========================================================

Hernán and Robins' textbook estimates that smokers who gave up gained 3.4 kg more than those who did not (95 %: 2.4 to
4.5) [Hernan2020]_, of 1,566 people whose rows lie in one place.  Here they are dealt to four clinics.  Each sends one
file of sums under masks, and nobody sees another's rows.

.. note:: The table is in a package: ``pip install 'datacollab[oracles,plots]'``.

.. [Hernan2020] Hernán and Robins (2020). Causal Inference: What If, chapter 12. Chapman & Hall/CRC.
"""

import secrets
import sys
from collections.abc import Mapping
from importlib.util import find_spec

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import ArrayLike

from datacollab.study import MAPPED, CategoryColumn, Effect, NumberColumn, StudyPlan, effect_map
from datacollab.sums import UNITS_PER_RANGE, MaskKey

if find_spec("causaldata") is None:
    print("The table is in the package causaldata: pip install 'datacollab[oracles,plots]'")
    sys.exit()

from causaldata import nhefs_complete

PUBLISHED = (3.4, 2.4, 4.5)
table = nhefs_complete.load_pandas().data
ranges = {"age": (25, 75), "smokeintensity": (0, 60), "smokeyrs": (0, 60), "wt71": (30, 130)}
kinds = {"sex": 2, "race": 2, "education": 5, "exercise": 3, "active": 3}

# %%
# **Agree** on columns and their ranges, and on the map that all clinics make of public rows and a secret.  Public rows
# are drawn here from the declared ranges, so that nobody gives any.  The weight gained is clipped to 25 kg either way.

columns = [NumberColumn(name, *ends) for name, ends in ranges.items()]
columns += [CategoryColumn(name, np.unique(table[name].astype(int))) for name in kinds]
quit, gain = CategoryColumn("quit", (0, 1)), NumberColumn("gain", -25, 25)


def numbers(rows: Mapping[str, ArrayLike]) -> np.ndarray:
    """Numbers in units of a quarter of their range, and a column of zeros and ones for each level."""
    parts = [
        column.scale(rows)[:, None] * UNITS_PER_RANGE if isinstance(column, NumberColumn) else column.indicators(rows)
        for column in columns
    ]
    return np.column_stack(parts).astype(float)


random = np.random.default_rng(0)
drawn = {column.name: random.uniform(column.low, column.high, 1000) for column in columns[: len(ranges)]}
drawn |= {column.name: random.choice(column.levels, 1000) for column in columns[len(ranges) :]}
common = effect_map(numbers(drawn), secrets.token_bytes(32))

# %%
# **Add up.**  A clinic maps its rows at home.  Its file has the moments of mapped rows, treatment and outcome in five
# secret groups, less the clinic's means.  The noise is at its least.

keys = {name: MaskKey.generate() for name in ("augusta", "boise", "concord", "dover")}
effect = Effect(quit, gain, common.n_components, columns, noise=0.03)
plan = StudyPlan({name: key.public for name, key in keys.items()}, [effect])
messages = []
for place, (name, key) in enumerate(keys.items()):
    own = table.iloc[place :: len(keys)].astype(dict.fromkeys(kinds, int))
    rows = {column.name: own[column.name].to_numpy() for column in columns}
    rows |= {
        "quit": own["qsmk"].astype(int).to_numpy(),
        "gain": own["wt82_71"].to_numpy(),
        MAPPED: common.transform(numbers(rows)),
    }
    messages.append(plan.message(name, rows, key))

# %%
# **Find the effect.**  It is weighted by overlap, as the line says, where the textbook's is that of all people.

(found,) = plan.results(messages)
print(f"published {PUBLISHED[0]:.1f} kg, {PUBLISHED[1]:.1f} to {PUBLISHED[2]:.1f}")
print(f"sums of four clinics {found.effect:.1f} kg, {found.low:.1f} to {found.high:.1f}")
print(f"{found.estimand}; {found.overlap:.0%} of the variance of the treatment are left by columns")
for name, (before, after) in found.balance.items():
    print(f"{name:16} {before:6.2f} before, {after:6.2f} after")

# %%
# **Picture**: the arms' differences before and after adjustment, in standard deviations within clinics.  With a table
# as small as this, the noise moves both by some hundredths.

names, differences = list(found.balance), np.array(list(found.balance.values()))
figure, axis = plt.subplots(figsize=(7, 0.26 * len(names) + 1), layout="constrained")
axis.plot(differences[:, 0], names, "o", color="#D55E00", label="before")
axis.plot(differences[:, 1], names, "o", color="#0072B2", label="after")
axis.axvline(0, color="0.7", linewidth=0.8)
axis.invert_yaxis()
axis.set_xlabel("those who gave up less those who did not, in standard deviations")
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
figure.savefig("plot_085_effect_from_sums.png")
