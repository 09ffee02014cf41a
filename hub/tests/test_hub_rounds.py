"""Further sums of a party: one file after each request of the analyst for a round, whatever a race lets through."""

import threading

import pytest

from datacollab.bundle import digest, pack, read_envelope
from hub_world import KEYS, PROJECT, bundle, make_project, refused

READING = "datacollab_hub.service._uploading.read_envelope"


def sums(who="north", number=1, project=PROJECT):
    """Sums of a party, others for each number."""
    return bundle("sums", who, party=who, project=project, size=1000 + number)


def request(number=2, project=PROJECT):
    """The analyst's request for a round."""
    return bundle("round", "analyst", project=project, more={"number": number})


def taken(answer):
    assert answer.status_code == 201, answer.text


def withdraw(world, who, data):
    assert world.ask(who, "DELETE", f"/v1/projects/{{p}}/files/{digest(data)}").status_code == 200


def standing(world):
    """Who has shared and has not, for whom a file waits, and how many rounds were asked for."""
    said = world.ask("south", "GET", "/v1/projects/{p}").json()
    return said["shared"], said["missing"], said["waiting"], said["rounds"]


@pytest.mark.slow
def test_further_sums_are_taken_once_after_each_request(agreed):
    taken(agreed.send("north", "sums", sums()))
    for number in (2, 3):
        message = refused(agreed.start("north", "sums", sums(number=number)), "ALREADY_SHARED", 409)
        assert "ask the analyst to push it" in message
        assert "withdraw these first" in message
        # The very file of before may be sent again, whenever that is.
        assert agreed.start("north", "sums", sums(number=number - 1)).status_code == 200
        taken(agreed.send("analyst", "round", request(number)))
        # Of whoever has sent none, the first ones are taken.
        taken(agreed.send("south", "sums", sums("south", number)))
        taken(agreed.send("north", "sums", sums(number=number)))
    refused(agreed.start("north", "sums", sums(number=4)), "ALREADY_SHARED", 409)
    refused(agreed.start("south", "sums", sums("south", 4)), "ALREADY_SHARED", 409)


