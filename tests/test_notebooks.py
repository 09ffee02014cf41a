"""What a notebook shows: the way from rows to predictions in its order, escaped, and nothing of what is private."""

import re
import shutil

import numpy as np
import pytest
from sklearn.decomposition import PCA

import datacollab as dc
from audit_example import audit_result
from datacollab.party import Microaggregation

SEED = 918273645
pytestmark = [
    pytest.mark.filterwarnings("ignore::datacollab.errors.RepeatableSecretWarning"),
    pytest.mark.usefixtures("light_choices"),
]
SCRIPT = "<script>alert('&')</script>"


def played(random_state, *, names=("a", "b"), defences=()):
    """A party, its share and the collaboration, with data and secrets of this seed and shapes that are always alike."""
    rng = np.random.default_rng(random_state)
    X, public, y = rng.normal(size=(60, 7)), rng.normal(size=(80, 7)), np.repeat([0, 1], 30) + random_state
    parties = [
        dc.Party(
            name,
            PCA(3, svd_solver="randomized", random_state=random_state + 1),
            fit_on=public,
            defences=defences,
            random_state=random_state,
        ).fit(X[number::2], y[number::2])
        for number, name in enumerate(names)
    ]
    shares = [party.share(public[:40]) for party in parties]
    return parties[0], shares[0], dc.Analyst(dc.KTI(2, random_state=random_state)).fit(shares)


def stages(html):
    """Symbols of the way in their order, and those that are marked as held."""
    drawn = re.findall(r'<li class="([\w -]*)"><span><b>(.*?)</b>', html)
    return [symbol for _, symbol in drawn], [symbol for kinds, symbol in drawn if "dc-held" in kinds]


@pytest.mark.slow
@pytest.mark.parametrize("defences", [(), (Microaggregation(3),)])
def test_other_data_targets_and_secrets_of_the_same_shape_are_shown_alike(defences):
    for one, other in zip(played(0, defences=defences), played(SEED, defences=defences), strict=True):
        assert one._repr_html_() == other._repr_html_()
        assert str(SEED) not in other._repr_html_()


def test_the_way_goes_through_f_g_and_h_and_marks_what_the_object_holds():
    way = ["X<sub>k</sub>", "f<sub>k</sub>", "X\u0303<sub>k</sub>", "g<sub>k</sub>", "X\u0302<sub>k</sub>", "h"]
    held = {"Party": way[:2], "Share": way[2:3], "Collaboration": way[3:]}
    shown = [*played(0), audit_result()]
    for each in shown:
        assert stages(each._repr_html_()) == (way, held.get(type(each).__name__, way[2:3]))


def test_what_is_said_is_so():
    party, share, collaboration = (each._repr_html_() for each in played(0))
    assert "30 rows" in party
    assert "PCA, secret" in party
    assert "a secret half of public rows" in party
    assert "none: each row leaves" in party
    assert "30 of 3 columns, each the map of one own row" in share
    assert "40 rows, without targets" in share
    assert "Collaboration of 2 parties" in collaboration
    assert "KTI, one for each" in collaboration
    assert "60 \u00d7 2" in collaboration
    defended, shared, _ = (each._repr_html_() for each in played(0, defences=[Microaggregation(3)]))
    assert "<td>Microaggregation</td>" in defended
    assert "no own row by itself" in shared
    new = dc.Party("a", dc.obfuscator("pca", n_components=2, standardize=True))
    assert "not fitted" in new._repr_html_()
    assert "StandardScaler, PCA, secret" in new._repr_html_()
    assert "own rows, which it betrays" in new._repr_html_()


def test_names_are_escaped():
    for each in (*played(0, names=(SCRIPT, "b")), audit_result(party=SCRIPT, obfuscator=SCRIPT)):
        html = each._repr_html_()
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_an_audit_shows_its_lights_with_words_and_what_was_not_finished():
    result = audit_result(complete=False)
    html = result._repr_html_()
    for criterion in result.all_criteria():
        assert f"<th>{criterion.name}</th>" in html
        assert criterion.rating in html
    assert "ended this audit early" in html
    for record in result.worst_records:
        assert f">{record.index}<" not in html


def test_the_styles_of_a_card_change_nothing_else_of_the_notebook():
    for each in (*played(0), audit_result()):
        style = re.search(r"<style>(.*?)</style>", each._repr_html_(), re.DOTALL)[1]
        selectors = [part for rule in re.findall(r"([^{}]+)\{", style) for part in rule.split(",")]
        assert all(selector.strip().startswith(".dc-card") for selector in selectors)
        assert not re.search(r"[;{](color|background):(?!inherit|none|rgba)", style)


@pytest.mark.slow
def test_sentences_stay_on_the_left_in_a_notebook():
    """Whose rules for tables, these, push numbers to the right."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium was found on this machine")
    rules = "<style>.notebook:not(.markdown) td,.notebook:not(.markdown) th{text-align:right}</style>"
    with sync_api.sync_playwright() as play:
        # The sandbox of the browser needs rights that a container does not give.
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_content(f'{rules}<div class="notebook"><table><td>1</td></table>{audit_result()._repr_html_()}</div>')
        sides = page.evaluate("[...document.querySelectorAll('td, th')].map(each => getComputedStyle(each).textAlign)")
        browser.close()
    assert sides[0] == "right"
    assert set(sides[1:]) == {"left"}


@pytest.mark.slow
def test_many_parties_are_counted_not_listed():
    X = np.random.default_rng(0).normal(size=(300, 4))
    own = {f"p{number:02}": X[60 + number :: 13] for number in range(13)}
    parties = [dc.Party(name, PCA(2), fit_on=X[:60]).fit(rows, np.arange(len(rows)) % 2) for name, rows in own.items()]
    shares = [party.share(X[:50]) for party in parties]
    html = dc.Analyst(dc.LTI(2)).fit(shares)._repr_html_()
    assert "Collaboration of 13 parties" in html
    assert "p09" in html
    assert "p10" not in html
    assert "and 3 more" in html
