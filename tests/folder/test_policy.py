"""A party's policy, mask keys, and copies of its folder."""

import os
import re
import shutil
import stat
import tomllib
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datacollab.bundle import KeyPair, PublicKey, key_with_proof, mask_card_in, unpack
from datacollab.choice import RiskLimits
from datacollab.errors import ExchangeError
from datacollab.folder.party import Folder, erase_file, load_mask_key
from datacollab.steps.party import PartyFolder, Policy, default_policy_text, load_policy, make_mask_key, read_withdrawal
from datacollab.sums import MaskKey, mask_card, read_mask_card, read_message
from party_world import refused
from sums_world import PARTIES, new_sums_world, rows_of


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "policy.toml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def refusal(path):
    with pytest.raises(ExchangeError) as caught:
        load_policy(path)
    return caught.value


def code_of(path):
    """The code of a refusal, if it is refused."""
    try:
        load_policy(path)
    except ExchangeError as error:
        return error.code
    return None


def test_the_default_text_says_the_defaults_and_limits_the_risks(write):
    policy = load_policy(write(default_policy_text()))
    assert policy == Policy()
    assert policy.audit == "required"
    assert policy.risk_limits.keys() == asdict(RiskLimits()).keys()


def test_every_entry_of_the_default_text_is_explained():
    lines = default_policy_text().splitlines()
    entries = [number for number, line in enumerate(lines) if line and not line.startswith("#")]
    assert {lines[number].partition(" = ")[0] for number in entries} == set(asdict(Policy()))
    assert all(lines[number - 1].startswith("# ") for number in entries)
    assert max(map(len, lines)) <= 120


def test_the_default_text_for_sums_says_what_counts(write):
    assert load_policy(write(default_policy_text(None))) == Policy()
    assert tomllib.loads(default_policy_text(None)).keys() < asdict(Policy()).keys()


def test_what_is_left_out_has_its_default(write):
    assert load_policy(write("")) == Policy()
    assert load_policy(write("max_linkage = 1")).risk_limits == Policy().risk_limits | {"linkage": 1}
    assert Policy(max_linkage=None).risk_limits.keys() == {"reidentification", "membership"}


def test_a_comment_changes_no_digest_and_an_entry_does(write):
    plain = load_policy(write("min_rows = 30")).digest
    assert load_policy(write("# why\nmin_rows=30\n")).digest == plain
    assert load_policy(write("min_rows = 31")).digest != plain


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("min_row = 3", ("'min_row'", "min_rows")),
        ("min_rows = 0", ("min_rows is 0", "from 1")),
        ("min_rows = true", ("min_rows is true", "whole number")),
        ("min_rows = 3.0", ("min_rows is 3.0",)),
        ("min_class_rows = 'five'", ("min_class_rows is a text",)),
        ("max_components = []", ("max_components is a list",)),
        ("obfuscators = []", ("obfuscators is a list", '"kernel-pca"')),
        ("obfuscators = ['pca', 'pca']", ("obfuscators is a list",)),
        ("obfuscators = 'pca'", ("obfuscators is a text", "a list with some of")),
        ("obfuscators = ['pca', 'tsne']", ("obfuscators",)),
        ("defence = 'noise'", ("defence is a text", '"microaggregation"')),
        ("shuffle = 1", ("shuffle is 1", "true or false")),
        ("max_rows_in_anchor = -1", ("max_rows_in_anchor is -1", "from 0")),
        ("max_anchor_density = 0.5", ("max_anchor_density is 0.5", "from 1 on")),
        ("max_anchor_density = inf", ("max_anchor_density is inf",)),
        ("max_linkage = 25", ("max_linkage is 25", "from 0 to 1")),
        ("max_linkage = nan", ("max_linkage is nan",)),
        ("max_membership = 0.4", ("from 0.5 to 1",)),
        ("audit = true", ("audit is true", '"required", "warn", "off"')),
        ("approvers = [1]", ("approvers is a list", "names")),
        ("[limits]\nlinkage = 1", ("'limits'",)),
        ("min_rows = 2026-01-01", ("min_rows is a date",)),
        ("min_rows = ", ("not TOML",)),
        (b"min_rows = 3 # \xff", ("UTF-8",)),
    ],
)
def test_what_is_impossible_is_named(write, text, words):
    error = refusal(write(text))
    assert error.code == "POLICY_INVALID"
    for word in ("policy.toml", *words):
        assert word in str(error)


