"""Arrays and JSON in bundles: what is written is read, and nothing else."""

import contextlib
import hashlib
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from datacollab.bundle import arrays_to_bytes, bytes_to_arrays, canonical_json, digest, parse_json
from datacollab.errors import ExchangeError
from refusals import refused_with

DTYPES = ["bool", "int32", "int64", "float32", "float64"]
ARRAYS = st.dictionaries(
    st.text("abcxyz_0", min_size=1, max_size=5),
    hnp.arrays(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
    max_size=4,
)


def made(header, body=b""):
    """Bytes in the format of safetensors, with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def outcome(function, *arguments, **options):
    """What a function returns, or the code with which it refuses."""
    try:
        return function(*arguments, **options)
    except ExchangeError as error:
        return error.code


@given(ARRAYS)
def test_arrays_come_back_to_the_bit(arrays):
    read = bytes_to_arrays(arrays_to_bytes(arrays), what="x")
    assert list(read) == sorted(arrays)
    for name, array in arrays.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
        assert read[name].tobytes() == array.tobytes()
        assert read[name].flags.writeable
        assert read[name].dtype.isnative


def test_equal_arrays_give_equal_bytes_in_any_order_and_layout():
    array = np.arange(12.0).reshape(3, 4)
    plain = arrays_to_bytes({"x": array})
    for other in (np.asfortranarray(array), array.astype(">f8"), np.repeat(array, 2, axis=1)[:, ::2]):
        assert arrays_to_bytes({"x": other}) == plain
    # The library's own tables are ordered anew each time, so that a few repetitions show what depends on them.
    arrays = {name: np.full(3, ord(name), dtype=DTYPES[ord(name) % 5]) for name in "abcdefgh"}
    orders = itertools.islice(itertools.permutations(arrays.items()), 50)
    assert len({arrays_to_bytes(dict(order)) for order in orders}) == 1


@pytest.mark.parametrize("dtype", ["float16", "complex128", "int8", "uint64", "O", "U3", "datetime64[s]"])
def test_other_types_are_not_written(dtype):
    with pytest.raises(TypeError, match="'weights'"):
        arrays_to_bytes({"weights": np.zeros(2, dtype=dtype)})


def test_an_oracle_reads_the_documented_layout():
    data = arrays_to_bytes({"x": np.array([[1.0, 2.0]]), "n": np.array(7)})
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    start, end = header["x"]["data_offsets"]
    assert header["x"]["dtype"] == "F64"
    assert header["x"]["shape"] == [1, 2]
    assert_array_equal(np.frombuffer(data[8 + length + start : 8 + length + end], "<f8"), [1.0, 2.0])
    assert_array_equal(bytes_to_arrays(made(header, data[8 + length :]), what="x")["n"], 7)


X = {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("data", "word"),
    [
        *((b"", "start"), (b"\x00" * 7, "start"), (b"\xff" * 8 + b"{}", "start")),
        *(((2**20 + 1).to_bytes(8, "little") + b" " * (2**20 + 1), "start"), (made(b"[]"), "besides")),
        (made({"x": X, "__metadata__": {"note": "hidden"}}, bytes(8)), "besides"),
        *((made(b'{"x":%b,"x":%b}' % ((json.dumps(X).encode(),) * 2), bytes(8)), "twice"), (made({"x": X}), "fit")),
        *((made({"x": X}, bytes(9)), "fit"), (made({"x": X, "y": X}, bytes(8)), "fit")),
        *((made({"x": {**X, "shape": [2]}}, bytes(8)), "fit"), (made({"x": {**X, "shape": [-1]}}, bytes(8)), "fit")),
        (made({"x": {**X, "shape": [2**63, 2]}}, bytes(8)), "fit"),
        (made({"x": {"dtype": "F64", "shape": [0, 2**62], "data_offsets": [0, 0]}}), ""),
        (made({"x": {"dtype": "F64", "shape": [1] * 70, "data_offsets": [0, 8]}}, bytes(8)), "shape"),
        (made({"x": {**X, "dtype": "PICKLE"}}, bytes(8)), "fit"),
        (made({"x": {**X, "dtype": "U64"}}, bytes(8)), "type"),
        (made({"x": {"dtype": "BOOL", "shape": [8], "data_offsets": [0, 8]}}, b"\x02" * 8), "logical"),
    ],
)
def test_hostile_arrays_are_refused(data, word):
    with refused_with("BUNDLE_MALFORMED", match=f"share.safetensors.*{word}"):
        bytes_to_arrays(data, what="share.safetensors")


@given(st.data())
def test_changed_bytes_are_refused_or_are_arrays_of_the_accepted_types(data):
    original = arrays_to_bytes({"x": np.arange(6.0).reshape(2, 3), "ok": np.array([True, False]), "n": np.array(3)})
    changed = bytearray(original)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    arrays = outcome(bytes_to_arrays, bytes(changed), what="x")
    assert arrays == "BUNDLE_MALFORMED" or all(array.dtype in DTYPES for array in arrays.values())


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NUMBERS = st.integers(-(10**38), 10**38) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


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
        *((text, "given twice") for text in (b'{"a":1,"a":2}', b'[{"b":{"a":1,"a":1}}]')),
        *((text, "not finite") for text in (b"[NaN]", b"-Infinity", b"1e999")),
        *((text, "UTF-8") for text in (b"\xff", b'"\\ud800"')),
        *((text, "deeply") for text in (b"[" * 33 + b"]" * 33, b"[" * 1_000_000, b'{"a":' * 40 + b"1" + b"}" * 40)),
        *((b"", "line 1, column 1"), (b'{"a":\n1,}', "line 2"), (b"9" * 5000, "digits"), (b'"\\"' * 300_000, "line")),
    ],
)
def test_hostile_json_is_refused(data, word):
    with refused_with("BUNDLE_MALFORMED", match=f"a/facts.*{word}"):
        parse_json(data, what="a/facts")


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
    with refused_with("BUNDLE_MALFORMED", match="^facts") as caught:
        parse_json(b'{"patient": "Xaver Huber", "patient": 1}', what="facts")
    found = caught.value
    assert "Xaver" not in str(found)
    assert found.__suppress_context__ or "Xaver" not in str(found.__context__)
