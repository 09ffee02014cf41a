"""What lies in deploy/: that it is well formed, fits the program, and does what docs/hub-deployment.md says."""

import configparser
import contextlib
import os
import re
import shlex
import shutil
import ssl
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import typer
from click.testing import CliRunner
from prometheus_client import generate_latest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import OperationalError

from datacollab_hub.rules import ROUTES
from datacollab_hub.store import METADATA, Store
from hub_process import HubProcess, free_port
from hub_world import World
from playing import app, done, run
from postgres_server import find_programs, run_server

ROOT = Path(__file__).parents[2]
DEPLOY, DOCS = ROOT / "hub" / "deploy", ROOT / "hub" / "docs"
needs_caddy = pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not on this machine")
needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on this machine"
)


def tool(*words, **environment):
    return subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, env=os.environ | environment
    )


def assert_serves(words):
    """The program knows these words."""
    command = typer.main.get_command(app)
    for name in ("hub", "serve"):
        command = command.commands[name]
    assert words[0] == "serve"
    context = command.make_context("serve", list(words[1:]))
    assert context.params["data"]
    return context.params


@pytest.fixture(scope="module")
def compose():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_compose_file_is_of_its_specification():
    checker = pytest.importorskip("check_jsonschema", reason="the specification's schema is in check-jsonschema")
    words = ["--builtin-schema", "vendor.compose-spec", str(DEPLOY / "compose.yaml")]
    checked = CliRunner().invoke(checker.main, words)
    assert checked.exit_code == 0, checked.output


def test_services_restart_are_watched_and_get_no_more_than_they_need(compose):
    assert set(compose["services"]) == {"hub", "database", "proxy"}
    for service in compose["services"].values():
        assert service["restart"] == "unless-stopped"
        assert service["healthcheck"]["test"][0] == "CMD"
        assert "no-new-privileges:true" in service["security_opt"]
        named = [volume.partition(":")[0] for volume in service["volumes"]]
        assert all(name in compose["volumes"] or (DEPLOY / name).is_file() for name in named)
    hub, database, proxy = (compose["services"][name] for name in ("hub", "database", "proxy"))
    assert hub["read_only"]
    assert hub["cap_drop"] == ["ALL"]
    assert "ports" not in hub
    assert "ports" not in database
    # The database reaches nobody but the hub, and nobody else reaches it.
    assert database["networks"] == ["inside"]
    assert "inside" not in proxy["networks"]
    assert compose["networks"]["inside"]["internal"]
    said = assert_serves([word.replace("${HUB_NAME:?the name by which everybody knows the hub}", "hub.example")
                          for word in hub["command"]])  # fmt: skip
    assert said["url"] == "https://hub.example"


def test_secrets_are_files_and_nowhere_else(compose):
    assert set(compose["secrets"]) == {"hub_pgpass", "postgres_password", "metrics_token"}
    for service in compose["services"].values():
        assert set(service.get("secrets", ())) <= set(compose["secrets"])
        for name, value in service.get("environment", {}).items():
            if "PASS" in name:
                assert value.removeprefix("/run/secrets/") in service["secrets"]
    assert all(each["file"].startswith("./secrets/") for each in compose["secrets"].values())
    assert compose["services"]["hub"]["environment"]["DATACOLLAB_HUB_DATABASE"] == "postgresql://hub@database/hub"
    assert "/hub/deploy/secrets/" in (ROOT / ".gitignore").read_text().splitlines()


