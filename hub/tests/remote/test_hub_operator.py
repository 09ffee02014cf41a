"""Whoever runs a hub changes something in it: members notice, or get what they would have got anyway."""

import shutil
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace

import pytest
from test_against_hub import RealMail, served  # noqa: F401

from datacollab.agreement import project_text
from datacollab.errors import ExchangeError
from datacollab.remote import Kept
from party_world import refused

pytest.importorskip("fastapi", reason="the extra hub is not installed")
from datacollab_hub.store import METADATA, Store, allow_key

MEMBERS = ("a", "b", "analyst")
COLUMNS = [(table.name, column.name) for table in METADATA.sorted_tables for column in table.columns]


class Watched(RealMail):
    """Shares of both parties and a model for one are at a hub, and each member has seen its log."""

    def fill(self):
        store = Store.opened(self.hub.folder)
        with store.writing() as connection:
            allow_key(connection, self.keys["a"].public, 0)
        store.close()
        self.open_project()
        self.put("share", "a"), self.put("share", "b"), self.put("model", "b")
        self.kept, self.watchers = {}, {}
        for name in MEMBERS:
            has = []
            assert not self.push(name, self.remote(name), has=has.append).refused
            self.kept[name] = Kept(expected=tuple(has))
        for name in MEMBERS:
            self.kept[name] = self.remote(name).witness(self.kept[name], self.folder(name))
        self.before = self.look()[1]

    def look(self):
        """By member: codes of what was noticed, and what came into an empty inbox."""
        codes, came = {}, {}
        for name in MEMBERS:
            shutil.rmtree(self.root / name / "inbox", ignore_errors=True)
            codes[name] = self.noticed(name)
            came[name] = {file: (self.root / name / "inbox" / file).read_bytes() for file in self.inbox(name)}
        return codes, came

    def noticed(self, name):
        remote = self.watchers.get(name) or self.remote(name, attempts=2)
        self.watchers[name] = remote
        folder, before = self.folder(name), self.kept[name]
        codes = set()
        try:
            done, kept = self.pull(name, remote, before)
            codes = {error.code for error in done.refused.values()}
            remote.check_given(self.folder(name), before, remote.witness(kept, folder), done.refused)
            remote.status(folder)
        except ExchangeError as error:
            codes.add(error.code)
        return codes

    @contextmanager
    def changed(self, table):
        """A connection to the hub's database; what was in the table is put back."""
        (database,) = self.hub.folder.glob("*.sqlite")
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()
            try:
                yield connection
            finally:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(f'DELETE FROM "{table}"')
                for row in rows:
                    connection.execute(f'INSERT INTO "{table}" VALUES ({",".join("?" * len(row))})', row)
                connection.execute("COMMIT")

    def check(self):
        """Nobody gets something else, or less, without a word."""
        codes, came = self.look()
        assert {name for name in MEMBERS if came[name] != self.before[name]} <= {name for name in codes if codes[name]}
        return codes


@pytest.fixture(scope="module")
def mail(served, tmp_path_factory):  # noqa: F811
    mail = Watched(tmp_path_factory.mktemp("mail"))
    mail.hub = served
    mail.fill()
    yield mail
    for remote in mail.opened:
        remote.close()


def another(value):
    """Something of the same kind."""
    if value is None:
        return 1
    if isinstance(value, bytes):
        return value[:-9] + bytes([value[-9] ^ 1]) + value[-8:]
    if isinstance(value, int | float):
        return value + 1
    kinds = {"share": "sums", "model": "answers", "anchor": "share", "2": "3"}
    return kinds.get(value, value[:-1] + ("b" if value.endswith("a") else "a"))


@pytest.mark.slow
def test_what_nobody_changed_comes(mail):
    codes, came = mail.look()
    assert codes == {name: set() for name in MEMBERS}
    assert (
        came
        == mail.before
        == {
            "a": {"anchor.dcanchor": (mail.root / "a" / "anchor.dcanchor").read_bytes()},
            "b": {
                "anchor.dcanchor": (mail.root / "a" / "anchor.dcanchor").read_bytes(),
                "b.dcmodel": (mail.root / "analyst" / "outbox" / "b.dcmodel").read_bytes(),
            },
            "analyst": {
                f"{name}.dcshare": (mail.root / name / "outbox" / f"{name}.dcshare").read_bytes() for name in "ab"
            },
        }
    )


