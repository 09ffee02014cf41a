"""A disk that can be made full: a file system of its own, where one may mount it, or else a limit on files' sizes."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FILE_SYSTEM", "LIMIT", "Disk", "kind_of_disks"]

FILE_SYSTEM, LIMIT = "file system", "limit"
_ROOM = "8g"
_LEFT = 2**16
_SMALL_FILE = 2**20
_ATTEMPTS = 100


class Disk:
    """What a folder lies on.

    Parameters
    ----------
    folder : Path
        Made, and empty.
    kind : {'file system', 'limit'}
        A file system in memory, which needs the rights to mount one, or that of the folder, of which only a process can
        be kept from using more.
    """

    def __init__(self, folder: Path, kind: str) -> None:
        folder.mkdir()
        self._folder, self._is_mounted = folder, kind == FILE_SYSTEM
        if self._is_mounted:
            _mount(folder, f"size={_ROOM},mode=700")

    @contextmanager
    def full(self, process: int) -> Iterator[None]:
        """Within the context there is hardly any room, to nobody or, by a limit, to the process."""
        if self._is_mounted:
            self._shrink()
            try:
                yield
            finally:
                _mount(self._folder, f"remount,size={_ROOM}")
            return
        _, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
        resource.prlimit(process, resource.RLIMIT_FSIZE, (_SMALL_FILE, hard))
        try:
            yield
        finally:
            if Path(f"/proc/{process}").exists():
                resource.prlimit(process, resource.RLIMIT_FSIZE, (hard, hard))

    def _shrink(self) -> None:
        """Leave little more room than is used; somebody may write meanwhile, and then it is tried again."""
        for attempt in range(_ATTEMPTS):
            there = os.statvfs(self._folder)
            used = (there.f_blocks - there.f_bfree) * there.f_frsize
            try:
                _mount(self._folder, f"remount,size={used + _LEFT}")
            except subprocess.CalledProcessError:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def close(self) -> None:
        """Put what is there into the folder itself."""
        if self._is_mounted:
            kept = self._folder.with_name(f"{self._folder.name}.kept")
            shutil.copytree(self._folder, kept)
            # Lazily: a client that was killed may be ending still.
            subprocess.run(["umount", "--lazy", str(self._folder)], check=True)
            self._folder.rmdir()
            kept.rename(self._folder)
            self._is_mounted = False


def kind_of_disks(folder: Path) -> str:
    """What this user can have on this machine; tried below a folder."""
    place = folder / "tried"
    place.mkdir(parents=True)
    try:
        _mount(place, "size=1m")
    except (OSError, subprocess.CalledProcessError):
        return LIMIT
    else:
        subprocess.run(["umount", str(place)], check=True)
        return FILE_SYSTEM
    finally:
        place.rmdir()


def _mount(folder: Path, options: str) -> None:
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