def test_the_container_runs_as_nobody_in_particular():
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    last = max(number for number, (word, _) in enumerate(steps) if word == "FROM")
    final = dict(steps[last:])
    user = final["USER"].partition(":")[0]
    assert user.isdecimal()
    assert int(user) > 0
    assert user in (DOCS / "hub-deployment.md").read_text()
    extras = re.search(r"\./hub\[([\w,]+)\]", text)[1].split(",")
    offered = tomllib.loads((ROOT / "hub" / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) <= set(offered)
    for word, rest in steps[:last]:
        if word == "COPY":
            assert all((ROOT / name).exists() for name in rest.split()[:-1])
    assert assert_serves(shlex.split(final["CMD"].strip("[]").replace(",", " ")))["host"] == "0.0.0.0"
    probe = re.search(r"http://127.0.0.1:8000(/\w+)", final["HEALTHCHECK"])[1]
    assert ("GET", probe) in {(route.method, route.path) for route in ROUTES}
    assert not any(re.search("password|secret|token", rest, re.IGNORECASE) for _, rest in steps)


def test_the_documented_lines_pin_every_image_by_its_digest(tmp_path):
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    # What an engine would say of an image that it pulled; the last word is its name.
    docker.write_text(f"""#!/bin/sh
for name; do :; done
[ "$1" = image ] && echo "docker.io/library/${{name%%:*}}@sha256:{"7" * 64}" || echo pulled
""")
    docker.chmod(0o755)
    shutil.copytree(DEPLOY, tmp_path / "hub" / "deploy")
    section = (DOCS / "hub-deployment.md").read_text().split("These lines pin")[1]
    lines = [line[2:] for line in section.split("```")[1].splitlines()[1:]]
    path = f"{docker.parent}:{os.environ['PATH']}"
    subprocess.run(["bash", "-ec", "\n".join(lines)], cwd=tmp_path, env=os.environ | {"PATH": path}, check=True)
    files = [(tmp_path / "hub" / "deploy" / name).read_text() for name in ("Containerfile", "compose.yaml")]
    named = re.findall(r"^(?:FROM| +image:) (\S+)", "\n".join(files), re.MULTILINE)
    images = {name.partition("@")[0].rpartition("/")[2] for name in named}
    assert images == {"caddy", "datacollab-hub", "postgres", "python"}
    assert all(re.search(r"@sha256:7{64}$", name) for name in named if name != "datacollab-hub")


def unit():
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=["="])
    parser.optionxform = str
    parser.read(DEPLOY / "datacollab-hub.service")
    return parser


def test_the_unit_starts_the_hub():
    service = unit()["Service"]
    program, group, *words = shlex.split(service["ExecStart"])
    assert (Path(program).name, group) == ("datacollab", "hub")
    said = assert_serves(words)
    assert said["data"] == Path("/var/lib") / service["StateDirectory"]
    assert said["host"] == "127.0.0.1"
    for name, value in {"ProtectSystem": "strict", "NoNewPrivileges": "yes", "UMask": "0077"}.items():
        assert service[name] == value


@needs_systemd
def test_systemd_understands_the_unit(tmp_path):
    # The program is not where the unit says it is.
    text = (DEPLOY / "datacollab-hub.service").read_text().replace("/opt/datacollab/bin/datacollab", sys.executable)
    (tmp_path / "datacollab-hub.service").write_text(text)
    checked = tool("systemd-analyze", "verify", tmp_path / "datacollab-hub.service")
    assert "datacollab-hub.service" not in checked.stderr, checked.stderr


@needs_systemd
def test_systemd_finds_the_unit_shut_tight():
    version = int(tool("systemd-analyze", "--version").stdout.split()[1])
    if version < 250:
        pytest.skip(f"systemd-analyze {version} rates installed units alone")
    # 0 is shut, 100 open; what is left is that the hub has a network, a user and system calls at all.
    rated = tool(
        *("systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager"),
        DEPLOY / "datacollab-hub.service",
    )
    assert rated.returncode == 0, rated.stdout[-200:] + rated.stderr


@needs_caddy
def test_caddy_understands_its_file():
    checked = tool("caddy", "validate", "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile")
    assert checked.returncode == 0, checked.stderr


@contextlib.contextmanager
def caddy(folder, name, upstream):
    """Caddy in front of a hub, by the file of deploy/, with ports of its own and an authority of its own."""
    text = (DEPLOY / "Caddyfile").read_text()
    ours = f"admin off\n\tskip_install_trust\n\thttp_port {free_port()}"
    (folder / "Caddyfile").write_text(text.replace("admin off", ours))
    environment = os.environ | {"HUB_NAME": name, "HUB_AT": upstream, "XDG_DATA_HOME": str(folder), "HOME": str(folder)}
    environment["XDG_CONFIG_HOME"] = str(folder / "config")
    with (folder / "caddy.log").open("w") as log:
        process = subprocess.Popen(
            ["caddy", "run", "--config", folder / "Caddyfile", "--adapter", "caddyfile"],
            stdout=log, stderr=log, env=environment,
        )  # fmt: skip
    ca = folder / "caddy/pki/authorities/local/root.crt"
    try:
        end = time.monotonic() + 120
        while not (ca.exists() and (folder / "caddy/certificates/local/localhost/localhost.key").exists()):
            assert process.poll() is None, (folder / "caddy.log").read_text()
            assert time.monotonic() < end, (folder / "caddy.log").read_text()
            time.sleep(0.1)
        yield ca
    finally:
        process.terminate()
        process.wait(60)