@pytest.mark.nightly
@pytest.mark.parametrize(("table", "column"), COLUMNS, ids=".".join)
def test_every_column_changed_in_every_row(mail, table, column):
    with mail.changed(table) as connection:
        for row, value in connection.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall():
            connection.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ? WHERE rowid = ?', (another(value), row))
        mail.check()


@pytest.mark.nightly
@pytest.mark.parametrize("table", [table.name for table in METADATA.sorted_tables])
def test_every_table_emptied(mail, table):
    with mail.changed(table) as connection:
        connection.execute(f'DELETE FROM "{table}"')
        mail.check()


@pytest.mark.parametrize(
    ("change", "who", "code"),
    [
        ("DELETE FROM files WHERE kind = 'model'", "b", "WITHHELD"),
        ("DELETE FROM files WHERE kind = 'anchor'", "a", "WITHHELD"),
        ("UPDATE files SET withdrawn = 1 WHERE kind = 'share'", "analyst", "WITHHELD"),
        ("UPDATE files SET project_digest = 'x' WHERE kind = 'share'", "analyst", "WITHHELD"),
        ("UPDATE files SET recipient = sender WHERE kind = 'model'", "b", "WITHHELD"),
        ("UPDATE files SET kind = 'answers' WHERE kind = 'model'", "b", "WRONG_KIND"),
        ("UPDATE files SET sha256 = hex(zeroblob(32)) WHERE kind = 'model'", "b", "HASH_MISMATCH"),
    ],
)
@pytest.mark.slow
def test_files_that_are_withheld_or_passed_off_as_others(mail, change, who, code):
    with mail.changed("files") as connection:
        connection.execute(change)
        assert code in mail.check()[who]


@pytest.mark.parametrize("change", ["deadline = '2030-01-01'", "quorum = quorum + 1", "revision = revision + 1"])
def test_what_the_owner_signed_is_repeated_as_it_is(mail, change):
    with mail.changed("projects") as connection:
        connection.execute(f"UPDATE projects SET {change}")
        assert all("WITHHELD" in codes for codes in mail.check().values())


@pytest.mark.slow
def test_bytes_that_were_changed_cut_or_swapped(mail):
    blobs = sorted(path for path in (mail.hub.folder / "blobs" / "files").rglob("*") if path.is_file())
    for change in (lambda data: another(data), lambda data: data[:-1], lambda data: blobs[0].read_bytes()):
        kept = {path: path.read_bytes() for path in blobs}
        for path in blobs[1:]:
            path.write_bytes(change(kept[path]))
        codes = mail.check()
        for path, data in kept.items():
            path.write_bytes(data)
        assert codes["analyst"]


@pytest.mark.slow
def test_the_last_project_file_shown_in_place_of_the_next(mail, tmp_path):
    later = replace(mail.project, revision=mail.project.revision + 1)
    (tmp_path / "project.toml").write_text(project_text(later, mail.keys["a"]))
    old = (mail.root / "project.toml").read_bytes(), mail.project.digest, mail.project.revision
    with mail.changed("log"), mail.changed("members"), mail.changed("projects") as connection:
        assert mail.push("a", mail.remote("a"), tmp_path / "project.toml").sent
        connection.execute("UPDATE projects SET (agreement, digest, revision) = (?, ?, ?)", old)
        for name in ("b", "analyst"):
            assert "WITHHELD" in mail.noticed(name)


def test_what_came_meanwhile_is_not_called_withheld(mail, monkeypatch):
    """Sent after the files were listed, and before the log was read."""
    remote, listed = mail.remote("b"), mail.remote("b").list(mail.folder("b"))
    with monkeypatch.context() as patched:
        patched.setattr(remote, "list", lambda folder: [each for each in listed if each.kind != "model"])
        done, kept = mail.pull("b", remote, Kept())
    seen = remote.witness(kept, mail.folder("b"))
    assert len(set(seen.owed) - set(seen.fetched)) == 1
    remote.check_given(mail.folder("b"), Kept(), seen, done.refused)
    with refused("WITHHELD"):
        remote.check_given(mail.folder("b"), seen, seen, done.refused)