def test_a_policy_that_is_not_there(tmp_path):
    error = refusal(tmp_path / "policy.toml")
    assert error.code == "FOLDER_MISSING"
    assert "party join" in str(error)


@given(st.text() | st.binary())
def test_any_text_is_a_policy_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    assert code_of(path) in (None, "POLICY_INVALID")


@given(
    st.sampled_from(sorted(asdict(Policy()))),
    st.one_of(st.booleans(), st.integers(), st.floats(), st.sampled_from(["none", "off", "x"]), st.just([])),
)
def test_any_value_of_an_entry_is_taken_as_it_is_or_refused(tmp_path_factory, name, value):
    path = tmp_path_factory.getbasetemp() / "entry.toml"
    written = str(value).lower() if isinstance(value, bool | float) else repr(value)
    path.write_text(f"{name} = {written}", encoding="utf-8")
    code = code_of(path)
    assert code in (None, "POLICY_INVALID")
    if code is None:
        taken = getattr(load_policy(path), name)
        assert taken == (tuple(value) if isinstance(value, list) else value)
        assert type(taken) is (tuple if isinstance(value, list) else type(value))


def test_approvers_are_whoever_the_policy_names():
    Policy().check_approver("anyone")
    policy = Policy(approvers=("Ada", "Grace"))
    policy.check_approver("Grace")
    with pytest.raises(ExchangeError) as caught:
        policy.check_approver("Mallory")
    assert caught.value.code == "NOT_APPROVED"
    assert "Ada, Grace" in str(caught.value)


def test_the_page_documents_every_entry_and_its_default():
    page = (Path(__file__).parents[2] / "docs" / "release.md").read_text(encoding="utf-8")
    written = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", page, flags=re.MULTILINE))
    entries = tomllib.loads(default_policy_text())
    assert list(written) == list(entries)
    assert written.pop("obfuscators") == "all four"
    for name, default in written.items():
        text = default.strip("`")
        assert tomllib.loads(f"x = {text}")["x"] == entries[name]


WORDS = "correct horse"


@pytest.fixture
def folder(tmp_path):
    pair = KeyPair.generate()
    pair.save(tmp_path / "keys.json")
    (tmp_path / "public.key").write_text(key_with_proof(pair))
    return tmp_path


def test_a_card_is_the_third_line_and_the_secret_stays(folder):
    card = make_mask_key(folder)
    pair = KeyPair.load(folder / "keys.json")
    assert (folder / "public.key").read_text() == key_with_proof(pair) + card + "\n"
    assert PublicKey.load(folder / "public.key", proven=True) == pair.public
    assert mask_card_in(folder / "public.key") == card
    kept = load_mask_key(Folder(folder))
    assert read_mask_card(card, pair.public) == kept.public
    assert kept.secret not in (folder / "public.key").read_bytes()
    assert kept.secret.hex() not in (folder / "public.key").read_text()
    assert stat.S_IMODE((folder / "mask.dcstate").stat().st_mode) == 0o600


def test_an_unused_key_is_kept(folder):
    first = make_mask_key(folder)
    (folder / "public.key").unlink()
    assert make_mask_key(folder) == first == mask_card_in(folder / "public.key")


def test_a_passphrase_encrypts_it(tmp_path):
    KeyPair.generate().save(tmp_path / "keys.json", WORDS)
    make_mask_key(tmp_path, passphrase=WORDS)
    secret = load_mask_key(Folder(tmp_path, passphrase=WORDS)).secret
    assert secret not in (tmp_path / "mask.dcstate").read_bytes()
    folder = Folder(tmp_path, passphrase=WORDS)
    folder._passphrase = None
    with refused("PASSPHRASE_WRONG"):
        load_mask_key(folder)


