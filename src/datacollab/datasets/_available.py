"""Which data sets there are, and where they are on this machine."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ._catalogue import CATALOGUE
from ._places import find
from ._spec import DatasetSpec

__all__ = ["DatasetInfo", "available"]


@dataclass(frozen=True, kw_only=True)
class DatasetInfo:
    """One line of the list of data sets.

    Parameters
    ----------
    name : str
    description : str
        One line.
    task : {"classification", "regression"}
    n_samples, n_features : int
        Shape of ``X`` of the whole data set.
    licence : str
    megabytes : float
        About how much is downloaded; 0 where the data come with scikit-learn.
    urls : tuple of str
        Where the files are downloaded from.
    path : Path or None
        Directory of the files that `load` would read; None where there are none, or none are needed.
    excerpt : bool
        Whether only an excerpt was found.
    """

    name: str
    description: str
    task: Literal["classification", "regression"]
    n_samples: int
    n_features: int
    licence: str
    megabytes: float
    urls: tuple[str, ...]
    path: Path | None
    excerpt: bool

    @property
    def where(self) -> str:
        """Where the data set is, in words."""
        if not self.urls:
            return "comes with scikit-learn"
        if self.path is None:
            return "absent"
        return f"{self.path} (excerpt only)" if self.excerpt else str(self.path)


def available(*, data_dir: str | os.PathLike[str] | None = None) -> tuple[DatasetInfo, ...]:
    """List the data sets.  Files are looked for, not read.

    Parameters
    ----------
    data_dir : path-like, optional
        A directory to look at first, as in `load`.

    Returns
    -------
    datasets : tuple of DatasetInfo

    Examples
    --------
    >>> from datacollab.datasets import available
    >>> for dataset in available():
    ...     print(dataset.name, dataset.task, dataset.n_samples, dataset.n_features)
    digits classification 1797 64
    diabetes regression 442 10
    mnist classification 70000 784
    fashion-mnist classification 70000 784
    ujiindoorloc regression 21048 520
    slice-localization regression 53500 384
    >>> available()[0].where
    'comes with scikit-learn'
    """
    return tuple(_describe(spec, data_dir) for spec in CATALOGUE.values())


def _describe(spec: DatasetSpec, data_dir: str | os.PathLike[str] | None) -> DatasetInfo:
    found = find(spec, data_dir) if spec.files else None
    return DatasetInfo(
        name=spec.name,
        description=spec.title,
        task=spec.task,
        n_samples=spec.n_samples,
        n_features=spec.n_features,
        licence=spec.licence,
        megabytes=spec.megabytes,
        urls=tuple(file.url for file in spec.files),
        path=None if found is None else found.paths[0].parent,
        excerpt=found is not None and found.excerpt,
    )
