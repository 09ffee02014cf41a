"""Sums under masks: what comes of all messages, what comes of fewer, and what is refused by name."""

import copy
import json
import pickle
import re
from dataclasses import replace
from pathlib import Path

import naive_masks
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chi2

from datacollab.errors import AgreementError, SharedBeforeError, ShareError
from datacollab.sums import FixedPoint, MaskedSum, MaskKey, standard_normal

FORMATS = Path(__file__).parents[2] / "docs" / "formats.md"
NAMES = ("north", "south", "west", "east", "centre")
WIDE = FixedPoint(128, 64)


class World:
    """Parties with keys, and a sum that they agree on."""

    def __init__(self, n_parties=3, n_numbers=4, *, facts=None, noise=0.0, **options):
        self.secrets = {name: bytes([k + 1]) * 32 for k, name in enumerate(NAMES[:n_parties])}
        self.roster = {name: key.public for name, key in self.keys().items()}
        self.sum = MaskedSum(facts or {"run": 1}, self.roster, noise=np.full(n_numbers, noise), **options)
        self.parts = dict(zip(NAMES, np.random.default_rng(0).normal(size=(n_parties, n_numbers)), strict=False))

    def keys(self):
        return {name: MaskKey(secret) for name, secret in self.secrets.items()}

    def messages(self, **parts):
        keys = self.keys()
        return [self.sum.mask(name, part, keys[name]) for name, part in (self.parts | parts).items()]


@pytest.mark.parametrize("numbers", [FixedPoint(), WIDE], ids=repr)
@pytest.mark.parametrize("n_parties", [3, 5])
def test_the_total_is_the_sum(n_parties, numbers):
    world = World(n_parties, numbers=numbers)
    total = world.sum.total(world.messages()[::-1])
    error = n_parties * 2.0 ** -(numbers.fraction_bits + 1)
    assert_allclose(total, sum(world.parts.values()), rtol=0, atol=error + 1e-15)


@pytest.mark.slow
@given(st.lists(st.lists(st.floats(-1e8, 1e8), min_size=2, max_size=2), min_size=3, max_size=3))
def test_the_total_of_anything_is_the_sum(parts):
    world = World(3, 2)
    total = world.sum.total(world.messages(**dict(zip(NAMES, parts, strict=False))))
    assert_allclose(total, np.sum(parts, axis=0), rtol=1e-15, atol=3 * 2.0**-33)


def test_messages_are_those_of_someone_who_read_the_page_alone():
    for numbers in (FixedPoint(), FixedPoint(64, 20), WIDE):
        world = World(4, 3, numbers=numbers, facts={"project": "wärds", "run": 2})
        agreed = {
            "facts": {"project": "wärds", "run": 2},
            "roster": sorted([public.hex(), name] for name, public in world.roster.items()),
            "noise": bytes(24).hex(),
            "n_colluding": 2,
            "bits": numbers.bits,
            "fraction_bits": numbers.fraction_bits,
        }
        assert world.sum.context == naive_masks.context_of(agreed)
        for message in world.messages():
            integers, tags = naive_masks.message_of(message.party, world.parts[message.party], world.secrets, agreed)
            assert [sum(int(w) << 64 * i for i, w in enumerate(row)) for row in message.words] == integers
            assert message.tags == tags


def test_the_known_answer_on_the_page():
    text = FORMATS.read_text(encoding="utf-8").partition("### A known answer")[2]
    known = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])
    roster = {name: bytes.fromhex(each["public"]) for name, each in known["parties"].items()}
    agreed = MaskedSum(known["facts"], roster, noise=np.zeros(2))
    assert agreed.context.hex() == known["context"]
    messages = []
    for name, each in known["parties"].items():
        key = MaskKey(bytes.fromhex(each["secret"]))
        assert key.public == roster[name]
        messages.append(agreed.mask(name, each["values"], key))
        assert messages[-1].words.astype("<u8").tobytes().hex() == each["words"]
        assert {other: tag.hex() for other, tag in messages[-1].tags.items()} == each["tags"]
    assert agreed.total(messages).tolist() == known["total"]


def chi_square(bits):
    """Probability of a count of ones as far from half as this, were the bits fair."""
    n, ones = bits.size, int(bits.sum())
    return chi2.sf((2 * ones - n) ** 2 / n, 1)


