"""What a party does with a model that is installed: evaluate, explain, forget; the same as by commands."""

import pytest
from desk_world import finished, opened, plain, send, worked
from sklearn.linear_model import LinearRegression

import datacollab as dc
from datacollab.agreement import Anchor
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder
from datacollab.table import encode_table
from party_world import events, made_up_table, new_world


@pytest.fixture(scope="module")
def installed(tmp_path_factory, light_choices):
    """A party that is ready to predict; tests only read it."""
    world = new_world(tmp_path_factory.mktemp("installed"))
    a, b = world.shared("a"), world.shared("b")
    # The file of an analyst who chose by rows left out, so that it can be pooled with the party's own models.
    chosen = dc.Analyst(dc.LTI(3), budget=0, task=world.task).fit([world.open_share(each)[0] for each in (a, b)])
    a.install(world.model_file(a, b, change=lambda model: chosen.party_model("a")), random_state=0)
    made_up_table(200, seed=3).to_csv(world.root / "known.csv", index=False)
    return world


@pytest.fixture
def place(installed):
    return opened(installed.root / "a")


@pytest.mark.slow
def test_models_are_held_against_known_targets_side_by_side(installed, place):
    page = worked(place, "/evaluate", {"path": str(installed.root / "known.csv"), "find": "50"}, seconds=120)
    folder = PartyFolder(installed.root / "a")
    found = folder.evaluate(installed.root / "known.csv", find=0.5)
    sides = found["sides"]
    assert {"combined", "local", "collaboration"} <= sides.keys()
    areas = {side: scores["ranking"] for side, scores in sides.items()}
    for scores in areas.values():
        low, high = scores["auc_interval"]
        assert f"{scores['auc']:.3f}" in page
        assert f"{low:.3f} to {high:.3f}" in page
    gain = areas["combined"]["auc"] - areas["local"]["auc"]
    assert f"AUC of yes {gain:+.3g}, both together beside you and the public rows" in page
    ranking = found["ranking"]
    assert f"always the prevalence: {found['log_loss_baseline']:.3f}" in page
    assert f"{ranking['threshold']['n_found']} of {ranking['threshold']['n_positive']} are found" in page
    assert "Average precision of yes" in page
    for row in found["confusion"]:
        for count in row:
            assert f" {count} " in page
    assert not list((installed.root / "a" / "desk").glob("upload-*"))


def test_a_table_without_targets_is_refused(installed, place):
    made_up_table(20).drop(columns="ill").to_csv(installed.root / "unknown.csv", index=False)
    data = (installed.root / "unknown.csv").read_bytes()
    send(place, "/evaluate", files={"upload": ("x.csv", data)})
    assert 'class="code"' in finished(place, 120).text
    assert not list((installed.root / "a" / "desk").glob("upload-*"))
    assert "evaluate" not in place.desk.done


@pytest.mark.slow
def test_rows_are_explained_as_by_command(installed, place):
    page = worked(
        place, "/explain", {"path": str(installed.root / "known.csv"), "rows": "5", "keep": "id"}, seconds=200
    )
    out = installed.root / "why.csv"
    found = PartyFolder(installed.root / "a").explain(installed.root / "known.csv", out, most_rows=5, keep=["id"])
    downloaded = place.client.get("/explain/explanations.csv")
    assert downloaded.content == out.read_bytes()
    for name, value in found.importance().items():
        assert name in page
        assert f"{value:.4g}" in page
    pytest.importorskip("matplotlib")
    assert place.client.get("/explain/explanations.png").content.startswith(b"\x89PNG")
    kept = installed.root / "a" / "desk"
    assert {path.name for path in kept.iterdir()} == {"explanations.csv", "explanations.png"}
    worked(place, "/explain/remove")
    assert list(kept.iterdir()) == []
    assert place.client.get("/explain/explanations.csv").status_code == 422


@pytest.mark.parametrize(
    ("path", "form", "words"),
    [
        ("/evaluate", {"using": "nobody"}, "expected one of"),
        ("/evaluate", {}, "No table with known targets was given"),
        *(("/explain", {"class": "maybe"}, "no such class"), ("/explain", {"rows": "0"}, "a number from 1 on")),
        *(("/forget", {}, "Nothing was destroyed"), ("/forget", {"name": "b"}, "Nothing was destroyed")),
    ],
)
def test_what_is_strange_is_refused(place, path, form, words):
    answer = send(place, path, form)
    assert answer.status_code == 422
    assert words in plain(answer)


