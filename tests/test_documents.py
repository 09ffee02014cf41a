"""The documents agree with the code, with each other, and with what the program does and says."""

import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import datacollab
import datacollab_hub
from datacollab.errors import ExchangeError
from datacollab.plugins import all_codes
from playing import command_here, done
from rooms import ROOMS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*/docs/*.md")])
SOURCES = [
    path.read_text(encoding="utf-8")
    for folder in ("src", "experiments/src")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def slug(heading):
    """The fragment that a heading gets in rendered Markdown."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def headings(path):
    text = without_code(path.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_resolve(document):
    for target in re.findall(r"\]\(([^)\s]+)\)", without_code(document.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, fragment = target.partition("#")
        path = document.parent / name if name else document
        assert path.exists(), target
        if fragment:
            assert fragment in headings(path), target


LONG_PAGES = {"formats.md", "error-codes.md", "reference.md"}


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_a_page_is_short_enough_to_read(page):
    if page.name not in LONG_PAGES:
        assert len(page.read_text(encoding="utf-8").split()) <= 2500


def equations():
    """The rows of the table of equations: labels, places and tests as they are written."""
    page = (ROOT / "docs" / "research.md").read_text(encoding="utf-8").split("## Equations\n")[1]
    return [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")][2:]


def test_the_page_for_researchers_lists_the_equations_that_docstrings_cite():
    cited = {
        label
        for text in SOURCES
        for labels in re.findall(r"\beqs?\.\s+([A-Za-z][\w-]+(?:,\s+[A-Za-z][\w-]+)*)", text)
        for label in re.split(r",\s+", labels)
    }
    told = {}
    for labels, places, _ in equations():
        told |= dict.fromkeys(re.findall(r"`([\w:-]+)`", labels), places)
    assert cited <= told.keys()
    for label in cited:
        found = [source_at(place) for place in re.findall(PLACE, told[label])]
        assert label in "".join(found), label


PLACE = r"`([\w/]*[./][\w./]+)`"


def source_at(place):
    """The source of a file of the package, or of the file that a name of it is in."""
    if place.startswith("experiments/"):
        folder = ROOT / "experiments" / "src" / "datacollab_experiments"
        return (folder / place.removeprefix("experiments/")).read_text(encoding="utf-8")
    if "/" in place:
        return (ROOT / "src" / "datacollab" / place).read_text(encoding="utf-8")
    if place.startswith("datacollab_experiments."):
        room, _, name = place.rpartition(".")
        return Path(inspect.getsourcefile(getattr(importlib.import_module(room), name))).read_text(encoding="utf-8")
    room = max((each for each in ROOMS if place.startswith(f"{each}.")), key=len)
    found = importlib.import_module(f"datacollab.{room}")
    for name in place.removeprefix(f"{room}.").split("."):
        found = getattr(found, name)
    return Path(inspect.getsourcefile(found)).read_text(encoding="utf-8")


@pytest.mark.parametrize(("names", "places", "tests"), equations(), ids=lambda cell: cell[:24])
def test_the_page_for_researchers_says_where_the_papers_names_are_and_what_tests_them(names, places, tests):
    found = re.findall(PLACE, places)
    assert all(source_at(place) for place in found)
    # What a test of it has to speak of: a name of the library, or a module of the experiments.
    spoken = {place.rpartition(".")[0 if place.endswith((".py", ".toml")) else 2] for place in found}
    spoken = {each.rpartition("/")[2].lstrip("_") for each in spoken}
    for path in re.findall(r"`([\w/]+\.py)`", tests):
        (test,) = [root / path for root in (ROOT / "tests", ROOT / "experiments" / "tests") if (root / path).exists()]
        assert any(name in test.read_text(encoding="utf-8") for name in spoken), (test, spoken)
    assert tests.count("`") > 1, names


def test_the_readme_has_the_papers_main_result_as_it_was_run_again():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    told = re.search(r"LTI has an accuracy of (\S+), KTI (\S+), .*? (\S+) \(printed: (\S+), (\S+), (\S+);", readme)
    page = (ROOT / "docs" / "results" / "printed" / "README.md").read_text(encoding="utf-8")
    printed, ours = [], []
    for method in ("LTI", "KTI", "KTI+TSL"):
        cells = re.search(rf"^\| mnist \| kernel PCA \| 64 \| {re.escape(method)} \|(.*)", page, re.MULTILINE)[1]
        first, second = re.findall(r"(\S+) ±", cells)
        printed.append(first)
        ours.append(second)
    assert told.groups() == (*ours, *printed)


def test_bibliography_lists_what_docstrings_cite():
    page = (ROOT / "docs" / "bibliography.md").read_text(encoding="utf-8").splitlines()
    references = [
        " ".join(reference.split())
        for text in SOURCES
        for reference in re.findall(
            r"^ *\.\. \[\d+\] (.+?)(?=\n\s*\n|\n *\.\. \[|\n *\"\"\")", text, flags=re.DOTALL | re.M
        )
    ]
    assert len(references) > 10
    for reference in references:
        author = re.search(r"[A-Z][\w-]{2,}", reference)[0]
        year = re.findall(r"\b(?:19|20)\d\d\b(?!\.\d)", reference)
        assert any(author in line and (not year or any(y in line for y in year)) for line in page), reference


def test_citation_names_the_software_and_the_paper():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    top = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", citation, flags=re.MULTILINE))
    assert top["title"] == "datacollab"
    assert top["version"] == datacollab.__version__
    assert {"cff-version", "message", "authors", "license", "preferred-citation"} <= set(top)
    assert "title: Nonlinear Data Integration via Kernel Methods for Data Collaboration Analysis" in citation
    assert not re.search(r"\t| +$", citation, flags=re.MULTILINE)


def test_citation_is_of_its_format():
    tool = pytest.importorskip("check_jsonschema", reason="the format's schema is in check-jsonschema")
    words = ["--builtin-schema", "vendor.citation-file-format", str(ROOT / "CITATION.cff")]
    checked = CliRunner().invoke(tool.main, words)
    assert checked.exit_code == 0, checked.output


def test_changelog_opens_with_the_current_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## \[(.+?)\]", changelog, flags=re.MULTILINE)
    assert first[1] in {"Unreleased", datacollab.__version__}


PAGES = [Path(__file__).parents[1] / "docs" / f"{name}.md" for name in ("owner", "hospital", "analyst")]
MOST_COMMANDS, MOST_WORDS = 10, {"owner": 700, "hospital": 1600, "analyst": 700}
VARYING = re.compile(r"approved by \S+|[a-z0-9]{4}(-[a-z0-9]{4}){3}|[0-9a-f]{64}|\d[\d,.]*")
"""Figures and keys."""


def commands_and_outputs(text):
    """A list of (command, lines of its output)."""
    steps = []
    for line in re.sub(r" \\\n +", " ", text).splitlines():
        if line.startswith("$ datacollab"):
            # Fingerprints that were heard are other ones each time.
            steps.append((re.sub(r"(--heard) \S+", r"\1 #", line), []))
        elif steps and line.strip() and not line.startswith("# "):
            steps[-1][1].append(line.rstrip())
    return steps


def documented():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return commands_and_outputs("\n".join(blocks))


def masked(lines):
    """Lines without figures and keys."""
    return [VARYING.sub("#", line) for line in lines]


def test_there_are_few_enough_commands_and_words():
    assert len(documented()) - 1 <= MOST_COMMANDS  # without the evaluation
    for page in PAGES:
        assert len(page.read_text(encoding="utf-8").split()) <= MOST_WORDS[page.stem]


@pytest.mark.slow
@pytest.mark.usefixtures("all_trees")
def test_it_is_what_the_program_does_and_says(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", command_here)
    monkeypatch.setenv("COLUMNS", "100")
    played = dict(commands_and_outputs(done("demo", "--roles", "--output", tmp_path / "exchange").stdout))
    # The page shows one hospital's part, and all else.
    others = [command for command in played if re.search(r" party .*-C hospital-[ac-e]$", command)]
    assert len(others) == 8
    assert {command for command, _ in documented()} == {command for command in played if command not in others}
    for command, told in documented():
        assert masked(told) == masked(played[command]), command
    shared = [told for command, told in played.items() if " party share " in command]
    assert len(shared) == 5
    assert all("No row leaves, and no target." in told for told in shared)
    predictions = (tmp_path / "exchange" / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert predictions[0].startswith("prediction,proba_0,")
    assert len(predictions) == 301


CODES = {name: code for name, code in all_codes().items() if name not in datacollab_hub.CODES}
PAGE = ROOT / "docs" / "error-codes.md"
ROW = re.compile(r"^\| `([A-Z_]+)` \| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)


def test_the_page_says_what_the_code_says():
    written = [(code, int(number), *texts) for code, number, *texts in ROW.findall(PAGE.read_text(encoding="utf-8"))]
    assert written == [(name, code.exit_code, code.meaning, code.remedy) for name, code in CODES.items()]


def test_exit_codes_are_as_documented_and_apart():
    documented = re.findall(r"^\| (\d+) \| ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {str(code.exit_code) for code in CODES.values()} <= set(documented)
    assert len(set(documented)) == len(documented)


def test_an_unknown_code_is_a_defect():
    with pytest.raises(KeyError):
        ExchangeError("NO_SUCH_CODE", "Nothing.")


@pytest.mark.nightly
def test_a_whole_run_that_raises_no_code_fails_and_names_them(tmp_path):
    """`suite.py` records codes as they are raised; a run of named files or of chosen tests is not judged."""
    (tmp_path / "test_nothing.py").write_text(
        "from datacollab.errors import ExchangeError\n\ndef test_one():\n    ExchangeError('BUSY', 'x')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "suite", f"-c{ROOT / 'pyproject.toml'}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    done = [
        subprocess.run([*command, *options], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        for options in ([f"-otestpaths={tmp_path}"], [str(tmp_path)])
    ]
    assert [each.returncode for each in done] == [1, 0], done[0].stdout
    never = done[0].stdout.splitlines()[-2]
    assert set(never.split(", ")) == {*CODES, *datacollab_hub.CODES} - {"BUSY"}
