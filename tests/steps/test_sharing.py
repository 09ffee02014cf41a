import os
import re
import stat
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import datacollab as dc
from datacollab.agreement import Anchor
from datacollab.anchor import anchor_fit
from datacollab.bundle import unpack
from datacollab.by_rows.party import _row_share
from datacollab.folder.party import _folder
from datacollab.steps.party import PartyFolder
from datacollab.table import encode_table
from party_world import contents, events, new_world, refused


def test_join_sets_the_folder_up(world):
    folder = world.join("b")
    assert (folder.name, folder.project.digest) == ("b", world.project.digest)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.path.iterdir()}
    private = ["keys.json", "policy.toml", "anchor.dcstate", "log.jsonl"]
    assert {name: modes[name] for name in private} == dict.fromkeys(private, 0o600)
    assert (modes["outbox"], stat.S_IMODE(folder.path.stat().st_mode)) == (0o700, 0o700)
    assert events(folder) == ["join"]
    assert folder.policy.shuffle
    assert repr(folder).endswith("party='b', project='wards')")


def test_joining_again_keeps_the_policy(world):
    folder = world.join()
    (folder.path / "policy.toml").write_text("min_rows = 7")
    assert world.join().policy.min_rows == 7


def test_a_folder_belongs_to_the_project_that_it_shared_in(world):
    folder = world.join()
    changed = replace(world.project, purpose="Another.")
    world.write_project(changed)
    assert world.join().project.purpose == "Another."
    world.share(folder := PartyFolder(folder.path))
    world.write_project(world.project)
    with refused("ALREADY_THERE"):
        world.join()
    assert PartyFolder(folder.path).project.purpose == "Another."
    # The owner may have drafted the new version in its own folder.
    (folder.path / "project.toml").write_bytes((world.root / "project.toml").read_bytes())
    with refused("ALREADY_THERE"):
        world.join()


def test_an_anchor_of_another_version_is_refused(world):
    folder = world.join()
    (folder.path / "project.toml").unlink()
    world.write_project(replace(world.project, purpose="Another."))
    folder = PartyFolder.join(world.root / "a", world.root / "project.toml")
    with refused("PROJECT_HASH_MISMATCH"):
        world.share(folder)


def test_what_is_shared_is_what_a_party_in_memory_shares(world):
    folder = world.join()
    (folder.path / "policy.toml").write_text('shuffle = false\naudit = "warn"')
    path = world.share(folder)
    share, bundle = world.open_share(folder)
    table = pd.read_csv(world.root / "a.csv")
    encoded = encode_table(world.project, table, where="a.csv")
    party = dc.Party("a", dc.obfuscator("pca", 3, standardize=True), shuffle=False).fit(encoded.X, encoded.target)
    expected = party.share(world.anchor.rows)
    assert path == folder.path / "outbox" / "a.dcshare"
    assert_allclose(share.representation, expected.representation, atol=1e-12)
    assert_allclose(share.anchor_representation, expected.anchor_representation, atol=1e-12)
    assert (share.target == expected.target).all()
    assert bundle.facts["row_order"] == "kept"


def test_the_manifest_says_what_was_agreed(world):
    folder = world.join()
    head = folder.log.head
    world.share(folder)
    facts = world.open_share(folder)[1].facts
    expected = {
        "party": "a",
        "project": "wards",
        "project_digest": world.project.digest,
        "anchor_commitment": world.anchor.commitment(world.project),
        "n_rows": 80,
        "n_components": 3,
        "n_anchors": 60,
        "task": "classification",
        "row_order": "shuffled",
        "supersedes": None,
        "approved_by": "me",
        "log_head": head,
    }
    assert {name: facts[name] for name in expected} == expected
    assert abs(datetime.now(UTC) - datetime.fromisoformat(facts["created"])) < timedelta(minutes=5)
    assert set(facts["versions"]) == {"datacollab", "numpy", "sklearn"}


def test_the_default_is_pca_of_standardised_columns(world):
    folder = world.join()
    world.share(folder, n_components=None)
    share, _ = world.open_share(folder)
    X = encode_table(world.project, pd.read_csv(world.root / "a.csv"), where="a.csv").X
    # Four numbers tell a row, three of them and one of two wards; as many columns would only turn the table.
    assert share.representation.shape == (80, 3)
    standardised = (X - X.mean(axis=0)) / X.std(axis=0)
    variances = np.linalg.svd(standardised, compute_uv=False)[:3] ** 2
    assert_allclose((share.representation**2).sum(axis=0), variances, rtol=1e-8, atol=1e-8)


def test_a_sealed_share_is_for_the_analyst_alone(tmp_path):
    world = new_world(tmp_path, seal_shares=True)
    folder = world.shared()
    share, bundle = world.open_share(folder)
    assert list(bundle.members) == ["sealed.bin"]
    assert share.representation.shape == (80, 3)
    data = (folder.path / "outbox" / "a.dcshare").read_bytes()
    assert not any(row.tobytes() in data for row in share.anchor_representation)