@pytest.mark.parametrize("numbers", [FixedPoint(), WIDE], ids=repr)
def test_all_but_one_message_are_uniform_and_say_nothing(numbers):
    """The same masks over two tables of the last party; sums over subsets are uniform bit by bit and byte by byte."""
    world = World(4, 20_000, numbers=numbers)
    messages = world.messages()
    for left_out in range(4):
        partial = np.zeros_like(messages[0].words)
        for k, message in enumerate(messages):
            if k != left_out:
                partial = numbers.add(partial, message.words)
        for words in (partial, messages[left_out].words):
            data = np.ascontiguousarray(words).view(np.uint8)
            assert chi_square(np.unpackbits(data)) > 1e-6
            for place in range(data.shape[1]):
                counts = np.bincount(data[:, place], minlength=256)
                expected = len(data) / 256
                assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 255) > 1e-7
        correlation = np.corrcoef(numbers.decode(partial)[1:], sum(world.parts.values()))[0, 1]
        assert abs(correlation) < 0.04


AGREED = {"facts": {"run": 2}, "noise": np.full(4, 1e-9), "n_colluding": 0, "numbers": FixedPoint(64, 31)}


@pytest.mark.parametrize("what", [*AGREED, "roster", "the number of numbers"])
def test_whatever_else_was_agreed_gives_other_masks_everywhere(what):
    world = World(3, 4)
    if what == "roster":
        other = replace(world.sum, roster=world.roster | {"east": MaskKey.generate().public})
    elif what == "the number of numbers":
        other = replace(world.sum, noise=np.zeros(5))
    else:
        other = replace(world.sum, **{what: AGREED[what]})
    assert other.context != world.sum.context
    values = np.zeros(len(other.noise))
    sums = (world.sum, other)
    masked = [each.mask("north", np.zeros(len(each.noise)), MaskKey(world.secrets["north"])) for each in sums]
    assert not np.any(masked[0].words[:4] == masked[1].words[:4])
    assert not set(masked[0].tags.values()) & set(masked[1].tags.values())
    with pytest.raises(AgreementError, match="'north'.*another sum"):
        world.sum.total([other.mask("north", values, MaskKey(world.secrets["north"])), *world.messages()[1:]])


def test_what_is_changed_after_the_agreement_changes_nothing():
    facts, noise = {"run": {"number": 1}}, np.zeros(2)
    roster = World().roster
    agreed, kept = MaskedSum(facts, roster, noise=noise), dict(roster)
    expected = MaskedSum({"run": {"number": 1}}, kept, noise=[0.0, 0.0]).context
    facts["run"]["number"], noise[0], roster["east"] = 2, 1.0, MaskKey.generate().public
    assert agreed.context == expected
    assert list(agreed.roster) == list(kept)
    with pytest.raises(TypeError):
        MaskedSum({"run": np.int64(1)}, kept, noise=noise)


def test_a_key_serves_one_message():
    world = World()
    key = MaskKey(world.secrets["north"])
    world.sum.mask("north", world.parts["north"], key)
    with pytest.raises(SharedBeforeError, match="erased"):
        world.sum.mask("north", world.parts["north"], key)
    assert repr(key) == "MaskKey(erased)"


def test_a_refusal_keeps_the_key():
    world = World()
    key = MaskKey(world.secrets["north"])
    for wrong, message in [
        (np.full(4, 2e9), "beyond"),
        (np.full(4, np.nan), "not finite"),
        (np.zeros(3), "expected 4"),
        (["1.0", "2.0", "3.0", "Smith"], r"not all numbers\. Nothing was sent\.$"),
    ]:
        with pytest.raises(AgreementError, match=f"'north'.*{message}"):
            world.sum.mask("north", wrong, key)
    assert world.sum.mask("north", world.parts["north"], key).party == "north"


def test_messages_that_do_not_belong_are_named():
    world = World()
    north, south, west = world.messages()
    with pytest.raises(AgreementError, match=r"\['west'\] are missing"):
        world.sum.total([north, south])
    with pytest.raises(AgreementError, match="'south'.*two messages"):
        world.sum.total([north, south, south])
    with pytest.raises(AgreementError, match="'east'.*not in the roster"):
        world.sum.total([north, south, replace(west, party="east")])
    with pytest.raises(ShareError, match="'west'"):
        world.sum.total([north, south, replace(west, words=west.words[:-1])])
    with pytest.raises(ShareError, match="'west'"):
        world.sum.total([north, south, replace(west, tags={"north": west.tags["north"]})])
    with pytest.raises(ShareError, match="do not cancel"):
        changed = west.words.copy()
        changed[0] ^= np.uint64(1)
        world.sum.total([north, south, replace(west, words=changed)])
    for wrong in ({"words": west.words.view(np.int64)}, {"context": b"short"}):
        with pytest.raises(ShareError, match="'west'"):
            replace(west, **wrong)


