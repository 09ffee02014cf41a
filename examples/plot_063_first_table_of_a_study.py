"""
A published first table, from sums of three agencies
====================================================

Dehejia and Wahba's article begins with what the trained and the others are like in an experiment: 445 men of the
National Supported Work Demonstration [Dehejia1999]_.  Here three agencies hold them.  Each sends counts first, and then
a description: two files of sums under masks.  Nobody sees another's rows.

.. note:: The table is from a package: ``pip install 'datacollab[oracles,plots]'``.

.. [Dehejia1999] Dehejia and Wahba (1999). Causal effects in nonexperimental studies. Journal of the American
   Statistical Association 94, table 1.
"""

import sys
from importlib.util import find_spec
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from datacollab.study import CategoryColumn, Counts, Description, NumberColumn, Statistic, StudyPlan
from datacollab.sums import MaskKey

if find_spec("causaldata") is None:
    print("The table is in the package causaldata: pip install 'datacollab[oracles,plots]'")
    sys.exit()

from causaldata import nsw_mixtape

PUBLISHED = {  # of 185 trained, and of 260 others
    "age": (25.81, 25.05),
    "education": (10.35, 10.09),
    "re74": (2096, 2107),
    "re75": (1532, 1267),
    "black": (0.84, 0.83),
    "married": (0.19, 0.15),
}
table = nsw_mixtape.load_pandas().data.rename(columns={"educ": "education", "marr": "married"})
for name in ("treat", "black", "married"):
    table[name] = table[name].map({0: "no", 1: "yes"}).astype(object)

# %%
# **Agree** on columns: ranges of numbers, and levels of categories.

numbers = [NumberColumn("age", 16, 60), NumberColumn("education", 0, 18)]
numbers += [NumberColumn("re74", 0, 40000), NumberColumn("re75", 0, 40000)]
trained, *categories = (CategoryColumn(name, ["yes", "no"]) for name in ("treat", "black", "married"))
columns = [*numbers, *categories]
agency = np.random.default_rng(0).choice(["A", "B", "C"], len(table), p=[0.25, 0.35, 0.4])


def total(statistic: Statistic, own: pd.DataFrame = table) -> Any:
    """What three agencies find with one message each."""
    keys = {name: MaskKey.generate() for name in "ABC"}
    plan = StudyPlan({name: key.public for name, key in keys.items()}, [statistic])
    return plan.results([plan.message(name, own[agency == name], key) for name, key in keys.items()])[0]


# %%
# **Counts first.**  They say which levels are rare, and whether agencies code alike.  Had one of them swapped the codes
# of a column, the counts would name it.

counted = total(Counts([trained, *columns]))
print("rare levels:", *counted.rare or ["none"])
print("look as if coded differently:", *counted.unlike or ["none"])
swapped = table["married"].map({"yes": "no", "no": "yes"})
otherwise = table.assign(married=table["married"].where(agency != "C", swapped))
print("if C swapped married:", *total(Counts([trained, *columns]), otherwise).unlike)

# %%
# **The first table**, beside the published one.

found = total(Description(columns, by=trained))
print(f"rows: {found.n_rows['yes']:.0f} trained, {found.n_rows['no']:.0f} others")
print(f"{'':12}{'trained':>10}{'published':>10}{'others':>10}{'published':>10}{'noise':>8}")
for name, published in PUBLISHED.items():
    each = {entry.group: entry for entry in found.entries if entry.column == name and entry.level in (None, "yes")}
    own = [each[group].share if each[group].level else each[group].mean for group in ("yes", "no")]
    noise = each["yes"].noise_of_mean if each["yes"].level is None else each["yes"].noise_of_n / found.n_rows["yes"]
    digits = 0 if published[0] > 100 else 2
    figures = (own[0], published[0], own[1], published[1])
    print(f"{name:12}{''.join(f'{figure:10.{digits}f}' for figure in figures)}{noise:8.{digits}f}")

# %%
# Each figure differs from the published one by about its noise.  That of the trained is shown; the others are more, so
# theirs is less.
#
# **Picture**: the same sums hold counts in parts of each range.  Grey bars are within the noise of none.

figure, axes = plt.subplots(2, 4, figsize=(9.6, 3.8), layout="constrained", sharex="col")
for row, (group, title) in enumerate((("yes", "trained"), ("no", "others"))):
    entries = [entry for entry in found.entries if entry.group == group and entry.bins is not None]
    for axis, entry, column in zip(axes[row], entries, numbers, strict=True):
        edges = np.linspace(column.low, column.high, len(entry.bins) + 1)
        colours = np.where(entry.bins > 2 * found.count_noise, "#0072B2", "0.8")
        axis.bar(edges[:-1], np.maximum(entry.bins, 0), np.diff(edges), align="edge", color=colours)
        axis.set_title(column.name if row == 0 else "", loc="left")
        axis.spines[["top", "right"]].set_visible(False)
    axes[row, 0].set_ylabel(f"{title}, rows")
figure.savefig("plot_063_first_table_of_a_study.png")
