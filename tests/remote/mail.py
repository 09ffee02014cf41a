"""Members of a project with folders, and files that they may send."""

from datetime import UTC, datetime, timedelta

from datacollab.bundle import pack, seal
from datacollab.remote import Kept, MemberFolder, pull, push
from party_world import new_world

KIND = {
    "share": ("datacollab.share", ".dcshare"),
    "sums": ("datacollab.masked-sum", ".dcsum"),
    "model": ("datacollab.model", ".dcmodel"),
    "answers": ("datacollab.answers", ".dcanswers"),
    "round": ("datacollab.round", ".dcround"),
}
OF_PARTIES = ("share", "sums")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Mail:
    """Parties a (the owner) and b, and an analyst, who have joined; and a stranger, who has keys alone."""

    def __init__(self, root, **rules):
        self.root, self.world = root, new_world(root, **{"seal_shares": True} | rules)
        self.project, self.keys = self.world.project, self.world.keys
        for name in ("a", "b", "analyst"):
            (root / name / "outbox").mkdir()
            (root / name / "project.toml").write_bytes((root / "project.toml").read_bytes())
        (root / "a" / "anchor.dcanchor").write_bytes((root / "anchor.dcanchor").read_bytes())

    def folder(self, name, *files):
        return MemberFolder.at(self.root / name, files)

    def made(self, kind, party, *, signer=None, hours=0, size=1000, sealed=True, **facts):
        """Bytes of a file of a kind, as its maker would write them, but for what is sealed."""
        bundle, _ = KIND[kind]
        maker = signer or (party if kind in OF_PARTIES else "analyst")
        to = ["analyst" if kind in OF_PARTIES else party]
        created = (NOON + timedelta(hours=hours)).isoformat(timespec="seconds")
        told = {"party": party, "project_digest": self.project.digest, "created": created} | facts
        told |= {"model": {"n_components": 3}}.get(kind, {})
        if kind == "round":
            # It is for all parties, and about none of them.
            del told["party"]
            to = list(self.project.parties)
            told = {"number": 2} | told
        contents = bytes(size)
        if sealed:
            keys = [self.keys.get(each, self.keys["stranger"]).public for each in to]
            contents = seal(contents, keys, purpose="tests")
        members = {"sealed.bin" if sealed else "share.safetensors": contents}
        return pack(bundle, told, members, key=self.keys[maker])

    def put(self, kind, party, *, where=None, name=None, **options):
        """Put such a file into the outbox of its maker."""
        maker = where or (party if kind in OF_PARTIES else "analyst")
        stem = "round" if kind == "round" else party
        path = self.root / maker / "outbox" / (name or stem + KIND[kind][1])
        path.write_bytes(self.made(kind, party, **options))
        return path

    def push(self, name, remote, *files, **options):
        return push(self.folder(name, *files), remote, files, **options)

    def pull(self, name, remote, kept=None, **options):
        """What came, and what is remembered."""
        return pull(self.folder(name), remote, kept or Kept(), keep=lambda kept: None, **options)

    def inbox(self, name):
        """Names of what lies in an inbox, hidden ones too."""
        place = self.root / name / "inbox"
        return sorted(path.name for path in place.iterdir()) if place.is_dir() else []
