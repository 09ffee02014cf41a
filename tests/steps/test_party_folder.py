"""A party's folder, and the draft of an assessment."""

import re
import stat
import warnings
from dataclasses import replace

import numpy as np
import pytest
from release_example import digits

from datacollab.agreement import load_project
from datacollab.anchor import EqualRows
from datacollab.bundle import KeyPair
from datacollab.by_rows.party._rows_summary import RiskFigures
from datacollab.by_sums.party import auc_text
from datacollab.errors import ExchangeError
from datacollab.folder.log import locked
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import (
    WORST_ROSTERS,
    PartyFolder,
    Policy,
    ReleaseSummary,
    SumsSummary,
    assessment,
    find_measured,
    membership_rows,
)
from datacollab.study import study_membership_figures
from datacollab.sums import membership_figures
from party_world import NAMES, contents, events, refused
from sums_world import PARTIES, cards_of, project_of


def test_the_log_tells_what_was_done_and_no_data(world):
    folder = world.installed()
    folder.predict(world.root / "new.csv", world.root / "out.csv")
    folder.evaluate(world.root / "new.csv")
    assert events(folder) == ["join", "share", "install", "predict", "evaluate"]
    folder.log.verify()
    entries = {entry["event"]: entry["facts"] for entry in folder.log.entries()}
    assert entries["share"]["digest"] == world.open_share(folder)[1].digest
    assert (entries["share"]["n_rows"], entries["share"]["approved_by"]) == (80, "me")
    assert (entries["predict"]["n_rows"], entries["predict"]["file"]) == (80, "new.csv")
    text = (folder.path / "log.jsonl").read_text()
    for name in NAMES[:3]:
        assert not any(repr(value) in text for value in world.table[name])


def test_a_damaged_state_is_refused(world):
    folder = world.installed()
    for name in ("party.dcstate", "anchor.dcstate"):
        path = folder.path / name
        data = path.read_bytes()
        for changed in (data[:100], b"", data[:-300] + bytes(300), data[:500] + b"\xff" + data[501:]):
            path.write_bytes(changed)
            with refused("STATE_DAMAGED"):
                folder.install(world.root / "a.dcmodel")
        path.write_bytes(data)
    folder.install(world.root / "a.dcmodel")


@pytest.mark.slow
def test_flipped_bytes_are_refused_or_change_nothing(world):
    folder = world.shared()
    path, random = folder.path / "party.dcstate", np.random.default_rng(0)
    data, own = path.read_bytes(), folder
    expected = own.read(path)
    codes = []
    for _ in range(300):
        changed = bytearray(data)
        for place in random.integers(len(data), size=random.integers(1, 4)):
            changed[place] ^= random.integers(1, 256)
        path.write_bytes(changed)
        try:
            assert own.read(path) == expected
        except ExchangeError as error:
            codes.append(error.code)
    assert set(codes) <= {"STATE_DAMAGED", "FORMAT_TOO_NEW", "PASSPHRASE_WRONG"}
    assert len(codes) > 250


def test_a_state_that_somebody_else_signed_is_damaged(world):
    a, b = world.shared("a"), world.shared("b")
    (a.path / "party.dcstate").write_bytes((b.path / "party.dcstate").read_bytes())
    with refused("STATE_DAMAGED"):
        a.install(world.model_file(a, b))


def test_under_a_passphrase_nothing_is_in_the_clear(world):
    world.shared("b")
    key = world.keys["a"]
    (world.root / "a" / "keys.json").unlink()
    key.save(world.root / "a" / "keys.json", "open sesame")
    with refused("PASSPHRASE_WRONG"):
        world.join()
    folder = world.join(passphrase="open sesame")
    world.share(folder)
    for name in ("anchor.dcstate", "party.dcstate", "keys.json"):
        data = (folder.path / name).read_bytes()
        assert stat.S_IMODE((folder.path / name).stat().st_mode) == 0o600
        assert not any(row.tobytes() in data for row in world.anchor.rows)
        assert b"obfuscator" not in data
    for wrong in (None, "open"):
        with refused("PASSPHRASE_WRONG") as found:
            PartyFolder(folder.path, passphrase=wrong)
        assert str(folder.path / "keys.json") in str(found.value)
        with refused("PASSPHRASE_WRONG") as found:
            folder._passphrase = wrong
            folder.read(folder.path / "party.dcstate")
        assert str(folder.path / "party.dcstate") in str(found.value)
    state = folder.path / "party.dcstate"
    data = state.read_bytes()
    state.write_bytes(data[:40])
    with refused("STATE_DAMAGED"):
        folder._passphrase = "open sesame"
        folder.read(state)
    state.write_bytes(data)
    again = PartyFolder(folder.path, passphrase="open sesame")
    again.install(world.model_file(again, PartyFolder(world.root / "b")))
    assert again.evaluate(world.root / "new.csv")["n_rows"] == 80


