"""Loading a data set by name.

* What `load` returns.
* Which data sets there are, and where they are on this machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._validation import FloatArray
from ..errors import DatasetError, MissingExtraError
from ._catalogue import CATALOGUE, find_spec
from ._fetch import fetch_spec
from ._places import ENVIRONMENT_VARIABLE, Found, find, find_file, find_files, places
from ._spec import DatasetSpec

__all__ = ["Dataset", "DatasetInfo", "available", "load", "load_spec"]


PathLike = str | os.PathLike[str]


@overload
def load(
    name: str, *, data_dir: PathLike | None = ..., download: bool = ..., return_X_y: Literal[False] = ...
) -> Dataset: ...
@overload
def load(
    name: str, *, data_dir: PathLike | None = ..., download: bool = ..., return_X_y: Literal[True]
) -> tuple[FloatArray, NDArray[Any]]: ...
def load(
    name: str, *, data_dir: PathLike | None = None, download: bool = True, return_X_y: bool = False
) -> Dataset | tuple[FloatArray, NDArray[Any]]:
    """Load a data set: from a local directory if it is there, else from the internet.

    Parameters
    ----------
    name : {"digits", "diabetes", "mnist", "fashion-mnist", "ujiindoorloc", "slice-localization"}
        Images are scaled to [0, 1]; tables are as in the files, neither scaled nor imputed.
    data_dir : path-like, optional
        A directory that holds the files, as ``<data_dir>/<name>/<file>`` or ``<data_dir>/<file>``.  It is looked at
        first, and a download goes there; without it, a download goes to the platform's cache directory.
    download : bool, default=True
        Whether to download what is not found; needs pooch (``pip install 'datacollab[data]'``).
    return_X_y : bool, default=False
        Whether to return a plain tuple.

    Returns
    -------
    dataset : Dataset
        ``X`` of shape (n_samples, n_features), ``y`` of shape (n_samples,) and their description; it also unpacks as
        ``X, y``.  In addition, it has

        * for "mnist", "fashion-mnist" and "ujiindoorloc", ``n_train``: that many first rows are the training part;
        * for "ujiindoorloc", whose target is the latitude, ``extra``: dict of the arrays "LONGITUDE", "FLOOR" and
          "BUILDINGID", each of shape (n_samples,);
        * for "slice-localization", ``groups``: the patient of each row, shape (n_samples,); and ``excerpt``: True
          where only the file with the first 682 rows was found, which is then used without a download.
    (X, y) : tuple of ndarray
        If ``return_X_y`` is True.

    Raises
    ------
    ValueError
        When there is no data set of that name.
    DatasetError
        When the data are neither found nor downloaded, or a file that is found is damaged.

    See Also
    --------
    available : What there is, and where it was found.
    fetch : Download only.

    Notes
    -----
    Looked at in this order: `data_dir`, the directory that the environment variable ``DATACOLLAB_DATA`` names, the
    platform's cache directory (if pooch is installed), and ``/usr/share/datasets``, where Debian puts data sets.

    The content of every file is verified by its checksum each time.

    Examples
    --------
    >>> from datacollab.datasets import load
    >>> X, y = load("digits")
    >>> X.shape, float(X.min()), float(X.max())
    ((1797, 64), 0.0, 1.0)
    >>> print(load("digits").DESCR)
    Handwritten digits, 8 x 8 pixels
    ================================
    <BLANKLINE>
    1797 rows, 64 features, classification.
    ...
    """
    dataset = load_spec(find_spec(name), data_dir=data_dir, download=download)
    return (dataset.X, dataset.y) if return_X_y else dataset


def load_spec(spec: DatasetSpec, *, data_dir: PathLike | None = None, download: bool = True) -> Dataset:
    """Load the data set that a specification describes; see `load`."""
    found = Found((), (), False) if not spec.files else find(spec, data_dir)
    if found is None:
        found = _fetch_or_explain(spec, data_dir, download)
    arrays = [
        array for file, path in zip(found.files, found.paths, strict=True) for array in file.read(path, spec.name)
    ]
    entries = dict(spec.build(arrays))
    if spec.excerpt is not None:
        entries["excerpt"] = found.excerpt
    return Dataset(
        **entries,
        data=entries["X"],
        target=entries["y"],
        name=spec.name,
        task=spec.task,
        DESCR=spec.describe(len(entries["X"])),
    )


def _fetch_or_explain(spec: DatasetSpec, data_dir: PathLike | None, download: bool) -> Found:
    if not download:
        raise DatasetError(_explain(spec, data_dir, "download=False."))
    try:
        directory = fetch_spec(spec, data_dir)
    except (DatasetError, MissingExtraError) as error:
        raise DatasetError(_explain(spec, data_dir, str(error))) from None
    paths = find_files(directory, spec.name, spec.files)
    if paths is None:
        raise DatasetError(f"The files of {spec.name!r} vanished from {directory} after the download; load again.")
    return Found(spec.files, paths, excerpt=False)


def _explain(spec: DatasetSpec, data_dir: PathLike | None, why_not_downloaded: str) -> str:
    """What was looked for and where, and how to get it."""
    looked = [f"  {place.reason}: {place.directory}, {_missing(spec, place.directory)}" for place in places(data_dir)]
    if not os.environ.get(ENVIRONMENT_VARIABLE):
        looked.append(f"  {ENVIRONMENT_VARIABLE}: not set")
    ways = [
        f"where there is a network: datacollab data fetch {spec.name}  (in Python datacollab.datasets.fetch)",
        f"put the files into a folder <directory>/{spec.name}, and name <directory>, by --data-dir (data_dir= in "
        f"Python) or {ENVIRONMENT_VARIABLE}; the files are at",
        *(f"  {file.url}" for file in spec.files),
        *filter(None, [spec.elsewhere]),
    ]
    return "\n".join(
        [
            f"The data set {spec.name!r} was not found. Looked at:",
            *looked,
            f"Not downloaded: {why_not_downloaded}",
            "Ways to get it:",
            *(f"  {way}" for way in ways),
        ]
    )


def _missing(spec: DatasetSpec, directory: Path) -> str:
    if not os.path.isdir(directory):
        return "no such directory"
    missing = [file.names[0] for file in spec.files if find_file(directory, spec.name, file) is None]
    return f"without {', '.join(missing)}"


class Dataset(Bunch):
    """A data set: scikit-learn's `Bunch` that also unpacks as ``X, y``.

    Entries are attributes and keys at once: ``dataset.X`` is ``dataset["X"]``.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Also under the name ``data``.
    y : ndarray of shape (n_samples,)
        Class labels (int64) or numbers (float64).  Also under the name ``target``.
    feature_names : list of str
        Names of the columns of `X`.
    target_names : list of str
        Names of the classes 0, 1, ...; classification only.
    task : {"classification", "regression"}
    name : str
        The name it was loaded by.
    DESCR : str
        Origin, licence, citation and the meaning of the columns.

    Notes
    -----
    Iterating gives `X` and `y`, not the keys; ``keys()``, ``items()``, ``in`` and ``**`` are those of a dict.

    Examples
    --------
    >>> from datacollab.datasets import load
    >>> X, y = load("digits")
    >>> X.shape, y.shape
    ((1797, 64), (1797,))
    >>> dataset = load("digits")
    >>> dataset.task, dataset.feature_names[:2], "DESCR" in dataset
    ('classification', ['pixel_0_0', 'pixel_0_1'], True)
    """

    X: FloatArray
    y: NDArray[Any]
    data: FloatArray
    target: NDArray[Any]
    feature_names: list[str]
    task: Literal["classification", "regression"]
    name: str
    DESCR: str

    def __iter__(self) -> Iterator[Any]:
        yield self["X"]
        yield self["y"]


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
