"""Work in the background: one piece at a time, and questions in its middle."""

import threading

import pytest

from datacollab.desk.web import Jobs
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


def test_the_end_comes_once_whatever_becomes_of_the_work():
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


def test_where_the_end_fails_that_is_told():
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