def test_files_encrypted_after_the_keys_ask_for_the_passphrase(world):
    folder = world.join(passphrase="open sesame")
    with refused("PASSPHRASE_WRONG"):
        world.share(PartyFolder(folder.path))


@pytest.mark.nightly
def test_umap_is_stored_and_predicts(world):
    pytest.importorskip("umap")
    a, b = world.shared("a", obfuscator="umap", n_components=2), world.shared("b")
    a.install(world.model_file(a, b))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert a.evaluate(world.root / "new.csv")["n_rows"] == 80


def test_an_obfuscator_that_does_not_come_back_is_refused(world, monkeypatch):
    from datacollab.by_rows.party import _stored_party

    def forgetful(facts, members):
        party = real(facts, members)
        party._rotation = np.eye(3)[::-1]
        return party

    real = _stored_party.local_party
    monkeypatch.setattr(_stored_party, "local_party", forgetful)
    folder = world.join()
    with refused("STATE_UNSUPPORTED"):
        world.share(folder)
    assert not (folder.path / "party.dcstate").exists()


def test_two_commands_at_a_time_are_one_too_many(world, monkeypatch):
    from datacollab.folder.party import _folder

    monkeypatch.setattr(_folder, "PATIENCE", 0.1)
    folder = world.installed()
    before = contents(folder)
    with locked(folder.path):
        for verb in (
            lambda: world.share(folder, again=True),
            lambda: folder.install(world.root / "a.dcmodel"),
            world.join,
        ):
            with refused("BUSY"):
                verb()
        assert len(next(folder.predict_batches(world.root / "new.csv"))) == 80
    assert contents(folder) == before


def test_others_may_work_while_somebody_approves(world):
    folder = world.installed()

    def approve(summary):
        folder.predict(world.root / "new.csv", world.root / "out.csv")
        return "me"

    world.share(folder, again=True, approve=approve)
    assert events(folder)[-2:] == ["predict", "share"]
    assert world.open_share(folder)[1].facts["log_head"] == folder.log.entries()[-2]["hash"]


def test_of_two_shares_at_a_time_one_counts(world):
    folder = world.join()
    with refused("ALREADY_SHARED"):
        world.share(folder, approve=lambda summary: world.share(folder).name)
    assert events(folder) == ["join", "share"]


def test_a_project_that_was_replaced_does_not_come_back(world):
    """An older file is signed as well; it may name a key that was stolen since."""
    old = world.project
    world.write_project(replace(old, revision=2))
    folder = world.join()
    kept = (folder.path / "project.toml").read_bytes()
    world.write_project(old)
    with refused("PROJECT_OLDER"):
        world.join()
    assert (folder.path / "project.toml").read_bytes() == kept
    world.write_project(replace(old, revision=3))
    assert world.join().project.revision == 3


def test_nor_does_it_at_the_analyst(world):
    def init():
        return AnalystFolder.init(world.root / "analyst", world.root / "project.toml")

    world.write_project(replace(world.project, revision=2))
    init()
    world.write_project(world.project)
    with refused("PROJECT_OLDER"):
        init()
    assert load_project(world.root / "analyst" / "project.toml").revision == 2


KEYS = {name: KeyPair.generate() for name in (*PARTIES, "analyst")}
PROJECT = project_of(KEYS, PARTIES, cards_of(KEYS, PARTIES), purpose="Who is ill | <b>soon</b>?\nAt home.")
SUMS = SumsSummary(
    party="north",
    project="wards",
    analyst=KEYS["analyst"].public.fingerprint,
    n_rows=940,
    n_public=0,
    statistic="ridge regression",
    tells=(),
    of_study=False,
    n_components=64,
    n_numbers=2500,
    n_bytes=23000,
    noise=0.1,
    epsilon=None,
    noise_before=None,
    earlier=(),
    n_parties=5,
    n_entities=5,
    others=("south (The | south hospital)",),
    n_unconfirmed=2,
    sentences=("Only some take part.",),
    n_rows_together=1020,
    measured=membership_figures(),
    measured_study=(),
    adjusted={},
)


