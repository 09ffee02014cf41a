"""Mask keys of a party: made once, closed to others, told on a signed card, and erased."""

import os
import stat

import pytest

from datacollab.bundle import KeyPair, PublicKey, key_with_proof, mask_card_in
from datacollab.folder.party import Folder, erase_file, load_mask_key
from datacollab.steps.party import make_mask_key
from datacollab.sums import MaskKey, mask_card, read_mask_card
from party_world import refused

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