def test_forgetting_destroys_the_map_and_the_desks_copies(tmp_path):
    world = new_world(tmp_path)
    folder = world.shared("a")
    place = opened(tmp_path / "a")
    worked(place, "/table", files={"upload": ("a.csv", (tmp_path / "a.csv").read_bytes())})
    left = tmp_path / "a" / "desk" / "upload-of-a-desk-that-was-killed"
    left.mkdir()
    (left / "known.csv").write_text("rows")
    for name in ("table.csv", left.name):
        assert name in plain(place.client.get("/forget"))
    assert "has forgotten its map" in worked(place, "/forget", {"name": "a"})
    assert events(folder)[-1] == "forget"
    assert not (tmp_path / "a" / "party.dcstate").exists()
    assert list((tmp_path / "a" / "desk").iterdir()) == []
    assert (place.desk.table, place.desk.seen) == (None, None)
    assert "Next:" not in plain(place.client.get("/"))
    for path in ("/", "/model", "/predict", "/evaluate", "/explain"):
        assert place.client.get(path).status_code == 200, path
    send(place, "/predict", {"path": str(tmp_path / "new.csv")})
    assert "FORGOTTEN" in finished(place).text


def test_where_there_is_a_remote_its_commands_are_named(tmp_path):
    world = new_world(tmp_path)
    world.shared("a")
    place = opened(tmp_path / "a")
    assert "datacollab remote" not in place.client.get("/outbox").text + place.client.get("/").text
    (tmp_path / "a" / "remotes.toml").write_text('[remotes.store]\nurl = "sftp://files.example/exchange"\n')
    page = plain(place.client.get("/outbox"))
    assert f"datacollab remote push -C {tmp_path / 'a'}" in page
    assert f"datacollab remote pull -C {tmp_path / 'a'}" in page
    assert "datacollab remote pull" in plain(place.client.get("/"))
    assert "by e-mail" not in page


def test_a_model_in_the_inbox_is_installed_from_there(tmp_path):
    world = new_world(tmp_path)
    a, b = world.shared("a"), world.shared("b")
    inbox = tmp_path / "a" / "inbox"
    inbox.mkdir()
    world.model_file(a, b).replace(inbox / "a.dcmodel")
    place = opened(tmp_path / "a")
    assert "a.dcmodel" in plain(place.client.get("/model"))
    assert "A model is installed." in worked(place, "/model", {"inbox": "a.dcmodel"}, seconds=120)
    assert (inbox / "a.dcmodel").exists()


def test_what_somebody_writes_wins_over_what_the_page_chose_of_the_inbox(tmp_path):
    world = new_world(tmp_path)
    a, b = world.shared("a"), world.shared("b")
    model = world.model_file(a, b)
    inbox = tmp_path / "a" / "inbox"
    inbox.mkdir()
    (inbox / "z.dcmodel").write_bytes(b"of another project")
    place = opened(tmp_path / "a")
    assert 'name="offered" value="z.dcmodel"' in place.client.get("/model").text
    both = {"inbox": "z.dcmodel", "path": str(model)}
    assert "More than one file was given" in plain(send(place, "/model", both))
    assert "A model is installed." in worked(place, "/model", both | {"offered": "z.dcmodel"}, seconds=120)


@pytest.mark.slow
def test_answers_are_learned_from_and_outlast_the_map(tmp_path):
    world = new_world(tmp_path, task="regression")
    # Answers serve only where anchor rows are as near to a party's as its own.
    public = encode_table(world.project, made_up_table(60, seed=99), where="public", with_target=False)
    world.anchor = Anchor(rows=public.X)
    world.write_project(world.project)
    folders = [world.shared(name) for name in "ab"]
    analyst = AnalystFolder.init(tmp_path / "analyst", tmp_path / "project.toml")
    analyst.add(folder.path / "outbox" / f"{folder.name}.dcshare" for folder in folders)
    analyst.integrate(dc.LTI(3), LinearRegression(), n_folds=None)
    answers = next(file for file in analyst.export(anchor_predictions=True) if file.stem == "a")
    place = opened(tmp_path / "a")
    page = worked(
        place, "/distil", files={"upload": ("x.dcanswers", answers.read_bytes())}, data={"tree": "3"}, seconds=120
    )
    assert place.desk.done.get("distil"), page
    assert f"{100 * place.desk.done['distil']['r2']:.1f} % of their variance" in page
    assert "|---" in page
    worked(place, "/forget", {"name": "a"})
    assert "80 predictions" in worked(place, "/predict", {"path": str(tmp_path / "new.csv")})
    assert "from 1 to 20" in plain(send(place, "/distil", {"tree": "21"}))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("id,prediction,proba_no,proba_yes\n1,no,.9,.1\n2,no,.8,.2\n", "3 predictions: no 2, yes 0."),
        ("\ufeffprediction;flagged\nyes;True\nno;True\nyes;False\n", "3 predictions: no 1, yes 2."),
    ],
)
def test_how_many_are_called_of_each_class_is_said(installed, place, monkeypatch, written, said):
    real = PartyFolder.predict

    def predict(folder, table, output, **options):
        real(folder, table, output, **options)
        output.write_text(written, encoding="utf-8")
        return 3

    monkeypatch.setattr(PartyFolder, "predict", predict)
    told = worked(place, "/predict", {"path": str(installed.root / "new.csv")})
    assert said in told
    assert ("No probability of yes reaches one half" in told) == ("yes 0" in said)
