"""Commands on the pages, run as they are typed, one after the other, where there are the files that they name."""

import os
import shutil
import subprocess
import sysconfig

import numpy as np
import pandas as pd
import pytest
from blocks import block_of
from loaded_program import loaded_program

from datacollab.bundle import PublicKey
from named_world import table_of
from party_world import allow_without_audit

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")]

N_ENOUGH = 300
"""Rows for the default policy: of 120 the interval of membership is so wide that one share in many is refused."""


class Desk:
    """A folder where lines are typed.

    Attributes
    ----------
    at : Path
    programs : str
        A folder in which there is `datacollab`.
    """

    def __init__(self, at, programs):
        self.at, self.programs = at, programs

    def type(self, *lines, at="."):
        """Run lines; what they print."""
        programs = os.pathsep.join([self.programs, sysconfig.get_path("scripts"), os.environ["PATH"]])
        environment = {"PATH": programs, "HOME": str(self.at), "OMP_NUM_THREADS": "1", "COLUMNS": "100"}
        done = subprocess.run(
            ["bash", "-e", "-c", "\n".join(lines)],
            cwd=self.at / at,
            env=environment | {"PYTHONWARNINGS": "error"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=3600,
        )
        assert done.returncode == 0, f"{lines}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def play(self, document, beginning, *changes, at=".", part=slice(None), without=()):
        """Type what a block shows, or a part of its lines; what is changed in them is what a test cannot have."""
        lines = [each for each in block_of(document, beginning).typed[part] if not each.startswith(without)]
        for old, new in changes:
            assert any(old in line for line in lines), old
            lines = [line.replace(old, new) for line in lines]
        return self.type(*lines, at=at)


def patients(n_rows, seed):
    table = table_of(n_rows, seed)[["age", "pulse", "weight", "ward", "died"]]
    table.insert(0, "patient", np.arange(n_rows))
    return table


@pytest.fixture(scope="module")
def programs():
    with loaded_program() as folder:
        yield folder


@pytest.fixture
def desk(tmp_path, programs):
    return Desk(tmp_path, programs)


def begun(desk, *parties, rows=False):
    """Everybody has keys and a table, and has joined."""
    desk.type(f"datacollab keys new {' '.join(parties)} analyst", "cp north/public.key north.key")
    patients(300, 0).drop(columns="patient").to_csv(desk.at / "public.csv", index=False)
    members = " ".join(f"--party {name}={name}/public.key" for name in parties)
    # Attacks take the longer, the more anchor rows there are.
    way = "--rows --anchor-rows 200" if rows else ""
    desk.type(
        "datacollab project new heart --like public.csv --target died --purpose 'A test.' -o project.toml -C north"
        f" {members} --analyst analyst/public.key {way}",
        "datacollab anchor seal public.csv --project project.toml -C north",
    )
    for seed, name in enumerate(parties, 1):
        patients(N_ENOUGH, seed).to_csv(desk.at / name / "patients.csv", index=False)
        desk.type(f"datacollab party join project.toml anchor.dcanchor -C {name} --owner north.key")


@pytest.mark.nightly
def test_an_exchange_of_rows(desk):
    at, page = desk.at, "exchange-rows.md"
    begun(desk, "north", "south", rows=True)
    for name in ("north", "south"):
        # `check` and the attacks are made once.
        if name == "north":
            desk.play(page, "cd north")
            continue
        allow_without_audit(at / name / "policy.toml")
        changes = [("north", name), ("--approve", "--approve --no-audit")]
        desk.play(page, "cd north", *changes, without="datacollab party check")
    desk.type("cp */outbox/*.dcshare analyst")
    shown = desk.play(
        page, "datacollab analyst integrate north.dcshare", ("project.toml", "../project.toml"), at="analyst"
    )
    assert "south" in shown

    desk.type("cp analyst/outbox/north.dcmodel public.csv north")
    patients(90, 4).to_csv(at / "north" / "tested.csv", index=False)
    desk.play(page, "datacollab party install north.dcmodel", at="north")

    desk.type("ln -s north hospital-a")
    patients(20, 5).rename(columns={"patient": "id"}).to_csv(at / "new.csv", index=False)
    desk.play("explanations.md", "datacollab party explain")
    assert (at / "why.png").stat().st_size > 0
    assert pd.read_csv(at / "why.csv")["id"].is_unique


@pytest.mark.nightly
def test_an_effect_by_files(desk):
    desk.type("datacollab keys new north south analyst", "cp north/public.key owner.key")
    for seed, name in enumerate((".", "north", "south")):
        table = table_of(400, seed)[["age", "pulse", "weight", "drug", "died", "days"]]
        table.to_csv(desk.at / name / ("public.csv" if name == "." else "patients.csv"), index=False)
    members = "--party north=north/public.key --party south=south/public.key --analyst analyst/public.key -C north"
    desk.type(
        "datacollab project new trial --like public.csv --treatment drug --event died --time days --seen yes"
        f" --purpose 'A test.' {members}",
        "datacollab anchor seal public.csv --project project.toml -C north",
    )
    for name in ("north", "south"):
        desk.type(
            f"datacollab party join project.toml anchor.dcanchor -C {name} --owner owner.key",
            f"datacollab party share {name}/patients.csv --approve -C {name}",
        )
    desk.type("cp */outbox/*.dcshare .")
    desk.play("exchange-rows.md", "datacollab analyst init")
    assert "interval" in (desk.at / "analyst" / "effect.html").read_text(encoding="utf-8")


def test_an_exchange_through_a_folder_that_all_reach(desk):
    page, first = "remotes.md", "datacollab remote add store"
    desk.type("mkdir exchange")
    begun(desk, "north", "south", "east")
    desk.type("cp south/patients.csv .; rm south/project.toml south/anchor.dcstate")
    desk.play(page, first, ("/mnt/exchange", "exchange"), part=slice(4))
    desk.type("datacollab party join south/inbox/project.toml south/inbox/anchor.dcanchor -C south --owner north.key")
    heard = [PublicKey.load(desk.at / name / "public.key").fingerprint for name in ("north", "east")]
    given = " ".join(["patients.csv --approve", *(f"--heard {each}" for each in heard)])
    desk.play(page, first, ("patients.csv", given), part=slice(4, 6))
    desk.type("datacollab remote add store exchange -C analyst")
    desk.play(page, first, part=slice(6, 7))
    assert (desk.at / "analyst" / "inbox" / "south.dcsum").exists()


def test_an_audit_of_ones_own_table(desk):
    table = patients(400, 0).drop(columns="patient").rename(columns={"died": "diagnosis"})
    table.loc[::7, "age"] = np.nan
    parts = {"anchor": table[:100], "public": table[100:200], "patients": table[200:300]}
    for name, rows in parts.items():
        rows.to_csv(desk.at / f"{name}.csv", index=False)
    desk.play("rows.md", "datacollab audit")
    assert {page.parent.name for page in desk.at.rglob("*.html")} == {"audit"}


def test_what_the_program_is_asked_first(desk):
    installed = Desk(desk.at, sysconfig.get_path("scripts"))  # it asks which shell started it, and a server has none
    shown = installed.play("install.md", "python3 -m venv", part=slice(3, None))
    assert "Usage: " in shown
    desk.play("experiments.md", "pip install", part=slice(1, 2))


def test_a_hubs_operator_looks_after_it(desk):
    changes = ("/srv/hub", "hub"), ("owner.key", "owner/public.key")
    desk.type("datacollab keys new owner")
    desk.play("hub.md", "pip install", *changes, part=slice(1, 2))
    desk.type("datacollab hub log verify -C hub")
    desk.play("hub.md", "datacollab hub backup", ("/srv/", ""), ("/backup/", ""))
    desk.play("hub.md", "datacollab hub db current", ("/srv/", ""))


def test_project_files_are_drafted(desk):
    for name in ("a", "hospital-a", "b", "hospital-b", "hospital-c", "analyst"):
        desk.type(f"datacollab keys new -C {name}", f"cp {name}/public.key {name}.key")
    table_of(200).assign(stroke=lambda table: table["died"]).to_csv(desk.at / "public.csv", index=False)
    desk.type("cp hospital-a/public.key a.key; cp hospital-b/public.key b.key; cp hospital-c/public.key c.key")
    desk.play("project-file.md", "datacollab project new stroke")
