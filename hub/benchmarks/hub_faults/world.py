"""A project at a hub, with an analyst and a party for each share that is sent."""

from __future__ import annotations

import random
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from datacollab.agreement import AnchorRecipe, Project, Task, project_text
from datacollab.bundle import KeyPair, digest, key_with_proof, pack, seal
from datacollab.remote import Kept, MemberFolder, RemotePlace, push, write_places
from datacollab.table import Column
from datacollab_hub.remote import HubRemote, open_project
from datacollab_hub.requests import check_hub_log

from .disk import Disk
from .line import Line
from .processes import Database, HubProcess

__all__ = ["World"]

_MEBI = 2**20


class World:
    """Processes, folders and keys of one run.

    Parameters
    ----------
    root : Path
    n_shares : int
    programs : Path or None
        Of PostgreSQL; None for SQLite.
    disks : {'file system', 'limit'}
        See `Disk`.
    """

    def __init__(self, root: Path, n_shares: int, programs: Path | None, disks: str) -> None:
        self.root, self.line = root, Line()
        self.disks = {"hub": Disk(root / "hub", disks), "client": Disk(root / "analyst", disks)}
        self.url = f"http://127.0.0.1:{self.line.port}"
        self.database = None if programs is None else Database(programs)
        self.hub = HubProcess(
            root / "hub", root / "hub.log", self.url, None if self.database is None else self.database.url
        )
        self.keys = {name: KeyPair.generate() for name in ("owner", "analyst", *(f"p{n}" for n in range(n_shares)))}
        self.project = _project(self.keys)
        self.text = project_text(self.project, self.keys["owner"])
        self._allow_owner()
        self.line.target = self.hub.start()
        self.room = ""
        self._fill("owner")
        with closing(HubRemote(self.url, self.keys["owner"])) as owner:
            self.room = open_project(owner.client, self.project.name)
        with closing(HubRemote(self.url, self.keys["owner"], self.room)) as owner:
            push(MemberFolder.at(root / "owner"), owner)
        self.analyst = self._fill("analyst")
        self.sent: dict[str, str] = {}

    def party(self, number: int, chance: random.Random, mebibytes: tuple[float, float]) -> Path:
        """The folder of a party, with its share in the outbox."""
        name = f"p{number}"
        folder = self._fill(name)
        contents = chance.randbytes(int(chance.uniform(*mebibytes) * _MEBI))
        facts = {"party": name, "project_digest": self.project.digest}
        facts["created"] = datetime.now(UTC).isoformat(timespec="seconds")
        sealed = seal(contents, [self.keys["analyst"].public], purpose="faults")
        share = pack("datacollab.share", facts, {"sealed.bin": sealed}, key=self.keys[name])
        (folder / "outbox").mkdir()
        (folder / "outbox" / f"{name}.dcshare").write_bytes(share)
        self.sent[name] = digest(share)
        return folder

    def found(self) -> dict[str, int]:
        """What became of all shares that were sent: how many are lost, there twice, half; and whether the log holds."""
        remote = HubRemote(self.url, self.keys["analyst"], self.room)
        folder = MemberFolder.at(self.analyst)
        listed = [each.sha256 for each in remote.list(folder) if each.kind == "share" and not each.withdrawn]
        entries: list[dict[str, object]] = []
        while more := remote.client.ask("GET", f"/v1/projects/{self.room}/log?after={len(entries)}").field(
            "entries", list, verbatim=True
        ):
            entries += more
        check_hub_log(self.room, entries)
        received = [each["facts"].get("sha256") for each in entries if each["action"] == "received"]  # type: ignore[attr-defined]
        half = 0
        for entry in (each for each in remote.list(folder) if each.kind == "share"):
            part = self.root / "again.part"
            part.unlink(missing_ok=True)
            remote.fetch(entry, part, folder=folder)
            half += digest(part.read_bytes()) != entry.sha256
        Kept.read(self.analyst, "hub")
        remote.close()
        wanted = set(self.sent.values())
        blobs = sum(each.is_file() for each in (self.root / "hub" / "blobs").rglob("*"))
        return {
            "shares": len(wanted),
            "lost": len(wanted - set(listed)) + len(wanted - set(received)),
            "twice": len(listed) - len(set(listed)) + len(received) - len(set(received)),
            "half": half,
            "unknown": len(set(listed) - wanted),
            "left over on the disk": blobs - len(listed),
            "entries of the log": len(entries),
        }

    def close(self) -> None:
        self.hub.kill()
        self.line.close()
        if self.database is not None:
            self.database.close()
        for disk in self.disks.values():
            disk.close()

    def _fill(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        self.keys[name].save(folder / "keys.json")
        (folder / "project.toml").write_text(self.text, encoding="utf-8")
        write_places(folder, {"hub": RemotePlace(name="hub", url=self.url, project=self.room or None)})
        return folder

    def _allow_owner(self) -> None:
        key = self.root / "owner.key"
        key.write_text(key_with_proof(self.keys["owner"]))
        main = "from datacollab.cli import main; main()"
        words = [sys.executable, "-c", main, "hub", "allow", str(key), "--data", str(self.hub.folder)]
        subprocess.run(words, check=True, env=self.hub.environment, stdout=subprocess.DEVNULL)


def _project(keys: dict[str, KeyPair]) -> Project:
    return Project(
        name="faults",
        purpose="Whether a hub loses anything.",
        columns=(Column(name="age", kind="number", unit="years", minimum=0, maximum=120),
                 Column(name="dose", kind="number", unit="mg", minimum=0, maximum=9)),
        task=Task(kind="classification", target="ill", classes=("no", "yes")),
        anchor=AnchorRecipe(method="smote", n_rows=40, source="nothing"),
        max_components=1,
        seal_shares=True,
        owner=keys["owner"].public,
        analyst=keys["analyst"].public,
        parties={name: key.public for name, key in keys.items() if name not in ("owner", "analyst")},
    )  # fmt: skip
