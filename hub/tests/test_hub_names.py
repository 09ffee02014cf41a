"""Names that would be more than names: lines of a header, of a terminal, of a page, and paths."""

import pytest

from hub_world import refused

CHANGING = [
    "a\r\nSet-Cookie: x=1",
    "a\nb",
    "a\x00",
    "a\x1b[2J",
    "\N{RIGHT-TO-LEFT OVERRIDE}a",
    "\N{LINE SEPARATOR}",
    " a",
]
TEXTS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "../../etc/passwd",
    "{{7*7}}",
    "a%0d%0ab",
    "';--",
]
PATHS = ["%00", "%ff%fe", "..%2f..%2fhub.db", "%2e%2e", "a%0d%0aX-Injected:%20yes", "%3Cscript%3E", "0" * 64 + "%20"]


@pytest.mark.parametrize("name", CHANGING)
def test_a_name_is_one_line_without_controls(world, name):
    world.open_project()
    for path, body in (("", {}), ("/{p}/invitations", {"role": "party", "days": 1})):
        answer = world.ask("owner", "POST", f"/v1/projects{path}", {"name": name, **body})
        assert refused(answer, "REQUEST_MALFORMED", 400).isprintable()


@pytest.mark.parametrize("name", TEXTS)
def test_what_means_something_elsewhere_is_text_here(world, name):
    world.open_project(name)
    for answer in (world.ask("owner", "GET", "/v1/projects/{p}"), world.ask("owner", "GET", "/v1/projects")):
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "application/json"
        (found,) = answer.json().get("projects", [answer.json()])
        assert found["name"] == name
    world.admit("auditor")
    assert world.invite("party", name)


@pytest.mark.parametrize("name", ["con", "NUL.a", "com1"])
def test_no_party_is_invited_by_the_name_of_a_device(world, name):
    world.open_project()
    body = {"name": name, "role": "party", "days": 1}
    refused(world.ask("owner", "POST", "/v1/projects/{p}/invitations", body), "REQUEST_MALFORMED", 400)


@pytest.mark.parametrize("part", PATHS)
@pytest.mark.parametrize("place", ["files/{}", "uploads/{}", "requests/{}"])
@pytest.mark.slow
def test_paths_lead_nowhere_else(agreed, part, place):
    method, body = {"f": ("GET", None), "u": ("DELETE", None), "r": ("POST", {"approve": True})}[place[0]]
    answer = agreed.ask("owner", method, "/v1/projects/{p}/" + place.format(part), body)
    assert answer.status_code in (401, 404)  # a client may have put the path otherwise than it was signed
    assert "X-Injected" not in answer.headers
    assert part not in answer.text
