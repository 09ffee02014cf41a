"""Requests: who made one, that nobody changed it, and that nothing else passes; the chain of the hub's log."""

import base64
import copy
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import KeyPair, PublicKey, canonical_json, digest
from datacollab.errors import ExchangeError
from datacollab_hub.requests import (
    CLOCK_WINDOW,
    LOG_START,
    check_body,
    check_hub_log,
    hub_entry,
    sign_request,
    verify_head,
    verify_request,
)

URL = "https://hub.example/v1/projects/0123/log?after=7"
BODY = b'{"name": "north"}'
NOW = 1_700_000_000
KEY, OTHER = KeyPair.generate(), KeyPair.generate()
KNOWN = {pair.public.fingerprint: pair.public for pair in (KEY, OTHER)}


def signed(method="POST", url=URL, body=BODY, key=KEY, now=NOW):
    return sign_request(method, url, {"Accept": "application/json"}, body, key, now=now)


def verified(headers, method="POST", url=URL, body=BODY, now=NOW, keys=KNOWN.get):
    return verify_request(method, url, headers, body, keys, now)


def refused(code, *args, **kwargs):
    with pytest.raises(ExchangeError) as caught:
        verified(*args, **kwargs)
    assert caught.value.code == code
    return str(caught.value)


@pytest.mark.parametrize(("method", "body"), [("POST", BODY), ("GET", b""), ("PATCH", bytes(range(256))), ("PUT", b"")])
def test_what_was_signed_is_verified(method, body):
    found = verified(signed(method, body=body), method, body=body)
    assert (found.key, found.created) == (KEY.public, NOW)
    assert len(base64.urlsafe_b64decode(found.nonce + "==")) == 16


def test_each_request_has_a_nonce_of_its_own_and_headers_of_any_case():
    assert verified(signed()).nonce != verified(signed()).nonce
    headers = {name.upper(): value for name, value in signed().items()}
    assert verified({**headers, "Content-Length": "17", "X-Forwarded-For": "é"}).key == KEY.public


def test_the_signature_is_that_of_the_standard():
    """Written from RFC 9421, 2.5 and 3.3.6, without the library."""
    headers = signed()
    parameters = headers["Signature-Input"].removeprefix("datacollab=")
    base = "\n".join(
        [
            '"@method": POST',
            '"@authority": hub.example',
            '"@path": /v1/projects/0123/log',
            '"@query": ?after=7',
            f'"content-digest": sha-256=:{base64.b64encode(hashlib.sha256(BODY).digest()).decode()}:',
            f'"@signature-params": {parameters}',
        ]
    )
    assert f";created={NOW};" in parameters
    assert f'keyid="{KEY.public.fingerprint}"' in parameters
    signature = base64.b64decode(headers["Signature"].removeprefix("datacollab=:").removesuffix(":"))
    KEY.public.verify(signature, base.encode())


@pytest.mark.parametrize(
    "changed",
    [
        *({"method": "DELETE"}, {"url": URL.replace("hub.example", "hub.example:8443")}),
        *({"url": URL.replace("0123", "0124")}, {"url": URL.replace("after=7", "after=8")}),
        *({"url": URL.partition("?")[0]}, {"body": BODY + b" "}, {"body": b""}),
    ],
)
def test_a_changed_request_is_refused(changed):
    refused("SIGNATURE_INVALID", signed(), **changed)


def test_a_body_that_was_added_and_signatures_of_two_requests_are_refused():
    refused("SIGNATURE_INVALID", signed(body=b""))
    digest = {"Content-Digest": signed()["Content-Digest"]}
    refused("SIGNATURE_INVALID", {**signed(body=b""), **digest})
    mine, others = signed(), signed(key=OTHER)
    refused("SIGNATURE_INVALID", {**mine, "Signature": others["Signature"]})
    refused("SIGNATURE_INVALID", {**mine, "Signature-Input": others["Signature-Input"]})
    mine, others = signed(), signed(key=OTHER)
    both = {
        name: f"{mine[name]}, {others[name].replace('datacollab=', 'second=', 1)}"
        for name in ("Signature", "Signature-Input")
    }
    refused("SIGNATURE_INVALID", {**mine, **both})


@pytest.mark.parametrize("name", ["Signature", "Signature-Input"])
def test_a_request_without_signature_is_refused(name):
    headers = signed()
    del headers[name]
    refused("SIGNATURE_MISSING", headers)


@pytest.mark.parametrize("part", ["@method", "@authority", "@path", "@query"])
def test_a_signature_that_covers_less_is_refused(part, monkeypatch):
    """Though it is the key's, and fits what it covers."""
    wanted = ("@method", "@authority", "@path", "@query", "content-digest")
    monkeypatch.setattr(
        "datacollab_hub.requests._signing.parts_to_sign", lambda _: tuple(name for name in wanted if name != part)
    )
    refused("SIGNATURE_INVALID", signed())


def test_a_signature_for_another_purpose_is_refused(monkeypatch):
    monkeypatch.setattr("datacollab_hub.requests._signing.TAG", "something-else")
    refused("SIGNATURE_INVALID", signed())


@pytest.mark.parametrize("nonce", ["short", "x" * 65, "../" * 10])
def test_a_nonce_that_is_none_is_refused(nonce, monkeypatch):
    monkeypatch.setattr("secrets.token_urlsafe", lambda _: nonce)
    refused("SIGNATURE_INVALID", signed())