def test_a_damaged_or_foreign_file_is_refused(folder):
    own, other = Folder(folder), Folder(folder)
    other.key = KeyPair.generate()
    other.write(own.files.mask, {"public": "00"}, {"mask-key.bin": bytes(32)})
    with refused("STATE_DAMAGED"):
        make_mask_key(folder)
    own.write(own.files.mask, {"public": "00"}, {"mask-key.bin": bytes(31)})
    with refused("STATE_DAMAGED", "keys mask"):
        make_mask_key(folder)


@pytest.mark.parametrize(
    "text", ["{key}\n{proof}\n{card}\n{card}\n", "{key}\n{card}\n", "{key}\n{card}\n{proof}\n", "{key}\n{proof}\nx\n"]
)
def test_other_orders_and_further_lines_are_refused(tmp_path, text):
    pair = KeyPair.generate()
    key, proof = key_with_proof(pair).split()
    card = mask_card(MaskKey.generate(), pair)
    (tmp_path / "public.key").write_text(text.format(key=key, proof=proof, card=card))
    with refused("KEY_MALFORMED"):
        PublicKey.load(tmp_path / "public.key")


def test_a_file_without_a_card_has_none(folder):
    assert mask_card_in(folder / "public.key") is None
    with refused("KEY_MISSING"):
        mask_card_in(folder / "nowhere.key")


def test_erasing_leaves_no_file_and_no_bytes(folder, monkeypatch):
    make_mask_key(folder)
    os.link(folder / "mask.dcstate", folder / "same-bytes")
    before = (folder / "same-bytes").read_bytes()
    erase_file(folder / "mask.dcstate")
    erase_file(folder / "mask.dcstate")
    after = (folder / "same-bytes").read_bytes()
    assert not (folder / "mask.dcstate").exists()
    assert len(after) == len(before)
    assert after != before


NAMES = PARTIES[:3]
NORTH = "north"


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """Three parties, and north's ledger lies outside of its folder."""
    world = new_sums_world(tmp_path_factory.mktemp("joined"), parties=NAMES, sharing={"statistics": ("counts",)})
    policy = world.root / NORTH / "policy.toml"
    policy.write_text(policy.read_text().replace('ledger = ""', 'ledger = "../institution"'))
    (world.root / "institution").mkdir()
    return world


@pytest.fixture
def world(joined, tmp_path):
    return joined.copied(tmp_path)


class Backup:
    """Copies of north's folder and ledger, taken when this is made."""

    def __init__(self, world):
        self.root = world.root
        for name in (NORTH, "institution"):
            shutil.copytree(self.root / name, self.root / "backup" / name)

    def restore(self, *names):
        for name in names:
            shutil.rmtree(self.root / name)
            shutil.copytree(self.root / "backup" / name, self.root / name)


def one_row_less(world):
    path = world.root / "one-row-less.csv"
    pd.read_csv(world.table(NORTH)).iloc[1:].to_csv(path, index=False)
    return path


def test_a_folder_without_its_ledger_makes_no_second_message(world):
    backup = Backup(world)
    world.share(NORTH)
    backup.restore(NORTH)
    for table in (world.table(NORTH), one_row_less(world)):
        with refused("ALREADY_SHARED"):
            world.share(NORTH, table)
    assert not list(world.folder(NORTH).outbox.iterdir())


@pytest.mark.parametrize("kept", ["ledger", "log"])
def test_a_withdrawal_from_a_restored_folder_says_that_a_message_left(world, kept):
    """Otherwise the others would be told that no total of the run can be made."""
    backup = Backup(world)
    world.share(NORTH)
    log = (world.root / NORTH / "log.jsonl").read_bytes()
    backup.restore(*[NORTH] if kept == "ledger" else [NORTH, "institution"])
    if kept == "log":
        (world.root / NORTH / "log.jsonl").write_bytes(log)
    assert read_withdrawal(world.folder(NORTH).withdraw().read_bytes(), where="word").had_shared


def test_a_mask_key_that_comes_back_alone_changes_nothing(world):
    backup = Backup(world)
    first = world.share(NORTH).read_bytes()
    shutil.copy(backup.root / "backup" / NORTH / "mask.dcstate", world.root / NORTH)
    assert world.share(NORTH, one_row_less(world)).read_bytes() == first
    (world.root / NORTH / "outbox" / "north.dcsum").unlink()
    assert world.share(NORTH, one_row_less(world)).read_bytes() == first


