"""
The paper's figures
===================

The experiments of the paper are definitions that say what is varied and what held fixed.  Here
the first, methods against the number of parties, runs in small on scikit-learn's digits.  The report draws its figure
as it does for the real data.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from datacollab_experiments.paper import load_experiment, read_results, run_experiments
from datacollab_experiments.reports import report_results

# %%
# **The definition** of research question 1 has presets: ``paper`` with the paper's data and a hundred seeds, ``quick``
# with five, and ``smoke`` in small, which is varied here: kernel principal component analysis in place of UMAP, which
# takes longer.  On the command line it is ``datacollab experiment run rq1 --preset smoke``.

rq1 = load_experiment("rq1", "smoke")
first = next(condition for condition in rq1.conditions if condition.hyperparameters == "recommended")
small = replace(first, obfuscator="kernel-pca", n_per_party=40, n_anchors=300, n_sources=100, n_components=12)
conditions = tuple(replace(small, n_parties=n_parties) for n_parties in (2, 4, 8))
kept = {name: {} for name in ("Local", "Local+Public", "ODC", "LTI", "KTI", "Central")}
rq1 = replace(rq1, conditions=conditions, methods=kept, seeds=tuple(range(5)))
print(rq1.title)
for condition in rq1.conditions:
    print(f"{condition.n_parties} parties, {condition.n_per_party} rows each, {condition.n_anchors} anchor rows")

# %%
# **Run.**  Results go to a file, trial by trial, so that a run that was stopped goes on where it was.

folder = Path(tempfile.mkdtemp())
failed = run_experiments([rq1], folder / "results.sqlite")
print(f"rows that failed: {failed}")

# %%
# **Beside each other**: orthogonal data collaboration (ODC), and linear and kernel-based target-normalised integration
# (LTI, KTI); between a party alone, the same with the labelled public rows behind the anchor, and all rows in one
# place.

rows = read_results(folder).rows["rq1"]
means = {
    (name, n_parties): np.mean(
        [row.scores["accuracy"] for row in rows if (row.name, row.condition.n_parties) == (name, n_parties)]
    )
    for name in rq1.methods
    for n_parties in (2, 4, 8)
}
print("parties             2      4      8")
for name in rq1.methods:
    print(f"{name:14} " + " ".join(f"{means[name, n_parties]:6.3f}" for n_parties in (2, 4, 8)))

# %%
# Of five seeds in small not much is concluded.  The report has the same figure for whatever was run, with tables, and
# the published values and the paper's claims beside them; what came of the real data is in the documentation, under the
# results.

files = report_results(folder, folder / "report")
print(f"the report: {len(files)} files, among them {files[0].name}")
drawn = plt.imread(next(file for file in files if file.name.startswith("rq1") and file.suffix == ".png"))
figure = plt.figure(figsize=(7, 7 * drawn.shape[0] / drawn.shape[1]))
axes = figure.add_axes((0, 0, 1, 1))
axes.imshow(drawn)
axes.set_axis_off()
figure.savefig("figures_of_the_paper.png")
