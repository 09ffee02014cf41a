"""What there is to know about a data set before it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any, Literal

from numpy.typing import NDArray

from ..errors import DatasetError
from ._content import Content, read_contents

__all__ = ["DatasetSpec", "FileSpec"]


@dataclass(frozen=True, kw_only=True)
class FileSpec:
    """One data file.

    Parameters
    ----------
    names : tuple of str
        Names that the file may have; the first is the one that a download gets.
    url : str
        Where it can be downloaded.
    contents : tuple of Content
        What it must hold.
    """

    names: tuple[str, ...]
    url: str
    contents: tuple[Content, ...]

    def read(self, path: Path, dataset: str) -> list[NDArray[Any]]:
        """Read the verified contents.

        Raises
        ------
        DatasetError
            When the file cannot be read, is damaged or holds something else; the message names it and says what to do.
        """
        try:
            return read_contents(path, self.contents)
        except ValueError as error:
            raise DatasetError(
                f"{path} cannot be used as a file of {dataset!r}: {error}. It is damaged, incomplete, or of another "
                "data set that uses the same file name. Delete it and load again, or, if it is of another data set, "
                f"keep each data set in a folder of its own, this one in a folder {dataset!r}."
            ) from error
        except OSError as error:
            raise DatasetError(f"{path} cannot be read: {error.strerror or type(error).__name__}.") from error


@dataclass(frozen=True, kw_only=True)
class DatasetSpec:
    """One data set.

    Parameters
    ----------
    name : str
        What `load` calls it, and the folder of its files.
    title : str
        One line that says what it is.
    task : {"classification", "regression"}
    n_samples, n_features : int
        Shape of ``X``.
    megabytes : float
        About how much is downloaded.
    licence : str
    origin : str
        Who made it and where it is published.
    columns : str
        What the columns of ``X`` and the entries of ``y`` mean.
    citation : str
    build : callable
        Makes the entries of a `Dataset` from the arrays that the files hold, in order.
    files : tuple of FileSpec
        All that are needed; none where the data come with scikit-learn.
    excerpt : FileSpec, optional
        Holds the first rows only; used where `files` are not found.
    elsewhere : str
        Other ways to get the files, in words.
    """

    name: str
    title: str
    task: Literal["classification", "regression"]
    n_samples: int
    n_features: int
    megabytes: float
    licence: str
    origin: str
    columns: str
    citation: str
    build: Callable[[list[NDArray[Any]]], Mapping[str, Any]]
    files: tuple[FileSpec, ...] = ()
    excerpt: FileSpec | None = None
    elsewhere: str = ""

    def describe(self, n_samples: int) -> str:
        """Text for ``DESCR``; it says so where `n_samples` is not all of the data set."""
        rows = f"{n_samples} rows"
        if n_samples != self.n_samples:
            rows = f"EXCERPT: only the first {n_samples} of {self.n_samples} rows"
        paragraphs = (
            f"{self.title}\n{'=' * len(self.title)}",
            f"{rows}, {self.n_features} features, {self.task}.",
            dedent(self.columns).strip(),
            f"Origin: {self.origin}\nLicence: {self.licence}\nCite as: {self.citation}",
        )
        return "\n\n".join(paragraphs) + "\n"
