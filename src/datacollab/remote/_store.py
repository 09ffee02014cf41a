"""Files left in a folder that all members reach: a network share, SFTP, S3; no server of ours."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections import Counter
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, BinaryIO

from .._require import require
from ..agreement import Project
from ..bundle import Limits, PublicKey, digest, open_regular, peek
from ..errors import ExchangeError, MissingExtraError
from ._parcels import (
    AGREEMENT,
    KINDS,
    Entry,
    MemberFolder,
    Parcel,
    Remote,
    RemoteStatus,
    Tell,
    kind_of,
    project_of,
    silent,
)

SFTP = ("sftp://", "ssh://")
_CONNECT = 15.0
"""Seconds to wait for a server."""


def sftp_files(url: str) -> tuple[Any, str]:
    """Return a file system of fsspec, and the folder in it, for a server in ``known_hosts``, as ssh does.

    fsspec alone would accept any server, and give passwords to a man in the middle.
    """
    paramiko = require("paramiko", "sftp")
    base = require("fsspec.implementations.sftp", "sftp").SFTPFileSystem

    class KnownServers(base):  # type: ignore[misc, valid-type]
        def _connect(self) -> None:
            self.client = paramiko.SSHClient()
            self.client.load_system_host_keys()
            self.client.set_missing_host_key_policy(paramiko.RejectPolicy())
            self.client.connect(self.host, **{"timeout": _CONNECT} | self.ssh_kwargs)
            self.ftp = self.client.open_sftp()

        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            if mode == "rb":
                # A server waits at a FIFO as a plain `open` does.
                kind = self.ftp.lstat(path).st_mode
                if kind is not None and not stat.S_ISREG(kind):
                    raise ExchangeError(
                        "BUNDLE_MALFORMED", f"{path} is no regular file. Remove it, and find out who put it there."
                    )
            return super()._open(path, mode, **options)

    files = KnownServers(skip_instance_cache=True, **KnownServers._get_kwargs_from_urls(url))
    return files, KnownServers._strip_protocol(url)


_PIECE = 2**20
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TOML = ".toml"
_MOST_TEXT = 2**20
_MOST_WORDS = 200
_ONCE = ("share", "sums")
"""Kinds that a party sends once, and sums once in each round, as a second would reveal more."""


class StoreRemote(Remote):
    """A folder at a URL that fsspec knows, with files under ``PROJECT-DIGEST/KIND/SHA256.SUFFIX``.

    Anybody who can write to it can remove others' files, or add files; signatures say who made a file, and nothing
    else is trusted.  Anybody who can read it sees all that is not sealed, and how large the rest is.

    The URL is a path, ``sftp://...``, ``s3://...`` or ``memory://...``; ``today`` is for tests, by default the day by
    this machine's clock.
    """

    def __init__(self, url: str, *, today: date | None = None) -> None:
        self.url = url
        self._today = today
        fsspec = require("fsspec", "remote")
        self._local = require("fsspec.implementations.local", "remote").LocalFileSystem
        try:
            with self._reached():
                if url.startswith(SFTP):
                    self._files, self._root = sftp_files(url)
                else:
                    # A connection that another remote has lost is not to be had again.
                    self._files, self._root = fsspec.core.url_to_fs(url, skip_instance_cache=True)
        except (MissingExtraError, ExchangeError):
            raise
        except ImportError as error:
            raise MissingExtraError(
                f"{url} needs a package that is not installed ({error.name or error}). Of s3:// install it with: pip "
                "install 'datacollab[s3]'"
            ) from error
        except ValueError as error:
            raise ExchangeError("REMOTE_INVALID", f"{url}: {error}. Give a folder, sftp:// or s3://.") from None

    def list(self, folder: MemberFolder) -> Sequence[Entry]:
        """See `Remote`."""
        entries = [entry for project in folder.versions for kind in KINDS for entry in self._entries(project, kind)]
        return [each for each in entries if each.is_for(folder) or each.sender == folder.key.fingerprint]

    def send(self, parcel: Parcel, *, tell: Tell = silent) -> None:
        """See `Remote`; it begins anew after an interruption, and others see nothing of it before it is whole."""
        there = [
            each for each in self._entries(parcel.project, parcel.kind.name) if each.sender == parcel.sender.fingerprint
        ]
        if parcel.sha256 in {each.sha256 for each in there}:
            return
        if parcel.kind.name in _ONCE:
            self._check_once(parcel, there)
            parcel.project.check_deadline(self._today or datetime.now(UTC).date())
        place = self._place(parcel.project.digest, parcel.kind.name, parcel.sha256 + parcel.kind.suffix)
        self._write(place, parcel.piece, parcel.size, parcel.sha256, parcel.path.name, tell)

    def _check_once(self, parcel: Parcel, there: Sequence[Entry]) -> None:
        """Refuse a second file of a party that sends one; of sums, one more than rounds were asked for."""
        kind = parcel.kind.name
        n_allowed = 1
        if kind == "sums":
            n_allowed += self._further_rounds(parcel.project)
        if len(there) < n_allowed:
            return
        way_on = ""
        if kind == "sums" and n_allowed < _n_rounds(parcel.project):
            way_on = "An answer to a request for a round goes once the analyst has pushed that request, too. "
        raise ExchangeError(
            "ALREADY_SHARED",
            f"{self.url} has another {kind} of party {parcel.party!r}. {way_on}If this one is meant in its place, take "
            f"that one back first: datacollab remote withdraw {there[0].sha256[:16]}",
        )

    def _further_rounds(self, project: Project) -> int:
        """Return how many rounds after the first the analyst has asked for, as requests say that nobody has checked."""
        analyst = project.analyst
        asked = [facts.get("number") for _, _, facts, signer in self._openings(project, "round") if signer == analyst]
        # By their numbers, as no store says in which order files came; no more than the parties agreed on.
        numbers = [each for each in asked if type(each) is int and 1 < each <= _n_rounds(project)]
        return max(numbers, default=1) - 1

    def fetch(self, entry: Entry, part: Path, *, folder: MemberFolder, tell: Tell = silent) -> None:
        """See `Remote`."""
        place = self._lying(entry, folder)
        with self._still_there(entry), self._open(place) as source, open(part, "ab") as target:
            done = target.tell()
            source.seek(done)
            while piece := source.read(_PIECE):
                done += len(piece)
                # A file that grows while it is read would fill the disk.
                if done > min(entry.size, Limits().total_bytes):
                    raise ExchangeError("TOO_LARGE", f"{place} is larger than it was listed. Run the command again.")
                target.write(piece)
                tell(f"fetching {entry.kind}", done / entry.size)

    def status(self, folder: MemberFolder) -> RemoteStatus:
        """See `Remote`; which parties shared is as the files say, before they are checked."""
        project = folder.agreed
        names = {key.fingerprint: name for name, key in project.parties.items()}
        n_further = self._further_rounds(project)
        n_sums = Counter(each.sender for each in self._entries(project, "sums"))
        # Of a party that has answered the last request, as many files lie there as rounds.
        senders = [each for each, n_files in n_sums.items() if n_files > n_further]
        senders += [each.sender for each in self._entries(project, "share")]
        shared = {names[each] for each in senders if each in names}
        deadline = project.deadline
        return RemoteStatus(
            project=project.name,
            digest=project.digest,
            revision=project.revision,
            deadline=None if deadline is None else deadline.isoformat(),
            quorum=project.fewest_parties,
            shared=tuple(sorted(shared)),
            missing=tuple(name for name in project.parties if name not in shared),
            rounds=n_further,
        )

    def agreement(self, folder: MemberFolder) -> bytes | None:
        """See `Remote`: the latest of a folder's own project, or else the only one that names its key.

        It raises REMOTE_INVALID if several projects of different owners name the key, and BUNDLE_MALFORMED if none
        names it and something in the place of a project file is no file.
        """
        refused: MutableSequence[ExchangeError] = []
        own = [(project, text) for project, text in self._agreements(refused) if _concerns(project, folder)]
        if not own:
            if refused:
                raise refused[0]
            return None
        # Anybody who can write to the store may leave a project there that names this key.
        if len({(project.owner, project.name) for project, _ in own}) > 1:
            names = ", ".join(sorted(f"{each.name} ({each.digest[:16]})" for each, _ in own))
            raise ExchangeError(
                "REMOTE_INVALID",
                f"{self.url} has several projects that name this key: {names}. Fetch the right project file by hand, "
                "and join with it.",
            )
        _, text = max(own, key=lambda each: each[0].revision)
        return text

    def agree(self, project: Project, text: bytes) -> None:
        """See `Remote`."""
        place = self._place(project.digest, AGREEMENT, digest(text) + _TOML)
        with self._reached():
            there = self._files.exists(place)
        if not there:
            self._write(
                place, lambda start, most: text[start : start + most], len(text), digest(text), "project file", silent
            )

    def withdraw(self, entry: Entry, *, folder: MemberFolder) -> None:
        """See `Remote`."""
        place = self._lying(entry, folder)
        with self._still_there(entry):
            self._files.rm_file(place)

    def _lying(self, entry: Entry, folder: MemberFolder) -> str:
        project = entry.project or folder.agreed.digest
        return self._place(project, entry.kind, entry.sha256 + KINDS[entry.kind].suffix)

    def _entries(self, project: Project, kind: str) -> Sequence[Entry]:
        """Return entries of files of a kind, as they describe themselves."""
        entries = []
        for sha256, size, facts, signer in self._openings(project, kind):
            recipient = None
            party = project.parties.get(str(facts.get("party")))
            if party is not None and KINDS[kind].recipient == "party":
                recipient = party.fingerprint
            entry = Entry(
                sha256=sha256,
                kind=kind,
                size=size,
                sender=signer.fingerprint,
                recipient=recipient,
                project=project.digest,
            )
            entries.append(entry)
        return entries

    def _openings(self, project: Project, kind: str) -> Iterator[tuple[str, int, dict[str, Any], PublicKey]]:
        """Yield SHA-256, size, facts and signer of files of a kind; ignore files that others left there by mistake.

        Under the name of such a file, anything but a regular file is refused.
        """
        for place in self._names(self._place(project.digest, kind)):
            sha256, suffix = place.rsplit("/", 1)[-1].partition(".")[::2]
            if not _SHA256.fullmatch(sha256) or f".{suffix}" != KINDS[kind].suffix:
                continue
            opening = None
            # A file that was taken back since it was listed is passed over, too.
            with self._reached(), contextlib.suppress(FileNotFoundError):
                size = int(self._files.size(place))
                with self._open(place, block_size=2**16) as stream:
                    opening = peek(stream, size)
            if opening is None:
                continue
            name, facts, signer = opening
            if kind_of(name) is KINDS[kind]:
                yield sha256, size, facts, signer

    def _agreements(self, refused: MutableSequence[ExchangeError]) -> Iterator[tuple[Project, bytes]]:
        """Yield project files, and note errors of anything in their places that is no regular file."""
        for place in self._names(self._root):
            if not _SHA256.fullmatch(place.rsplit("/", 1)[-1]):
                continue
            with self._reached():
                if not self._files.isdir(place):
                    continue
            for file in self._names(f"{place}/{AGREEMENT}"):
                text = b""
                try:
                    with self._reached(), contextlib.suppress(FileNotFoundError), self._open(file) as stream:
                        text = stream.read(_MOST_TEXT)
                except ExchangeError as error:
                    if error.code == "REMOTE_UNREACHABLE":
                        raise
                    refused.append(error)
                    continue
                # Others' mistakes are not this folder's concern, nor are files that vanished since they were listed.
                with contextlib.suppress(ExchangeError):
                    yield project_of(text, file), text

    def _open(self, place: str, **options: Any) -> BinaryIO | Any:
        """Open a file to read it: on this machine only a regular file, and no link."""
        # Somebody else may have put a link there, or a FIFO that never ends.
        if isinstance(self._files, self._local):
            return open_regular(Path(place), follow=False)
        return self._files.open(place, "rb", **options)

    def _names(self, place: str) -> Sequence[str]:
        with self._reached():
            # Files come from elsewhere, too.
            self._files.invalidate_cache()
            try:
                names = sorted(str(each).rstrip("/") for each in self._files.ls(place, detail=False))
            except FileNotFoundError:
                return []
        # Some file systems list a file as itself.
        return [each for each in names if each != place]

    def _write(
        self, place: str, read: Callable[[int, int], bytes], size: int, sha256: str, name: str, tell: Tell
    ) -> None:
        folder, file = place.rsplit("/", 1)
        part = f"{folder}/.{file}.{secrets.token_hex(8)}.part"
        with self._reached():
            self._files.makedirs(folder, exist_ok=True)
            # Names end with chance, so parts of killed commands would pile up.
            for leftover in self._names(folder):
                if leftover.rsplit("/", 1)[-1].startswith(f".{file}."):
                    self._files.rm_file(leftover)  # of a command that was killed: nobody else has this very file
            try:
                # Hashed as it goes out: the file may change between the check and this moment.
                hashed = hashlib.sha256()
                done = 0
                with self._files.open(part, "wb") as stream:
                    while piece := read(done, _PIECE):
                        stream.write(piece)
                        hashed.update(piece)
                        done += len(piece)
                        tell(f"sending {name}", done / size)
                    _onto_disk(stream)
                if hashed.hexdigest() != sha256:
                    raise ExchangeError(
                        "HASH_MISMATCH", f"{name} was changed while it was sent. Nothing was left; run it again."
                    )
                # Others list whole files alone: the part has a hidden name.
                self._files.mv(part, place)
            except BaseException:
                with contextlib.suppress(Exception):
                    self._files.rm_file(part)
                raise

    def _place(self, *names: str) -> str:
        return "/".join((str(self._root).rstrip("/"), *names))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turn errors on the way into ours; systems behind fsspec have errors of their own."""
        try:
            yield
        except (ExchangeError, ImportError, ValueError):
            raise
        except Exception as error:
            words = getattr(error, "strerror", None) or f"{type(error).__name__}: {str(error)[:_MOST_WORDS]}"
            raise ExchangeError(
                "REMOTE_UNREACHABLE",
                f"{self.url} cannot be used ({words}). Look at the network, the address and who may use it; then run "
                "the command again, which goes on where this one ended.",
            ) from error

    @contextmanager
    def _still_there(self, entry: Entry) -> Iterator[None]:
        """Do the same for a file that may have vanished since it was listed."""
        with self._reached():
            try:
                yield
            except FileNotFoundError:
                raise ExchangeError(
                    "NOT_FOUND",
                    f"{self.url} has the {entry.kind} {entry.sha256[:16]} no more: since it was listed, it was taken "
                    "back or removed. Run the command again; if it is missed, ask its sender.",
                ) from None


def _n_rounds(project: Project) -> int:
    """Return how many messages each party of a project sends."""
    if project.sharing is None:
        return 1
    return project.sharing.n_rounds


def _concerns(project: Project, folder: MemberFolder) -> bool:
    if folder.project is not None:
        return (project.owner, project.name) == (folder.project.owner, folder.project.name)
    return folder.key in (project.owner, project.analyst, *project.parties.values())


def _onto_disk(stream: BinaryIO | Any) -> None:
    """Have a disk keep it before it gets its name, if the store is one."""
    with contextlib.suppress(AttributeError, OSError):
        stream.flush()
        os.fsync(stream.fileno())