def test_of_two_uploads_at_once_one_wins(agreed, monkeypatch):
    """Both are whole and read before either is accepted."""
    for round_number in (1, 2):
        if round_number == 2:
            taken(agreed.send("analyst", "round", request()))
        files = [sums(number=10 * round_number + each) for each in range(2)]
        uploads = [agreed.start("north", "sums", data).json()["upload"] for data in files]
        both = threading.Barrier(2, timeout=60)

        def read(*args, both=both, **kwargs):
            found = read_envelope(*args, **kwargs)
            both.wait()
            return found

        answers = []

        def end(upload, data, answers=answers):
            answers.append(agreed.part("north", upload, 0, data))

        monkeypatch.setattr(READING, read)
        threads = [threading.Thread(target=end, args=each) for each in zip(uploads, files, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        monkeypatch.undo()
        assert sorted(each.status_code for each in answers) == [201, 409]
        refused(next(each for each in answers if each.status_code == 409), "ALREADY_SHARED")
        assert len([each for each in agreed.files("north") if each["kind"] == "sums"]) == round_number
    # Of what was refused nothing is left.
    assert len(agreed.blobs()) == 3


def test_an_upload_that_was_begun_before_the_other_one_ended_is_refused_at_its_end(agreed):
    first, late = sums(), sums(number=2)
    upload = agreed.start("north", "sums", late).json()["upload"]
    taken(agreed.send("north", "sums", first))
    refused(agreed.part("north", upload, 0, late), "ALREADY_SHARED", 409)
    upload = agreed.start("north", "sums", first)
    assert upload.json() == {"file": digest(first)}


@pytest.mark.slow
def test_what_was_taken_back_makes_room_and_a_request_that_was_asks_for_nothing(agreed):
    taken(agreed.send("north", "sums", sums()))
    taken(agreed.send("analyst", "round", request()))
    withdraw(agreed, "analyst", request())
    refused(agreed.start("north", "sums", sums(number=2)), "ALREADY_SHARED", 409)
    withdraw(agreed, "north", sums())
    taken(agreed.send("north", "sums", sums(number=2)))
    # Sent again it asks anew, and an answer in place of another needs no further request.
    taken(agreed.send("analyst", "round", request()))
    for number in (3, 4):
        taken(agreed.send("north", "sums", sums(number=number)))
        refused(agreed.start("north", "sums", sums(number=9)), "ALREADY_SHARED", 409)
        withdraw(agreed, "north", sums(number=number))


@pytest.mark.slow
def test_each_project_file_has_rounds_of_its_own(agreed):
    taken(agreed.send("analyst", "round", request()))
    taken(agreed.send("north", "sums", sums()))
    second = make_project(revision=2)
    agreed.put_agreement(second)
    assert standing(agreed) == ([], ["north", "south"], [], 0)
    # In a new run the party's last sums, and the last request, are those of the new project file.
    taken(agreed.send("north", "sums", sums(number=2, project=second)))
    refused(agreed.start("north", "sums", sums(number=3, project=second)), "ALREADY_SHARED", 409)
    refused(agreed.send("analyst", "round", request(3)), "PROJECT_HASH_MISMATCH", 422)
    taken(agreed.send("analyst", "round", request(project=second)))
    taken(agreed.send("north", "sums", sums(number=3, project=second)))


def test_a_request_comes_from_the_analyst_and_says_its_number(agreed):
    for who in ("north", "owner"):
        refused(agreed.start(who, "round", request()), "NOT_ALLOWED", 403)
    refused(agreed.start("analyst", "round", request(), "north"), "REQUEST_MALFORMED", 400)
    unnumbered = pack("datacollab.round", {"project_digest": PROJECT.digest}, {}, key=KEYS["analyst"])
    refused(agreed.send("analyst", "round", unnumbered), "WRONG_KIND", 422)


@pytest.mark.slow
def test_the_overview_says_who_has_answered_the_last_request(agreed):
    both = ["north", "south"]
    assert standing(agreed) == ([], both, [], 0)
    taken(agreed.send("north", "sums", sums()))
    assert standing(agreed) == (["north"], ["south"], [], 0)
    taken(agreed.send("south", "sums", sums("south")))
    assert standing(agreed) == (both, [], [], 0)
    taken(agreed.send("analyst", "round", request()))
    assert standing(agreed) == ([], both, both, 1)
    agreed.ask("north", "GET", f"/v1/projects/{{p}}/files/{digest(request())}")
    assert standing(agreed) == ([], both, ["south"], 1)
    taken(agreed.send("north", "sums", sums(number=2)))
    assert standing(agreed) == (["north"], ["south"], ["south"], 1)
    # South got the request by another way.
    taken(agreed.send("south", "sums", sums("south", 2)))
    assert standing(agreed) == (both, [], [], 1)
    taken(agreed.send("analyst", "round", request(3)))
    assert standing(agreed) == ([], both, both, 2)
    withdraw(agreed, "analyst", request(3))
    assert standing(agreed) == (both, [], [], 1)


@pytest.mark.slow
@pytest.mark.parametrize("is_fetched", [False, True])
def test_a_page_names_the_commands_that_answer(agreed, is_fetched):
    for name in ("north", "south"):
        taken(agreed.send(name, "sums", sums(name)))
    taken(agreed.send("analyst", "round", request()))
    taken(agreed.send("south", "sums", sums("south", 2)))
    if is_fetched:
        agreed.ask("north", "GET", f"/v1/projects/{{p}}/files/{digest(request())}")
    pages = {who: agreed.browser(who).get(f"/projects/{agreed.project}").text for who in ("north", "south", "analyst")}
    assert "datacollab party share TABLE --round inbox/round.dcround" in pages["north"]
    assert "last request for a round count" in pages["north"]
    assert "What the analyst made for you" not in pages["north"]
    assert "What waits for you" not in pages["south"]
    assert "1 of 2" in pages["analyst"]
    assert "Enough parties" not in pages["analyst"]
