"""Where data files are looked for."""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from ._spec import DatasetSpec, FileSpec

__all__ = ["ENVIRONMENT_VARIABLE", "Found", "Place", "cache_directory", "find", "find_files", "places"]

ENVIRONMENT_VARIABLE = "DATACOLLAB_DATA"
# Debian's packages dataset-* install there.
SYSTEM_DIRECTORY = "/usr/share/datasets"


@dataclass(frozen=True)
class Place:
    """A directory that may hold data sets, and why it is looked at."""

    reason: str
    directory: Path


@dataclass(frozen=True)
class Found:
    """The files of a data set, or its excerpt."""

    files: tuple[FileSpec, ...]
    paths: tuple[Path, ...]
    excerpt: bool


def cache_directory() -> Path | None:
    """Where downloads go: the platform's cache directory, or None where pooch is not installed."""
    if importlib.util.find_spec("pooch") is None:
        return None
    import pooch

    return Path(pooch.os_cache("datacollab"))


def places(data_dir: str | os.PathLike[str] | None) -> list[Place]:
    """Directories to look at, in order."""
    candidates = (
        ("data_dir", data_dir),
        (ENVIRONMENT_VARIABLE, os.environ.get(ENVIRONMENT_VARIABLE)),
        ("cache directory", cache_directory()),
        ("system", SYSTEM_DIRECTORY),
    )
    return [Place(reason, Path(directory).expanduser()) for reason, directory in candidates if directory]


def find_file(directory: Path, name: str, file: FileSpec) -> Path | None:
    """``<directory>/<data set>/<file>`` or ``<directory>/<file>``, under any of the file's names."""
    candidates = (folder / file_name for folder in (directory / name, directory) for file_name in file.names)
    return next((path for path in candidates if os.path.isfile(path)), None)


def find_files(directory: Path, name: str, files: tuple[FileSpec, ...]) -> tuple[Path, ...] | None:
    """All the files of a data set, or None where one is missing."""
    paths = [find_file(directory, name, file) for file in files]
    return None if None in paths else tuple(path for path in paths if path is not None)


def find(spec: DatasetSpec, data_dir: str | os.PathLike[str] | None) -> Found | None:
    """The first place that has the whole data set, else the first that has its excerpt."""
    choices = [(spec.files, False)]
    if spec.excerpt is not None:
        choices.append(((spec.excerpt,), True))
    for files, excerpt in choices:
        for place in places(data_dir):
            paths = find_files(place.directory, spec.name, files)
            if paths is not None:
                return Found(files, paths, excerpt)
    return None
