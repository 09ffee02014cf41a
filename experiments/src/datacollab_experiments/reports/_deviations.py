"""Where the experiments depart from the paper, or settle open points."""

from __future__ import annotations

from collections.abc import Iterable

from ..paper import Experiment

_COMMON = (
    "One model is trained on all parties' collaboration representations, and each party tests it through its own maps. "
    "The paper speaks of a classifier of each party, which its figures rule out.",
    "The columns of the collaboration representations are standardised before the forest: scikit-learn's trees treat "
    "values closer than 1e-7 as equal, and with γ = 1 many entries are smaller. The paper does not say so.",
    "Every party standardises its own columns before kernel PCA and UMAP, and before PCA for tables, not for images. "
    "f_k is fitted on the party's own rows.",
    "SMOTE measures distances between sources on the columns as they are; the paper does not say on which.",
    "With two neighbours UMAP starts from a PCA, not from umap-learn's spectral embedding, which is not reproducible "
    "there.",
    "Rows are drawn from training and test parts of a data set together.",
    "With the recommended hyperparameters UMAP maps new rows one by one, and KTI+TSL+Center has a width and a penalty "
    "of its own, found in a small search on MNIST and Fashion-MNIST: its lead there is one of hyperparameters as well.",
    "Library versions are newer than the paper's (scikit-learn 1.6.1, umap-learn 0.5.9, NumPy 1.26.4).",
)


def deviations(experiments: Iterable[Experiment]) -> list[str]:
    """Notes that hold for all experiments, and those of each definition."""
    return [*_COMMON, *(f"{experiment.name}: {note}" for experiment in experiments for note in experiment.notes)]