def test_sums_are_described_with_the_figures_for_their_number_of_rows():
    text = assessment(PROJECT, Policy(approvers=("officer",)), SUMS)
    thousand = next(each for each in membership_figures() if each.n_rows == 1000 and not each.rare)
    assert f"| the analyst and parties together | {auc_text(thousand.together)} | red |" in text
    assert "measured on public tables with 1,000 rows; more rows reveal less" in text
    assert "| Purpose, as all parties agreed | Who is ill \\| &lt;b>soon&lt;/b>? At home. |" in text
    for words in (
        "2,500 numbers (about 23,000 bytes), once: ridge regression over",
        "has noise of 0.1.",
        "| 3: age, pulse, ward |",
        "a model: classification of ill",
        f"The institute, key {KEYS['analyst'].public.fingerprint}",
        "- south (The \\| south hospital)\n",
        "Warning: Only some take part.",
        "at least 20 rows. There is no limit",
        "Approvers: officer",
        Policy(approvers=("officer",)).digest,
        "encrypted for the analyst",
    ):
        assert words in text
    assert KEYS["north"].public.fingerprint not in text
    assert not re.findall(r"\$\w+", text)
    assert max(map(len, re.findall(r"\[[^\]]*\]", text))) < 100


def test_fewer_rows_than_measured_are_said_to_reveal_more():
    how, found = find_measured(membership_figures(), 90)
    assert (how, found.n_rows) == ("measured on public tables with 250 rows; fewer rows reveal more", 250)
    assert find_measured(membership_figures(), 3000)[0] == "measured on public tables with 3,000 rows"
    assert [rating for _, _, rating in membership_rows(found)][-1] == "red"


def test_less_noise_than_measured_is_said():
    assert "less noise or more columns" in assessment(PROJECT, Policy(), replace(SUMS, noise=0.05))
    assert "less noise" not in assessment(PROJECT, Policy(), SUMS)


def test_a_study_and_a_proof_are_said_to_be_what_they_are():
    figures = study_membership_figures(["counts", "effect"])
    study = replace(SUMS, of_study=True, tells=("counts: rows of each level",), statistic="counts", measured=())
    study = replace(study, measured_study=figures, adjusted={"columns": {}})
    text = assessment(PROJECT, Policy(), study)
    areas = "".join(f"{auc_text(each.analyst):>8}" for each in figures if each.statistics == ("effect",))
    assert re.search(rf"^  the analyst alone +{re.escape(areas.strip())}$", text, flags=re.MULTILINE)
    assert "the analyst alone guesses better than by chance" in text
    assert WORST_ROSTERS in " ".join(text.split())
    assert "were not measured" not in text
    ratios = assessment(PROJECT, Policy(), replace(study, statistic="counts, logistic regression"))
    assert "Attacks on logistic regression were not measured" in " ".join(ratios.split())
    assert "No secret map" not in assessment(PROJECT, Policy(), SUMS)
    assert "- counts: rows of each level" in text
    assert "has noise that hides a row as well as 0.1 does in sums for a model." in text
    assert "the study's result; also at those it is given to | analyst |" in text
    assert "(3, 1e-05)-differentially private" in assessment(PROJECT, Policy(), replace(SUMS, epsilon=3.0))


def test_rows_are_described_with_the_audits_figures_limits_and_ratings():
    project, _, _ = digits(60)
    policy = Policy()
    figures = RiskFigures(linkage=0.3, reidentification=None, membership=0.66, ratings={"membership": "amber"})
    facts = {name: 0 for name in ReleaseSummary.__dataclass_fields__ if name.startswith("n_")}
    summary = ReleaseSummary(
        **facts | {"n_rows": 60, "n_free": None},
        in_anchor=EqualRows(n_equal=0, by_chance=0),
        party="north",
        project=project.name,
        analyst=project.analyst.fingerprint,
        dtype="float64",
        task="classification",
        class_counts={"0": 60},
        row_order="shuffled",
        obfuscator="pca",
        fitted_on_private_rows=False,
        kinds_of_defence=("microaggregation",),
        stands_for="several rows",
        defences=("groups of five",),
        risk=figures,
        limits=policy.risk_limits,
        guarantee=None,
    )
    text = assessment(project, policy, summary)
    assert "| membership inference (AUC) | 0.66 | 0.7 | amber |" in text
    assert "| re-identified among strangers | not measured | 20 % | not measured |" in text
    assert "- defences: groups of five" in text
    assert "north.dcshare" in text
    assert "the limits of section 4, audit 'required'" in text
