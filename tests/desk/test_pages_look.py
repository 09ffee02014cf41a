"""What all pages look like: words can be read in light and in dark, and no text becomes markup."""

import re
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("jinja2", reason="the extra 'desk' is not installed")

from datacollab.look import HEADERS, STYLE, templates_in

CSS = STYLE.read_text(encoding="utf-8")
ON = {
    "page": ("ink", "soft", "link", "accent", "red", "amber", "green"),
    "panel": ("ink", "soft", "link"),
    "accent": ("on-accent",),
    "red": ("page",),
}


def colours(block):
    found = {}
    for name, value in re.findall(r"--([\w-]+): (#[0-9a-f]+);", block):
        digits = value[1:] if len(value) == 7 else "".join(2 * each for each in value[1:])
        found[name] = tuple(int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return found


def luminance(colour):
    """Of WCAG 2."""
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


LIGHT, DARK = (colours(block) for block in re.findall(r":root \{(.*?)\}", CSS, flags=re.DOTALL))


def test_the_measure_is_that_of_the_guidelines():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast((0x77 / 255,) * 3, (1, 1, 1)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_words_stand_out_from_what_is_behind_them(scheme):
    assert LIGHT.keys() == DARK.keys()
    for behind, names in ON.items():
        for name in names:
            assert contrast(scheme[name], scheme[behind]) >= 4.5, (name, behind)


def test_no_colour_of_words_is_left_out():
    used = set(re.findall(r"[; {]color: var\(--([\w-]+)\)", CSS))
    assert used == {name for names in ON.values() for name in names} - {"accent"}


def test_no_text_becomes_markup_or_turns_others_around():
    page = templates_in(Path("nowhere")).from_string("<p title='{{ text }}'>{{ text }}</p>")
    shown = page.render(text="<script>'\"\u202egpj\x1b[2J")
    assert "<script" not in shown
    assert not {"\u202e", "\x1b"} & set(shown)
    assert shown.count("&#39;") == 2
    page = templates_in(Path("nowhere")).from_string("{{ text }}")
    assert page.render(text="may leave\rmay not") == "may leave\ufffdmay not"


def test_a_page_loads_nothing_from_elsewhere_and_runs_nothing():
    policy = dict(part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert set(policy.values()) == {"'none'", "'self'"}
    assert "url(" not in CSS
    assert "@import" not in CSS


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp"]) | st.just("\n"), max_size=40))
def test_a_text_that_a_browser_sends_comes_back_as_it_was(text):
    page = templates_in(Path("nowhere")).from_string("<textarea>{{ text }}</textarea>")
    assert unescape(page.render(text=text.replace("\n", "\r\n"))) == f"<textarea>{text}</textarea>"