@needs_caddy
def test_members_reach_a_hub_behind_caddy_by_its_own_authority(tmp_path):
    port, hub_port = free_port(), free_port()
    url = f"https://localhost:{port}"
    north = tmp_path / "north"
    done("keys", "new", north)
    done("hub", "allow", north / "public.key", "--data", tmp_path / "hub")
    hub = HubProcess(tmp_path / "hub", hub_port, tmp_path / "hub.log", more=["--url", url])
    with hub, caddy(tmp_path, url, f"127.0.0.1:{hub_port}") as ca:
        done("remote", "add", "hub", url, "--ca", ca, "-C", north)
        done("remote", "open", "heart", "-C", north)
        assert f"{url}/v1/projects/" in done("remote", "invite", "south", "-C", north).stdout
        done("remote", "status", "-C", north)
        done("remote", "add", "unknown", url, "-C", north)
        assert "TLS_UNTRUSTED" in run("remote", "open", "heart", "--remote", "unknown", "-C", north).stderr
        assert {path: status_of(url, path, ca) for path in ("/healthz", "/readyz", "/metrics")} == {
            **{"/healthz": 200, "/readyz": 404, "/metrics": 404}
        }


def status_of(url, path, ca):
    try:
        with urllib.request.urlopen(url + path, timeout=60, context=ssl.create_default_context(cafile=ca)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.slow
@pytest.mark.skipif(find_programs() is None, reason="PostgreSQL's programs are not on this machine")
def test_the_databases_password_comes_from_a_file(tmp_path, monkeypatch):
    with run_server(find_programs()) as address:
        engine = create_engine(address.replace("postgresql:", "postgresql+psycopg:") + "/postgres")
        with engine.connect() as connection:
            connection.execute(text("ALTER ROLE hub PASSWORD 'p4ssword'"))
            rules = Path(connection.execute(text("SHOW hba_file")).scalar())
            connection.commit()
            rules.write_text("host all all 127.0.0.1/32 scram-sha-256\n")
            connection.execute(text("SELECT pg_reload_conf()"))
            connection.commit()
        engine.dispose()
        time.sleep(1)
        place = address.rpartition("@")[2].partition(":")
        passwords = tmp_path / "pgpass"
        passwords.write_text(f"{place[0]}:{place[2]}:postgres:hub:p4ssword\n")
        monkeypatch.setenv("PGPASSFILE", str(passwords))
        passwords.chmod(0o644)
        with pytest.raises(OperationalError, match="no password supplied"):
            Store.opened(tmp_path / "hub", database=f"{address}/postgres")
        passwords.chmod(0o600)
        Store.opened(tmp_path / "hub", database=f"{address}/postgres").close()


def metrics(folder):
    """Names of the hub's numbers, as Prometheus reads them."""
    with World(folder) as world:
        world.client.get("/healthz")
        numbers = generate_latest(world.client.app.state.numbers.registry).decode()
    return set(re.findall(r"^(datacollab_hub_\w+?)(?:\{| )", numbers, re.MULTILINE))


def test_alerts_and_documents_speak_of_numbers_that_there_are(tmp_path):
    there = metrics(tmp_path)
    asked = set(re.findall(r"datacollab_hub_\w+", (DEPLOY / "alerts.yaml").read_text()))
    assert set() < asked <= there
    told = set(re.findall(r"`(datacollab_hub_\w+)", (DOCS / "hub-deployment.md").read_text()))
    assert told == {name for name in there if not name.endswith("_created")}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not on this machine")
def test_prometheus_understands_the_alerts():
    checked = tool("promtool", "check", "rules", DEPLOY / "alerts.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_page_for_the_it_department_names_every_table_and_all_that_is_in_it():
    page = (DOCS / "hub-it.md").read_text().split("## What lies on the disk")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+)$", page, re.MULTILINE))
    assert set(rows) == set(METADATA.tables)
    for name, table in METADATA.tables.items():
        told = set(re.findall(r"`(\w+)`", rows[name]))
        assert told >= set(table.columns.keys()), name
