"""Bytes of files, wherever fsspec can keep them: a folder, an object store."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import fsspec
from fsspec.implementations.local import LocalFileSystem

from datacollab.errors import DataCollabError

# Memory for each reader; smaller pieces cost more calls than they save.
_PIECE = 2**20
# No blob by its name, so that no sweep takes it.
_MARK = "hub-id"
_ID = "[0-9a-f]{32}"
_BLOB = re.compile(f"(?:files|uploads/{_ID})/(?:{_ID}|(?P<part>\\.{_ID}\\.part))")
"""What `Blobs.write` calls blobs, and those that are not whole yet."""


class Blobs:
    """Blobs by name.  A name is new each time, so that no writer meets another; the database says which ones count.

    Whatever its methods raise of a place that fails is an OSError.

    Parameters
    ----------
    url : str
        As fsspec has it: a path, ``s3://bucket/folder``, ``memory://folder``.
    """

    def __init__(self, url: str) -> None:
        self._fs: Any
        # What was listed once is no more what is there: other processes write too.
        self._fs, self._root = fsspec.core.url_to_fs(url, use_listings_cache=False)
        self._is_local = isinstance(self._fs, LocalFileSystem)
        with self._reached():
            self._fs.makedirs(self._root, exist_ok=True)

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Make an OSError of whatever the file system raises: object stores have errors of their own."""
        try:
            yield
        except (OSError, DataCollabError):
            raise
        except Exception as error:
            # Folders fail by OSError alone; anything else is a fault of the program.
            if self._is_local:
                raise
            raise OSError(f"the place for blobs fails: {type(error).__name__}") from error

    def write(self, folder: str, pieces: Iterable[bytes]) -> tuple[str, int, str]:
        """Write a blob under a temporary name, and rename it once it is whole.

        Returns
        -------
        (str, int, str)
            Its name, its bytes and their SHA-256.

        Raises
        ------
        OSError
            When it cannot be written; nothing is left of it.
        """
        name = f"{folder}/{secrets.token_hex(16)}"
        with self._reached():
            self._fs.makedirs(self._path(folder), exist_ok=True)
            size, sha256 = self._put(name, pieces)
        return name, size, sha256

    def _put(self, name: str, pieces: Iterable[bytes]) -> tuple[int, str]:
        folder, slash, _ = name.rpartition("/")
        # In the same folder, as renaming across file systems would copy.
        part = self._path(f"{folder}{slash}.{secrets.token_hex(16)}.part")
        size = 0
        sha256 = hashlib.sha256()
        try:
            with self._fs.open(part, "wb") as file:
                for piece in pieces:
                    file.write(piece)
                    size += len(piece)
                    sha256.update(piece)
                # On the disk before it has its name: after a crash, a name stands for whole bytes.
                file.flush()
                if self._is_local:
                    os.fsync(file.fileno())
            self._rename(part, self._path(name))
        except BaseException:
            # A request that was cancelled comes here too; what cannot be removed is swept later.
            with contextlib.suppress(OSError), self._reached():
                self._fs.rm_file(part)
            raise
        return size, sha256.hexdigest()

    def read(self, name: str, start: int = 0, end: int = sys.maxsize) -> Iterator[bytes]:
        """A blob's bytes from one position to before another, in pieces.

        Raises
        ------
        OSError
            When it is not there; at once, and not at the first piece.
        """
        with self._reached():
            options: dict[str, Any] = {}
            if not self._is_local:
                # Blobs are read from front to back, and blocks behind the reader need no memory.
                options["cache_type"] = "readahead"
            file = self._fs.open(self._path(name), "rb", **options)
            file.seek(start)
        return self._pieces(file, end - start)

    def _pieces(self, file: Any, left: int) -> Iterator[bytes]:
        with self._reached(), file:
            while left > 0:
                piece = file.read(min(_PIECE, left))
                if not piece:
                    return
                left -= len(piece)
                yield piece

    @contextmanager
    def opened(self, name: str) -> Iterator[BinaryIO]:
        """A blob as a file to read."""
        with self._reached(), self._fs.open(self._path(name), "rb") as file:
            yield file

    def remove(self, *names: str) -> None:
        """Remove blobs; those that are not there, or cannot be removed now, are left to `sweep`."""
        for name in names:
            with contextlib.suppress(OSError), self._reached():
                self._fs.rm_file(self._path(name))

    def remove_folder(self, folder: str) -> None:
        """Remove a folder that is empty, where the place has folders."""
        if self._is_local:
            with contextlib.suppress(OSError):
                os.rmdir(self._path(folder))

    def sweep(self, keep: set[str], *, older_than: float) -> int:
        """Remove blobs that no row of the database names any more and were there before a time; how many they were.

        Files with other names than blobs were put there by others, and stay.
        """
        n_removed = 0
        for name, facts in self._list_blobs():
            # A young blob may belong to a row that is not written yet.
            if _BLOB.fullmatch(name) and name not in keep and _time_written(facts) < older_than:
                with contextlib.suppress(OSError), self._reached():
                    self._fs.rm_file(self._path(name))
                    n_removed += 1
        self._sweep_folders(older_than)
        return n_removed

    def _sweep_folders(self, older_than: float) -> None:
        """Remove empty folders of uploads, as a kill leaves them."""
        if self._is_local and os.path.isdir(self._path("uploads")):
            # Listed whole first, as folders go meanwhile.
            for entry in list(os.scandir(self._path("uploads"))):
                if re.fullmatch(_ID, entry.name) and entry.stat().st_mtime < older_than:
                    self.remove_folder(f"uploads/{entry.name}")

    def names(self) -> set[str]:
        """Blobs that are there, whole."""
        found = ((name, _BLOB.fullmatch(name)) for name, _ in self._list_blobs())
        return {name for name, match in found if match is not None and match["part"] is None}

    def mark(self) -> str | None:
        """Return the mark of the place; None where it has none."""
        try:
            with self._reached(), self._fs.open(self._path(_MARK), "rb") as file:
                # Twice as much as a mark has; the file may be another's, of any size.
                return str(file.read(64).decode("ascii", "replace").strip())
        except FileNotFoundError:
            return None

    def set_mark(self, mark: str) -> None:
        """Mark the place."""
        with self._reached():
            self._put(_MARK, [f"{mark}\n".encode("ascii")])

    def check(self) -> None:
        """Raise OSError unless the place is there."""
        with self._reached():
            # Object stores know a place by one way or the other.
            if not self._fs.isdir(self._root) and not self._fs.exists(self._root):
                raise FileNotFoundError("the place for blobs is not there")

    def _list_blobs(self) -> list[tuple[str, dict[str, Any]]]:
        """List the place: names below it, and its facts of each."""
        prefix = self._root.rstrip("/") + "/"
        with self._reached():
            found = self._fs.find(self._root, detail=True)
        return [(path.removeprefix(prefix), facts) for path, facts in found.items()]

    def _rename(self, part: str, path: str) -> None:
        if not self._is_local:
            self._fs.mv(part, path)
            return
        os.replace(part, path)
        # The folder as well: until it is on the disk, a crash may undo the new name.
        handle = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"


def _time_written(facts: dict[str, Any]) -> float:
    """When a blob was written, as far as its place says so; it was now, where that is unknown."""
    said = facts.get("mtime") or facts.get("LastModified") or facts.get("created")
    if not said:
        # Never old enough to be swept: a blob too many does less harm than one too few.
        return float("inf")
    if hasattr(said, "timestamp"):
        return float(said.timestamp())
    return float(said)
