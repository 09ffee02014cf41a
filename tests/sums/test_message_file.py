"""A masked message as a file: who can read it, and whose it is."""

import io
import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from datacollab.bundle import KeyPair, arrays_to_bytes, pack, read_envelope, seal, unpack, unseal
from datacollab.errors import ExchangeError
from datacollab.sums import MASKED_SUM_KIND, FixedPoint, MaskedSum, MaskKey, message_to_bytes, read_message
from party_world import refusal

PARTY, OTHER, ANALYST = (KeyPair(bytes([k]) * 32, bytes([k + 1]) * 32) for k in (1, 3, 5))


@pytest.fixture(scope="module", params=[FixedPoint(), FixedPoint(128, 64)], ids=repr)
def message(request):
    keys = {name: MaskKey.generate() for name in ("north", "south", 3)}
    roster = {name: key.public for name, key in keys.items()}
    agreed = MaskedSum({"run": 1}, roster, noise=np.full(7, 0.1), numbers=request.param)
    return agreed.mask("north", np.arange(7.0), keys["north"])


@pytest.fixture(scope="module")
def data(message):
    return message_to_bytes(message, PARTY, ANALYST.public)


def test_the_analyst_reads_what_the_party_wrote(message, data, tmp_path):
    (tmp_path / "north.dcsum").write_bytes(data)
    for source in (data, tmp_path / "north.dcsum"):
        found = read_message(source, ANALYST, signed_by=PARTY.public)
        assert (found.party, found.context, found.tags) == ("north", message.context, message.tags)
        assert_array_equal(found.words, message.words)


def test_nobody_else_reads_it_and_nobody_else_can_have_sent_it(message, data):
    refusal("SEAL_NOT_FOR_YOU", read_message, data, OTHER, signed_by=PARTY.public)
    refusal("SIGNATURE_INVALID", read_message, data, ANALYST, signed_by=OTHER.public)
    outside = unpack(data).members["sealed.bin"]
    assert all(word.tobytes() not in outside for word in message.words[:, 0])
    assert set(unpack(data).facts) == {"party", "context", "versions"}


def test_all_messages_of_a_sum_have_one_size(message, data):
    keys = {name: MaskKey.generate() for name in ("north", "south", 3)}
    numbers = FixedPoint(64 * message.words.shape[1], 32)
    agreed = MaskedSum({}, {name: key.public for name, key in keys.items()}, noise=np.zeros(7), numbers=numbers)
    other = agreed.mask("north", np.full(7, 1e6), keys["north"])
    assert len(message_to_bytes(other, PARTY, ANALYST.public)) == len(data)


def parts(data):
    outer = unpack(data)
    purpose = f"masked sum of north in {outer.facts['context']}"
    return outer, unpack(unseal(outer.members["sealed.bin"], ANALYST, purpose=purpose)), purpose


@pytest.mark.parametrize("changed", ["party", "context", "tags", "words", "outside", "inside", "more"])
def test_contents_that_contradict_one_another_are_refused(data, changed):
    outer, inner, purpose = parts(data)
    facts, said, members = dict(inner.facts), dict(outer.facts), dict(inner.members)
    if changed == "party":
        facts["party"] = "south"
    elif changed == "context":
        facts["context"] = "00" * 32
    elif changed == "tags":
        facts["tags"] = [["00", "south"], ["00" * 32, 3]]
    elif changed == "words":
        members["words.safetensors"] = arrays_to_bytes({"words": np.zeros((8, 1))})
    elif changed == "outside":
        said["rows"] = 7
    elif changed == "inside":
        facts["rows"] = 7
    else:
        members["more.bin"] = b""
    sealed = {"sealed.bin": seal(pack(MASKED_SUM_KIND, facts, members), [ANALYST.public], purpose=purpose)}
    forged = pack(MASKED_SUM_KIND, said, sealed, key=PARTY)
    refusal("SHARE_MALFORMED", read_message, forged, ANALYST, signed_by=PARTY.public)


def test_a_file_that_was_cut_or_is_of_another_kind_is_refused(data):
    with pytest.raises(ExchangeError):
        read_message(data[:-100], ANALYST, signed_by=PARTY.public)
    share = pack("datacollab.share", {"party": "north"}, {}, key=PARTY)
    refusal("WRONG_KIND", read_message, share, ANALYST, signed_by=PARTY.public)


def test_what_it_is_can_be_told_without_opening_it(data):
    envelope = read_envelope(io.BytesIO(data), len(data), what="the message")
    assert envelope.kind == MASKED_SUM_KIND
    assert re.fullmatch("[0-9a-f]{64}", envelope.facts["context"])