def test_who_signed_has_to_have_the_key_that_was_looked_up():
    stranger = KeyPair.generate()
    assert stranger.public.fingerprint in refused("KEY_UNKNOWN", signed(key=stranger))
    # The look-up may find keys by what the request says; the key has to have that fingerprint.
    refused("KEY_UNKNOWN", signed(), keys=lambda _: OTHER.public)
    degenerate = PublicKey(bytes([1]) + bytes(31), KEY.public.sealing)
    headers = {
        name: value.replace(KEY.public.fingerprint, degenerate.fingerprint) if name == "Signature-Input" else value
        for name, value in signed().items()
    }
    refused("SIGNATURE_INVALID", headers, keys=lambda _: degenerate)


def test_a_look_up_that_fails_is_no_wrong_signature_and_what_is_no_fingerprint_is_not_looked_up():
    """The caller's own trouble is told to the caller, and not to whoever asks."""

    def away(_):
        raise ConnectionError("the database is away")

    with pytest.raises(ConnectionError, match="away"):
        verified(signed(), keys=away)
    asked, strange = [], "'; DROP TABLE keys"
    headers = {name: value.replace(KEY.public.fingerprint, strange) for name, value in signed().items()}
    message = refused("KEY_UNKNOWN", headers, keys=asked.append)
    assert asked == []
    assert strange not in message


def test_who_asks_is_known_before_the_body():
    found = verify_head("POST", URL, signed(), KNOWN.get, NOW)
    assert found.key == KEY.public
    check_body(found, BODY)
    for other in (b"", BODY + b" "):
        with pytest.raises(ExchangeError) as caught:
            check_body(found, other)
        assert caught.value.code == "SIGNATURE_INVALID"


@pytest.mark.parametrize("apart", [-CLOCK_WINDOW, 0, CLOCK_WINDOW])
def test_clocks_may_differ_a_little(apart):
    assert verified(signed(now=NOW + apart)).created == NOW + apart


@pytest.mark.parametrize(
    ("apart", "said"), [(-86_400, "86400 seconds ago"), (CLOCK_WINDOW + 1, "301 seconds from now")]
)
def test_clocks_that_differ_much_are_named(apart, said):
    assert said in refused("CLOCK_SKEW", signed(now=NOW + apart))


def test_who_signed_is_asked_before_the_clock():
    """Else anybody could ask what the time is there, and be told that a key is known."""
    refused("SIGNATURE_INVALID", signed(now=NOW - 86_400), method="DELETE")


@given(st.sampled_from(["Signature", "Signature-Input", "Content-Digest"]), st.text(max_size=300))
def test_no_header_is_more_than_refused(name, value):
    with pytest.raises(ExchangeError):
        verified({**signed(), name: value})


@given(st.data())
def test_no_changed_letter_passes(data):
    headers = signed()
    name = data.draw(st.sampled_from(sorted(headers)))
    position = data.draw(st.integers(0, len(headers[name]) - 1))
    letter = data.draw(
        st.characters(min_codepoint=33, max_codepoint=126).filter(lambda c: c != headers[name][position])
    )
    changed = {**headers, name: headers[name][:position] + letter + headers[name][position + 1 :]}
    try:
        found = verified(changed)
    except ExchangeError:
        return
    # Base64's last letter and the label have bits and letters that say nothing.
    assert (found.key, found.created) == (KEY.public, NOW)


@pytest.mark.parametrize("url", ["", "/v1/projects", "https://", "https://hub.example/ö", "https://hub.example/a b"])
def test_no_address_is_more_than_refused(url):
    refused("SIGNATURE_INVALID", signed(), url=url)


PROJECT = "0" * 32


def chain(n_entries, project=PROJECT):
    entries, previous = [], LOG_START
    for seq in range(1, n_entries + 1):
        entries.append(
            hub_entry(project, seq, f"2027-01-{seq:02}T00:00:00Z", "me", "received", {"n": seq, "s": "é"}, previous)
        )
        previous = entries[-1]["digest"]
    return entries


def broken(*args, **kwargs):
    with pytest.raises(ExchangeError) as caught:
        check_hub_log(*args, **kwargs)
    assert caught.value.code == "LOG_BROKEN"
    return str(caught.value)


def test_a_log_and_its_continuation_are_checked_by_the_digests_of_the_page():
    entries = chain(5)
    head = check_hub_log(PROJECT, entries)
    assert head == entries[-1]["digest"]
    assert check_hub_log(PROJECT, entries[2:], after=2, previous=entries[1]["digest"]) == head
    assert check_hub_log(PROJECT, [], after=5, previous=head) == head
    entry = chain(1)[0]
    said = {"project": PROJECT, **{name: value for name, value in entry.items() if name != "digest"}}
    assert entry["digest"] == digest(b"datacollab hub log 1\n" + canonical_json(said))


@pytest.mark.parametrize(
    ("name", "value"),
    [("seq", 3), ("time", "later"), ("who", "you"), ("action", "fetched"), ("facts", {}), ("facts", []),
     ("previous", LOG_START), ("digest", LOG_START), ("time", 3), ("facts", {1: 2})],
)  # fmt: skip
def test_a_changed_entry_is_named(name, value):
    entries = copy.deepcopy(chain(4))
    entries[1][name] = value
    told = broken(PROJECT, entries)
    assert "Entry 2 " in told
    assert f"in the project {PROJECT}" in told


def test_what_is_left_out_moved_or_added_is_noticed():
    entries = chain(4)
    assert "Entry 2 " in broken(PROJECT, [entries[0], *entries[2:]])
    assert "Entry 2 " in broken(PROJECT, [entries[0], entries[2], entries[1], entries[3]])
    assert "Entry 3 " in broken(PROJECT, [*entries[:2], entries[1]])
    assert "Entry 1 " in broken(PROJECT, [{**entries[0], "more": 1}])
    assert "Entry 1 " in broken(PROJECT, [["no", "entry"]])
