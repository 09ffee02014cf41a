"""Loading a data set by name: where its files are on this machine, and downloading them."""

from __future__ import annotations

import importlib.util
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray
from sklearn.utils import Bunch

from .._validation import FloatArray, require
from ..errors import DatasetError, MissingExtraError
from ._catalogue import CATALOGUE, DatasetSpec, FileSpec, find_spec, read_contents

PathLike = str | os.PathLike[str]
ENVIRONMENT_VARIABLE = "DATACOLLAB_DATA"
# Debian's packages dataset-* install there.
SYSTEM_DIRECTORY = "/usr/share/datasets"


class Found(NamedTuple):
    """The files of a data set, or its excerpt."""

    files: tuple[FileSpec, ...]
    paths: tuple[Path, ...]
    excerpt: bool


def cache_directory() -> Path | None:
    """Return the platform's cache directory, to which downloads go; None if pooch is not installed."""
    # The extra "data" is needed for downloads alone.
    if importlib.util.find_spec("pooch") is None:
        return None
    return Path(require("pooch", "data").os_cache("datacollab"))


def places(data_dir: PathLike | None) -> list[tuple[str, Path]]:
    """Return reasons and directories to look at, in order."""
    candidates = (
        ("data_dir", data_dir),
        (ENVIRONMENT_VARIABLE, os.environ.get(ENVIRONMENT_VARIABLE)),
        ("cache directory", cache_directory()),
        ("system", SYSTEM_DIRECTORY),
    )
    return [(reason, Path(directory).expanduser()) for reason, directory in candidates if directory]


def _find_file(directory: Path, name: str, file: FileSpec) -> Path | None:
    """Return ``<directory>/<data set>/<file>`` or ``<directory>/<file>``, under any of the file's names."""
    # A folder of its own first: several data sets have files of one name.
    candidates = (folder / file_name for folder in (directory / name, directory) for file_name in file.names)
    return next((path for path in candidates if os.path.isfile(path)), None)


def find(spec: DatasetSpec, data_dir: PathLike | None) -> Found | None:
    """Return the first place that has the whole data set, else the first that has its excerpt."""
    # An excerpt anywhere is worse than the whole data set anywhere else.
    sets = [spec.files]
    if spec.excerpt is not None:
        sets.append((spec.excerpt,))
    for files in filter(None, sets):
        for _, directory in places(data_dir):
            if (found := _find_in(directory, spec, files)) is not None:
                return found
    return None


def _find_in(directory: Path, spec: DatasetSpec, files: tuple[FileSpec, ...]) -> Found | None:
    """Return all of the files in a directory, or None if one is missing."""
    paths = tuple(path for file in files if (path := _find_file(directory, spec.name, file)) is not None)
    if len(paths) < len(files):
        return None
    return Found(files, paths, files != spec.files)


def fetch(name: str, *, data_dir: PathLike | None = None, progressbar: bool = True) -> Path:
    """Download the files of a data set, unless they are there and sound; replace files that are damaged.

    Parameters
    ----------
    name : {"mnist", "fashion-mnist", "ujiindoorloc", "slice-localization"}
    data_dir : path-like, optional
        Where to put the folder of the data set; the platform's cache directory by default.
    progressbar : bool, default=True
        Whether to show the progress on the standard error stream; needs tqdm, which the extra ``data`` brings.

    Returns
    -------
    Path
        `data_dir` or the cache directory, with new files in the folder ``<directory>/<name>``.

    Raises
    ------
    ValueError, DatasetError, MissingExtraError
        If there is nothing of that name to download; if a file cannot be downloaded or written, or is not the data
        set; if pooch is not installed.
    """
    return fetch_spec(find_spec(name), data_dir, progressbar=progressbar)


def fetch_spec(spec: DatasetSpec, data_dir: PathLike | None = None, *, progressbar: bool = True) -> Path:
    """Download the files that a specification names; see `fetch`."""
    if not spec.files:
        raise ValueError(f"{spec.name!r} comes with scikit-learn; there is nothing to download.")
    pooch = require("pooch", "data")
    if data_dir is None:
        data_dir = pooch.os_cache("datacollab")
    directory = Path(data_dir).expanduser()
    show = progressbar and importlib.util.find_spec("tqdm") is not None
    downloader = pooch.HTTPDownloader(progressbar=show, chunk_size=2**16)
    for file in spec.files:
        # A file that a killed download left is fetched again.
        if not _is_sound(_find_file(directory, spec.name, file), file):
            _download(file, directory / spec.name / file.names[0], downloader)
    return directory


def _is_sound(path: Path | None, file: FileSpec) -> bool:
    if path is None:
        return False
    try:
        read_contents(path, file.contents)
    except (ValueError, OSError):
        return False
    return True


