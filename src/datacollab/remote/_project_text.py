"""A project file that came as bytes."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import ExchangeError
from ..exchange.project import Project, read_project

__all__ = ["project_of"]


def project_of(text: bytes, what: str) -> Project:
    """Read a project file, and verify that the owner it names has signed it.

    Parameters
    ----------
    text : bytes
    what : str
        Where it came from.

    Raises
    ------
    ExchangeError
        As `load_project`.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "project.toml"
        path.write_bytes(text)
        try:
            return read_project(path)[0]
        except ExchangeError as error:
            raise ExchangeError(error.code, str(error).replace(str(path), what)) from None
