"""Work in the background, with questions in its middle; uploads, closed to others and under names of the desk's own."""

import io
import stat
import threading

import pytest

from datacollab.desk.web import Chosen, DeskFiles, Jobs
from datacollab.errors import ExchangeError
from party_world import refused


def test_one_piece_of_work_at_a_time():
    jobs, free = Jobs(), threading.Event()
    first = jobs.start("One", "/one", lambda job: free.wait(10))
    with refused("BUSY"):
        jobs.start("Two", "/two", lambda job: None)
    free.set()
    assert first.wait(10)
    jobs.start("Two", "/two", lambda job: 2)
    assert jobs.last.wait(10)
    assert (jobs.last.result, jobs.running) == (2, None)


def test_work_asks_and_goes_on_with_the_answer():
    jobs = Jobs()
    job = jobs.start("Asking", "/", lambda job: job.ask("May it?") + "!")
    assert job.wait(10)
    asked = job.question
    assert (asked.about, job.is_done) == ("May it?", False)
    with refused("NOT_APPROVED"):
        job.answer("no", "another")
    job.answer("yes", asked.id)
    assert job._done.wait(10)
    assert job.result == "yes!"
    with refused("NOT_APPROVED"):
        job.answer("no", asked.id)


def test_of_many_answers_one_counts():
    jobs, said = Jobs(), []
    job = jobs.start("Asking", "/", lambda job: job.ask("May it?"))
    assert job.wait(10)
    asked, together = job.question.id, threading.Barrier(8)

    def answer(number):
        together.wait(10)
        try:
            job.answer(number, asked)
        except ExchangeError:
            return
        said.append(number)

    threads = [threading.Thread(target=answer, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert job._done.wait(10)
    assert said == [job.result]


def test_the_end_comes_once_whatever_becomes_of_the_work_and_its_failure_is_told():
    def fails(job):
        raise ValueError("wrong")

    jobs, ended, free = Jobs(), [], threading.Event()
    assert jobs.start("One", "/one", fails, at_end=lambda: ended.append("one")).wait(10)
    job = jobs.start("One", "/one", lambda job: free.wait(10), at_end=lambda: ended.append("one"))
    with refused("BUSY"):
        jobs.start("Two", "/two", fails, at_end=lambda: ended.append("two"))
    free.set()
    assert job.wait(10)
    assert ended == ["one", "two", "one"]

    def fails():
        raise PermissionError("no")

    jobs = Jobs()
    assert jobs.start("One", "/", lambda job: None, at_end=fails).wait(10)
    assert jobs.last.refusal.code == "PermissionError"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (ExchangeError("NOT_SHARED", "Party 'a' has not shared."), "NOT_SHARED", "Party 'a' has not shared."),
        (ValueError("wrong"), "ValueError", "wrong"),
        (KeyError("patient-00017"), "BUG", "A KeyError that should not happen. Nothing was sent."),
    ],
)
def test_what_went_wrong_is_kept_without_the_words_of_what_nobody_foresaw(error, code, words):
    def work(job):
        raise error

    jobs = Jobs()
    job = jobs.start("Failing", "/", work)
    assert job.wait(10)
    assert (job.refusal.code, job.refusal.message) == (code, words)


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