def test_a_share_is_packed_and_sealed_once(tmp_path, monkeypatch):
    """The log is read once before the work, and once under the lock that the share leaves under."""
    called = []

    def counted(holder, name):
        function = getattr(holder, name)

        def calls(*arguments, **options):
            if name != "read_bytes" or arguments[0].name == "log.jsonl":
                called.append((holder.__name__.rpartition(".")[2], name))
            return function(*arguments, **options)

        monkeypatch.setattr(holder, name, calls)

    world = new_world(tmp_path, seal_shares=True)
    folder = world.join()
    for holder, name in ((_row_share, "pack"), (_row_share, "seal"), (_folder, "pack"), (Path, "read_bytes")):
        counted(holder, name)
    world.share(folder, approve=lambda summary: called.append("approved") or "me")
    inner, outer, state = ("_row_share", "pack"), ("_row_share", "pack"), ("_folder", "pack")
    log = ("Path", "read_bytes")
    assert called == [log, "approved", log, inner, ("_row_share", "seal"), outer, state]


def test_neither_rows_nor_anchor_nor_map_are_in_the_share(world):
    folder = world.shared(obfuscator="kernel-pca")
    data = (folder.path / "outbox" / "a.dcshare").read_bytes()
    members = b"".join(unpack(data).members.values())
    X = encode_table(world.project, pd.read_csv(world.root / "a.csv"), where="a.csv").X
    for row in (*X, *world.anchor.rows):
        assert row.tobytes() not in members
        assert row.tobytes() not in data


def test_nothing_is_shared_that_nobody_approves(world):
    folder = world.join()
    before = contents(folder)
    seen = []
    with refused("NOT_APPROVED"):
        world.share(folder, approve=seen.append)
    with refused("NOT_APPROVED"):
        world.share(folder, approve=lambda summary: "")
    assert contents(folder) == before
    assert (seen[0].n_rows, seen[0].n_components) == (80, 3)


def test_the_size_that_is_shown_is_about_the_size_of_the_file(world):
    shown = []
    folder = world.join()
    checked = folder.prepare(world.root / "a.csv", audit=False, preset="none", n_components=3).summary.n_bytes
    path = world.share(folder, approve=lambda summary: shown.append(summary.n_bytes) or "me")
    assert abs(path.stat().st_size - shown[0]) < 2000
    assert checked == shown[0]


def test_what_policy_or_project_forbid_is_not_even_shown(world):
    folder = world.join()
    before = contents(folder)
    never = {"approve": lambda summary: pytest.fail("it was shown for approval")}
    with refused("DIM_TOO_LARGE"):
        world.share(folder, n_components=5, **never)
    (folder.path / "policy.toml").write_text('obfuscators = ["pca"]\nmin_rows = 1000\naudit = "warn"')
    with refused("TOO_FEW_ROWS") as error:
        world.share(folder, obfuscator="random-projection", **never)
    assert "1 more reason against it" in str(error.value)
    (folder.path / "policy.toml").write_text('obfuscators = ["pca"]\naudit = "warn"')
    with refused("OBFUSCATOR_NOT_ALLOWED"):
        world.share(folder, obfuscator="random-projection", **never)
    (folder.path / "policy.toml").unlink()
    before.pop("policy.toml")
    assert contents(folder) == before


def test_whoever_approves_a_second_share_is_told_of_the_first(world):
    told = []
    folder = world.join()
    world.share(folder, approve=lambda summary: told.append(summary) or "me")
    today = folder.log.entries()[-1]["time"][:10]
    world.share(folder, again=True, approve=lambda summary: told.append(summary) or "me")
    first, second = told
    assert first.earlier_share is None
    assert "EARLIER" not in first.to_text()
    assert second.earlier_share == today == folder.prepare(world.root / "a.csv", audit=False).summary.earlier_share
    text = " ".join(second.to_text().split())
    assert f"one of {today} exists. This takes its place, but the analyst will have seen both" in text
    assert "The installed model stops working until a new one comes." in text


def test_a_lost_file_is_not_pointed_to(world):
    folder = world.shared()
    file, state = folder.path / "outbox" / "a.dcshare", folder.path / "party.dcstate"
    before = contents(folder)
    with refused("ALREADY_SHARED") as found:
        world.share(folder)
    assert f"{file}. Send that file." in str(found.value)
    assert contents(folder) == before
    file.unlink()
    with refused("ALREADY_SHARED") as found:
        world.share(folder)
    assert f"{file} is not there any more" in str(found.value)
    assert "Send that file" not in str(found.value)
    assert "--again" in str(found.value)
    state.unlink()
    with refused("ALREADY_SHARED") as found:
        world.share(folder)
    assert f"{state} is lost" in str(found.value)