def test_the_analyst_takes_one_message_if_everything_came_back(world):
    """The party cannot know; whoever has its first message refuses the second, and adds up the first."""
    backup = Backup(world)
    first = world.share(NORTH).read_bytes()
    world.analyst.add([world.root / NORTH / "outbox" / "north.dcsum"])
    backup.restore(NORTH, "institution")
    second = world.share(NORTH, one_row_less(world))
    assert second.read_bytes() != first
    with refused("ALREADY_THERE", "another file"):
        world.analyst.add([second, world.share("south"), world.share("east")])
    assert [each.digest for each in world.analyst.shares()] == [unpack(first).digest]
    world.analyst.add([world.share("south"), world.share("east")])
    assert world.analyst.integrate().n_parties == 3


@pytest.mark.parametrize("first_sent", ["one", "other"])
def test_two_machines_with_one_key_make_two_messages_and_the_analyst_takes_one(world, first_sent):
    for machine in ("one", "other"):
        shutil.copytree(world.root / NORTH, world.root / machine / NORTH)
        (world.root / machine / "institution").mkdir()
    tables = {"one": world.table(NORTH), "other": one_row_less(world)}
    files = {
        machine: PartyFolder(world.root / machine / NORTH).share(
            table, approve=lambda summary: "me", heard=world.heard(NORTH)
        )
        for machine, table in tables.items()
    }
    second_sent = next(machine for machine in files if machine != first_sent)
    world.analyst.add([files[first_sent]])
    with refused("ALREADY_THERE", "tells rows"):
        world.analyst.add([files[second_sent]])
    # At once, too: neither is taken then, and the party says which one counts.
    other = world.copied(world.root / "once more")
    (other.root / "analyst" / "shares" / "north.dcsum").unlink()
    with refused("ALREADY_THERE"):
        other.analyst.add(files.values())
    assert other.analyst.shares() == []


def test_why_two_messages_of_one_run_must_not_be_read(world):
    """Their masks are the same, so that the difference is one row, under the party's own noise alone."""
    backup, messages, parts = Backup(world), [], []
    for table in (world.table(NORTH), one_row_less(world)):
        backup.restore(NORTH, "institution")
        prepared = world.folder(NORTH).prepare(table)
        parts.append(prepared.part)
        path = world.share(NORTH, table)
        messages.append(read_message(path, world.keys["analyst"], signed_by=world.keys[NORTH].public))
    agreed = prepared.plan.agreed
    difference = agreed.numbers.decode(agreed.numbers.add(messages[0].words, agreed.numbers.negate(messages[1].words)))
    # Two draws of what north adds to the noise; with three parties, one of which may collude.
    spread = np.asarray(agreed.noise) / np.sqrt(len(NAMES) - 1) * np.sqrt(2)
    assert difference[0] == 0
    np.testing.assert_array_less(np.abs(difference[1:] - (parts[0] - parts[1])), 6 * spread)


def test_two_machines_that_take_turns_tell_a_row_by_the_difference_of_two_totals(tmp_path):
    """A ledger for each machine knows one run each; which of two rows was added in between is read off."""
    world = new_sums_world(tmp_path, parties=NAMES, sharing={"n_components": 10})
    folder, table = world.folder(NORTH), rows_of(60, 100)
    candidates = pd.DataFrame(
        {"age": [20.0, 80.0], "pulse": [80.0, 20.0], "ward": ["day", "night"], "ill": ["no", "yes"]}
    )
    parts = []
    for extra in (candidates.iloc[:0], candidates.iloc[:1], candidates.iloc[1:]):
        prepared = folder.prepare(pd.concat([table, extra], ignore_index=True))
        parts.append(prepared.part)
    before, first, second = parts
    agreed, random, right = prepared.plan.agreed, np.random.default_rng(0), 0
    spread = np.asarray(agreed.noise) * agreed.excess * np.sqrt(2)
    n_times = 200
    for number in range(n_times):
        truth = (first, second)[number % 2]
        read = truth - before + spread * random.normal(size=len(spread))
        distances = [np.sum(((read - each + before) / spread) ** 2) for each in (first, second)]
        right += np.argmin(distances) == number % 2
    assert right / n_times > 0.95
