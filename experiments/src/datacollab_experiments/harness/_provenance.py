"""Where a number comes from: the versions that computed it, and the state of the source."""

import platform
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import datacollab

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
