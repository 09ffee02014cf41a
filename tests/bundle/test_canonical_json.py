import contextlib
import hashlib
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import canonical_json, digest, parse_json
from datacollab.errors import ExchangeError

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NUMBERS = st.integers(-(10**38), 10**38) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def assert_malformed(data, *words):
    with pytest.raises(ExchangeError) as caught:
        parse_json(data, what="a/facts")
    assert caught.value.code == "BUNDLE_MALFORMED"
    for word in ("a/facts", *words):
        assert word in str(caught.value)


@given(VALUES)
def test_what_is_written_is_read(value):
    data = canonical_json(value)
    assert parse_json(data, what="x") == value
    assert canonical_json(parse_json(data, what="x")) == data


@given(st.dictionaries(TEXT, NUMBERS, max_size=6), st.randoms())
def test_the_order_of_keys_does_not_matter(value, random):
    keys = list(value)
    random.shuffle(keys)
    assert canonical_json({key: value[key] for key in keys}) == canonical_json(value)


def test_the_spelling():
    assert (
        canonical_json({"é": (1, 2.0), "a": {"z": None, "b": True}}) == '{"a":{"b":true,"z":null},"é":[1,2.0]}'.encode()
    )
    assert digest(b"abc") == hashlib.sha256(b"abc").hexdigest()


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": "\ud800"}])
def test_what_json_cannot_say_is_refused(value):
    with pytest.raises(ValueError, match="JSON compliant|surrogates"):
        canonical_json(value)


@pytest.mark.parametrize("value", [{1: 2}, [{(1,): 2}], {"a": b""}, object()])
def test_what_is_no_json_is_refused(value):
    with pytest.raises(TypeError):
        canonical_json(value)


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b'{"a":1,"a":2}', "given twice"),
        (b'[{"b":{"a":1,"a":1}}]', "given twice"),
        (b"[NaN]", "not finite"),
        (b"-Infinity", "not finite"),
        (b"1e999", "not finite"),
        (b"\xff", "UTF-8"),
        (b'"\\ud800"', "UTF-8"),
        (b"", "line 1, column 1"),
        (b'{"a":\n1,}', "line 2"),
        (b"[" * 33 + b"]" * 33, "deeply"),
        (b"[" * 1_000_000, "deeply"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "deeply"),
        (b"9" * 5000, "digits"),
        (b'"\\"' * 300_000, "line"),
    ],
)
def test_hostile_json_is_refused(data, word):
    assert_malformed(data, word)


def test_brackets_in_text_are_no_depth():
    value = {"a": "[" * 100 + '\\"{' * 100}
    assert parse_json(canonical_json(value), what="x") == value
    nested = json.loads("[" * 32 + "]" * 32)
    assert parse_json(canonical_json(nested), what="x") == nested


@given(st.binary(max_size=200) | st.text(alphabet='[]{}",:0\\u1eE-n\n', max_size=60).map(str.encode))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(ExchangeError):
        assert parse_json(data, what="x") == json.loads(data)


def test_a_refusal_shows_nothing_of_the_text():
    with pytest.raises(ExchangeError) as caught:
        parse_json(b'{"patient": "Xaver Huber", "patient": 1}', what="facts")
    assert "Xaver" not in str(caught.value)
    assert (
        caught.value.__context__ is None
        or caught.value.__suppress_context__
        or "Xaver" not in str(caught.value.__context__)
    )