def test_with_an_epsilon_one_draw_leaves(world):
    folder = world.shared(epsilon=8.0)
    assert "epsilon 8" in folder.log.entries()[-1]["facts"]["defences"][0]
    with refused("ALREADY_SHARED") as found:
        world.share(folder, epsilon=8.0, again=True)
    assert "promised for one draw alone" in str(found.value)
    world.share(folder, noise=1.0, again=True)


def test_undefended_rows_are_refused_before_any_work(world, monkeypatch):
    folder = world.join()
    monkeypatch.setattr("datacollab.by_rows.party._row_share.encode", None)
    with refused("UNDEFENDED") as found:
        world.share(folder, preset="none", undefended=False, obfuscator="kernel-pca")
    assert "each under the map kernel-pca" in str(found.value)


def test_a_lost_map_is_told_from_one_that_never_was(world):
    folder = world.join()
    for verb in (folder.install, folder.evaluate):
        with refused("NOT_SHARED") as found:
            verb(world.root / "new.csv")
        assert "nothing was shared" in str(found.value)
    world.share(folder)
    (folder.path / "party.dcstate").unlink()
    for verb in (folder.install, folder.evaluate):
        with refused("NOT_SHARED") as found:
            verb(world.root / "new.csv")
        assert "nothing was shared" not in str(found.value)
        for words in ("f_k", "party.dcstate", "--again", "integrate anew"):
            assert words in str(found.value)


def test_an_outbox_that_was_tidied_away_is_made_again(world):
    folder = world.join()
    (folder.path / "outbox").rmdir()
    assert world.share(folder).exists()
    assert stat.S_IMODE((folder.path / "outbox").stat().st_mode) == 0o700


def test_a_folder_that_is_closed_is_named_with_what_to_do(world, monkeypatch):
    def denied(path, data, **options):
        raise PermissionError(13, "Permission denied", str(path))

    folder = world.join()
    monkeypatch.setattr(_folder, "write_atomically", denied)
    with pytest.raises(PermissionError) as found:
        world.share(folder)
    for words in (f"{folder.path} cannot be written to", f"chmod -R u+rwX {folder.path}"):
        assert words in str(found.value)
    with pytest.raises(PermissionError, match="elsewhere"), _folder.locked(folder):
        denied("/elsewhere/file", b"")


def test_a_closed_outbox_is_noticed_before_the_party_has_shared(world, monkeypatch):
    folder = world.join()
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda path, mode: Path(path) != folder.path / "outbox")
        with pytest.raises(PermissionError, match=f"{re.escape(str(folder.path / 'outbox'))} cannot be written to"):
            world.share(folder)
    assert folder.share_digest() is None
    assert not (folder.path / "party.dcstate").exists()
    assert "share" not in events(folder)


def test_a_share_whose_outbox_closes_at_the_last_moment_goes_there_later(world, monkeypatch):
    write = _folder.write_atomically

    def denied(path, data, **options):
        if path.parent.name == "outbox":
            raise PermissionError(13, "Permission denied", str(path))
        write(path, data, **options)

    folder = world.join()
    with monkeypatch.context() as patched:
        patched.setattr(_folder, "write_atomically", denied)
        with pytest.raises(PermissionError, match=f"{re.escape(str(folder.path / 'outbox'))} cannot be written to"):
            world.share(folder)
    assert not list((folder.path / "outbox").iterdir())
    assert folder.share_digest() == world.open_share(folder)[1].digest
    assert not (folder.path / ".share.dcshare.next").exists()


def test_the_deadline_holds(tmp_path):
    today = datetime.now(UTC).date()
    world = new_world(tmp_path, deadline=today - timedelta(days=1))
    folder = world.join()
    with refused("DEADLINE_PASSED"):
        world.share(folder)
    world.write_project(replace(world.project, deadline=date(9999, 1, 1)))
    world.share(world.join())


def test_how_dense_an_anchor_is_decides_about_sums_alone(world, rng):
    own = encode_table(world.project, pd.read_csv(world.root / "a.csv"), where="a.csv").X
    rows = np.tile(world.anchor.rows, (5, 1)) + 0.0
    rows[::2] = own[own[:, 0].argmax()] + 0.6 * own.std(axis=0) * rng.normal(size=rows[::2].shape)
    low, high = world.anchor.rows.min(axis=0), world.anchor.rows.max(axis=0)
    world.anchor = Anchor(rows=rows.clip(low, high))
    world.write_project(replace(world.project, anchor=replace(world.project.anchor, n_rows=len(rows))))
    folder = world.join()
    assert anchor_fit(world.anchor.rows, own).density > folder.policy.max_anchor_density
    assert world.share(folder).exists()


def test_after_a_share_no_other_anchor_takes_the_place_of_the_first(world):
    folder = world.shared()
    before = contents(folder)
    world.join()  # the same once more changes nothing
    assert contents(folder) == before
    world.anchor = Anchor(rows=world.anchor.rows[::-1])
    world.write_project(world.project)
    with refused("ALREADY_THERE"):
        world.join()
    assert contents(folder) == before