def _download(file: FileSpec, path: Path, downloader: Callable[[str, str, Any], None]) -> None:
    # In the same directory, so that os.replace is one step; of a name that is never looked for, should this be killed.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
    except OSError as error:
        raise DatasetError(f"{path.parent} cannot be written ({error.strerror}); choose another data_dir.") from error
    try:
        downloader(file.url, str(temporary), None)
        # Verified before it gets its name, so that no file of that name is ever damaged.
        read_contents(temporary, file.contents)
        os.replace(temporary, path)
    except OSError as error:
        raise DatasetError(f"{file.url} could not be downloaded to {path}: {error}") from error
    except ValueError as error:
        raise DatasetError(
            f"What {file.url} sent is not {path.name}: {error}. The download was cut short, or a proxy or login page "
            "answered instead; try again, or from another network."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


class Dataset(Bunch):
    """A data set: scikit-learn's `Bunch` that also unpacks as ``X, y``.

    Entries are attributes and keys at once: ``dataset.X`` is ``dataset["X"]``.  Iterating gives `X` and `y`, not the
    keys; ``keys()``, ``items()``, ``in`` and ``**`` are those of a dict.

    Attributes
    ----------
    X, data : ndarray of shape (n_samples, n_features)
    y, target : ndarray of shape (n_samples,)
        Class labels (int64) or numbers (float64).
    feature_names, target_names : list of str
        Names of the columns of `X`, and of the classes 0, 1, ...
    DESCR : str
        Origin, licence, citation and the meaning of the columns.
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

    Attributes
    ----------
    n_samples, n_features : int
        Shape of ``X`` of the whole data set.
    megabytes : float
        About how much is downloaded; 0 if the data come with scikit-learn.
    path : Path or None
        Directory of the files that `load` would read; None if there are none, or none are needed.
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
        """Return in words where the data set is."""
        if not self.urls:
            return "comes with scikit-learn"
        if self.path is None:
            return "absent"
        if self.excerpt:
            return f"{self.path} (excerpt only)"
        return str(self.path)


def load(name: str, *, data_dir: PathLike | None = None, download: bool = True) -> Dataset:
    """Load a data set: from a local directory if it is there, else from the internet.

    Parameters
    ----------
    name : {"digits", "diabetes", "mnist", "fashion-mnist", "ujiindoorloc", "slice-localization"}
        Images are scaled to [0, 1]; tables are as in the files, neither scaled nor imputed.
    data_dir : path-like, optional
        A directory that holds the files, as ``<data_dir>/<name>/<file>`` or ``<data_dir>/<file>``.  It is searched
        first, and a download goes there; without it, a download goes to the platform's cache directory.
    download : bool, default=True
        Whether to download missing files; needs pooch (``pip install 'datacollab[data]'``).

    Returns
    -------
    Dataset
        It also unpacks as ``X, y``.  Besides, "mnist", "fashion-mnist" and "ujiindoorloc" have ``n_train``: that many
        first rows are the training part.  "ujiindoorloc" has ``extra``, a dict of the arrays "LONGITUDE", "FLOOR" and
        "BUILDINGID".  "slice-localization" has ``groups``, the patient of each row, and ``excerpt``: True if only the
        file with the first 682 rows was found, which is then used without a download.

    Raises
    ------
    ValueError, DatasetError
        If there is no data set of that name, the data are neither found nor downloaded, or a file is damaged.

    Notes
    -----
    It searches in this order: `data_dir`, the directory that the environment variable ``DATACOLLAB_DATA`` names, the
    platform's cache directory (if pooch is installed), and ``/usr/share/datasets``, where Debian puts data sets.  The
    content of every file is verified by its checksum each time.

    Examples
    --------
    >>> from datacollab.datasets import load
    >>> X, y = load("digits")
    >>> X.shape, float(X.min()), float(X.max())
    ((1797, 64), 0.0, 1.0)
    """
    return load_spec(find_spec(name), data_dir=data_dir, download=download)


def load_spec(spec: DatasetSpec, *, data_dir: PathLike | None = None, download: bool = True) -> Dataset:
    """Load the data set that a specification describes; see `load`."""
    found: Found | None = Found((), (), False)
    if spec.files:
        found = find(spec, data_dir)
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
    # The error names the ways on in either case.
    if not download:
        raise DatasetError(_explain(spec, data_dir, "download=False."))
    try:
        directory = fetch_spec(spec, data_dir)
    except (DatasetError, MissingExtraError) as error:
        raise DatasetError(_explain(spec, data_dir, str(error))) from None
    found = _find_in(directory, spec, spec.files)
    if found is None:
        raise DatasetError(f"The files of {spec.name!r} vanished from {directory} after the download; load again.")
    return found


def _explain(spec: DatasetSpec, data_dir: PathLike | None, why_not_downloaded: str) -> str:
    """Return where the files were looked for, and the ways to get them."""
    looked = [f"  {reason}: {directory}, {_describe(spec, directory)}" for reason, directory in places(data_dir)]
    # Said although nothing was looked at: the variable may have been meant to be set.
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


def _describe(spec: DatasetSpec, directory: Path) -> str:
    if not os.path.isdir(directory):
        return "no such directory"
    missing = [file.names[0] for file in spec.files if _find_file(directory, spec.name, file) is None]
    return f"without {', '.join(missing)}"


def available(*, data_dir: PathLike | None = None) -> tuple[DatasetInfo, ...]:
    """List the data sets.  Files are looked for, first in `data_dir`, and not read.

    Examples
    --------
    >>> from datacollab.datasets import available
    >>> [dataset.name for dataset in available()]
    ['digits', 'diabetes', 'mnist', 'fashion-mnist', 'ujiindoorloc', 'slice-localization']
    >>> available()[0].where
    'comes with scikit-learn'
    """
    copied = ("name", "task", "n_samples", "n_features", "licence", "megabytes")
    listed = []
    for spec in CATALOGUE.values():
        found = find(spec, data_dir) if spec.files else None
        info = DatasetInfo(
            **{name: getattr(spec, name) for name in copied},
            description=spec.title,
            urls=tuple(file.url for file in spec.files),
            path=None if found is None else found.paths[0].parent,
            excerpt=found is not None and found.excerpt,
        )
        listed.append(info)
    return tuple(listed)
