"""Downloading: into a temporary file, verified, then moved to its place in one step."""

from __future__ import annotations

import importlib.util
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .._validation import require
from ..errors import DatasetError
from ._catalogue import find_spec
from ._places import find_file
from ._spec import DatasetSpec, FileSpec, read_contents

__all__ = ["fetch", "fetch_spec"]


def fetch(name: str, *, data_dir: str | os.PathLike[str] | None = None, progressbar: bool = True) -> Path:
    """Download the files of a data set, unless they are there and sound.

    This also repairs: files in `data_dir` that are missing or damaged are downloaded again.

    Parameters
    ----------
    name : {"mnist", "fashion-mnist", "ujiindoorloc", "slice-localization"}
    data_dir : path-like, optional
        Where to put the folder of the data set; the platform's cache directory by default.
    progressbar : bool, default=True
        Whether to show the progress on the standard error stream; needs tqdm, which the extra ``data`` brings.

    Returns
    -------
    directory : Path
        `data_dir` or the cache directory, where new files are in the folder ``<directory>/<name>``.

    Raises
    ------
    ValueError
        When there is no data set of that name, or it comes with scikit-learn.
    DatasetError
        When a file cannot be downloaded or written, or what came is not the data set.
    MissingExtraError
        When pooch is not installed.

    Examples
    --------
    >>> from datacollab.datasets import fetch
    >>> fetch("digits")
    Traceback (most recent call last):
        ...
    ValueError: 'digits' comes with scikit-learn; there is nothing to download.
    """
    return fetch_spec(find_spec(name), data_dir, progressbar=progressbar)


def fetch_spec(spec: DatasetSpec, data_dir: str | os.PathLike[str] | None = None, *, progressbar: bool = True) -> Path:
    """Download the files that a specification names; see `fetch`."""
    if not spec.files:
        raise ValueError(f"{spec.name!r} comes with scikit-learn; there is nothing to download.")
    pooch = require("pooch", "data")
    directory = Path(pooch.os_cache("datacollab") if data_dir is None else data_dir).expanduser()
    show = progressbar and importlib.util.find_spec("tqdm") is not None
    downloader = pooch.HTTPDownloader(progressbar=show, chunk_size=2**16)
    for file in spec.files:
        if not _is_sound(find_file(directory, spec.name, file), file):
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