def test_a_key_that_is_not_the_rosters_is_named():
    world = World(5)
    with pytest.raises(AgreementError, match="'west'.*not the one in the roster"):
        world.sum.mask("west", world.parts["west"], MaskKey.generate())
    # A program that does not check, as of someone who answers in another's place.
    stranger = MaskKey.generate()
    other = replace(world.sum, roster=world.roster | {"west": stranger.public})
    forged = replace(other.mask("west", world.parts["west"], stranger), context=world.sum.context)
    messages = [forged if message.party == "west" else message for message in world.messages()]
    with pytest.raises(AgreementError, match=r"\['west'\].*4 of 4 tags"):
        world.sum.total(messages)


def test_parties_that_lie_about_another_are_named_with_it():
    world = World(5)
    messages = [
        replace(message, tags={**message.tags, "north": bytes(32)}) if message.party in ("east", "centre") else message
        for message in world.messages()
    ]
    with pytest.raises(AgreementError, match=r"\['north', 'east', 'centre'\] do not fit each other: 2 of 4 tags"):
        world.sum.total(messages)


PRIME = 2**255 - 19


@pytest.mark.parametrize(
    "public",
    [number.to_bytes(32, "little") for number in (0, 1, PRIME - 1, PRIME, PRIME + 9, 2**256 - 1)]
    + [
        bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
        bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
        b"short",
    ],
    ids=lambda public: public.hex()[:8],
)
def test_keys_with_a_second_spelling_or_of_small_order_are_refused(public):
    with pytest.raises(AgreementError, match="'east'"):
        MaskedSum({}, World().roster | {"east": public}, noise=[0.0])


def test_the_high_bit_of_a_key_is_no_other_key():
    alias = bytearray(World().roster["north"])
    alias[31] |= 0x80
    with pytest.raises(AgreementError, match="'east'"):
        MaskedSum({}, World().roster | {"east": bytes(alias)}, noise=[0.0])


def test_sums_that_hide_nothing_are_refused():
    roster = World(4).roster
    with pytest.raises(AgreementError, match="at least 3 parties; got 2"):
        MaskedSum({}, dict(list(roster.items())[:2]), noise=[0.0])
    with pytest.raises(AgreementError, match="same mask key"):
        MaskedSum({}, roster | {"again": roster["north"]}, noise=[0.0])
    for n_colluding in (-1, 3):
        with pytest.raises(AgreementError, match="from 0 to 2"):
            MaskedSum({}, roster, noise=[0.0], n_colluding=n_colluding)
    for noise in ([], [-1.0], [np.inf], [[0.0]]):
        with pytest.raises(AgreementError, match="noise"):
            MaskedSum({}, roster, noise=noise)


def test_numbers_that_cannot_count_the_parties_are_refused():
    world = World(3, numbers=FixedPoint(64, 61))
    parts = {name: np.full(4, 0.25) for name in world.secrets}
    assert_array_equal(world.sum.total(world.messages(**parts)), np.full(4, 0.75))
    for n_parties, numbers in ((3, FixedPoint(64, 62)), (4, FixedPoint(64, 61)), (5, FixedPoint(128, 125))):
        with pytest.raises(AgreementError, match=f"no place for a total of {n_parties}"):
            World(n_parties, numbers=numbers)


@pytest.mark.parametrize(("n_parties", "n_colluding"), [(3, 1), (4, 2), (5, 3)])
def test_the_noise_of_those_who_do_not_collude_is_enough(n_parties, n_colluding):
    world = World(n_parties, 20_000, noise=0.1)
    assert world.sum.n_colluding == n_colluding
    errors = world.sum.total(world.messages()) - sum(world.parts.values())
    expected = 0.1 * np.sqrt(n_parties / (n_parties - n_colluding))
    assert errors.std() == pytest.approx(expected, rel=0.03)
    assert abs(errors.mean()) < 4 * expected / np.sqrt(20_000)


def test_noise_is_new_each_time():
    world = World(3, 50, noise=0.1)
    first, second = (world.sum.total(world.messages()) for _ in range(2))
    assert not np.any(first == second)


def test_drawn_numbers_are_normal_and_follow_the_key():
    drawn = standard_normal(bytes(32), 200_000)
    assert_array_equal(drawn, standard_normal(bytes(32), 200_000))
    assert not np.any(drawn == standard_normal(bytes([1]) * 32, 200_000))
    assert abs(np.mean(drawn)) < 0.01
    assert_allclose([np.mean(drawn**k) for k in (2, 4, 6)], [1, 3, 15], rtol=0.05)
    assert 3.5 < np.abs(drawn).max() < 8.3


def test_secrets_are_not_shown():
    world = World(noise=0.1)
    for key in world.keys().values():
        shown = repr(key) + repr(vars(key).keys()) + repr(world.sum) + repr(world.messages())
        assert key.secret.hex() not in shown
        assert repr(key.secret) not in shown
        for save in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="secret"):
                save(key)
