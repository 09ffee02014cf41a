"""Uploads are kept in the folder, closed to others, under names that are not the sender's."""

import io
import stat

import pytest

from datacollab.desk.web import Chosen, DeskFiles
from party_world import refused

ENDINGS = (".csv", ".parquet")


def keep(files, name, data=b"a,b\n1,2\n"):
    taken = files.take(io.BytesIO(data), name, as_name="table", endings=ENDINGS)
    kept = files.keep(taken, as_name="table")
    taken.discard()
    return kept


@pytest.mark.parametrize("name", ["patients.csv", "../../etc/x.CSV", "C:\\me\\x.csv", "a\n<b>.csv", "x.parquet"])
def test_only_the_ending_of_a_name_is_kept(tmp_path, name):
    files = DeskFiles(tmp_path)
    kept = keep(files, name)
    assert kept.parent == tmp_path / "desk"
    assert kept.name in ("table.csv", "table.parquet")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [kept]


@pytest.mark.parametrize("name", ["x", "x.exe", ".csv", "x.csv/..", "x.csv\x00", "x.dcmodel"])
def test_another_ending_is_refused(tmp_path, name):
    with refused("TABLE_UNREADABLE"):
        keep(DeskFiles(tmp_path), name)


def test_the_next_upload_takes_the_place_of_the_last_one(tmp_path):
    files = DeskFiles(tmp_path)
    keep(files, "one.parquet")
    kept = keep(files, "two.csv", b"new")
    assert kept.read_bytes() == b"new"
    assert files.find_copy("table") == kept
    assert len(list(files.path.iterdir())) == 1
    files.remove("table")
    assert files.find_copy("table") is None


def test_an_upload_is_beside_all_others_and_closed_until_it_is_discarded(tmp_path):
    files = DeskFiles(tmp_path)
    one, two = (files.take(io.BytesIO(data), "x.csv", as_name="new", endings=ENDINGS) for data in (b"1", b"2"))
    assert (one.path.read_bytes(), two.path.read_bytes()) == (b"1", b"2")
    assert stat.S_IMODE(one.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(one.path.parent.stat().st_mode) == 0o700
    for each in (one, two, one):
        each.discard()
    assert list(files.path.iterdir()) == []


def test_a_file_that_lies_elsewhere_is_neither_moved_nor_removed(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("a")
    files, chosen = DeskFiles(tmp_path), Chosen(table)
    assert files.keep(chosen, as_name="table") == table
    chosen.discard()
    assert table.read_text() == "a"


def test_an_upload_that_ends_too_early_leaves_nothing(tmp_path):
    class Broken(io.BytesIO):
        def read(self, size=-1):
            raise OSError("gone")

    files = DeskFiles(tmp_path)
    with pytest.raises(OSError, match="gone"):
        files.take(Broken(), "x.csv", as_name="new", endings=ENDINGS)
    assert list(files.path.iterdir()) == []


def test_a_link_in_the_place_of_an_upload_is_not_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("old")
    files = DeskFiles(tmp_path)
    (files.make_folder() / "table.csv").symlink_to(secret)
    keep(files, "x.csv", b"new")
    assert secret.read_text() == "old"
