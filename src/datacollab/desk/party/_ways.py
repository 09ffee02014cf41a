"""How rows are to be shared: a form's entries, options of a command and a `Way` are the same things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.datastructures import FormData

from ...exchange.party_folder._way import PRESETS
from ...party import OBFUSCATORS
from ..web import checked, number, text, whole_number

if TYPE_CHECKING:
    from ...exchange.party_folder._way import Way

__all__ = ["form_of", "options_of", "options_of_way"]


def options_of(form: FormData) -> dict[str, Any]:
    """Options as `PartyFolder.prepare` takes them; what was left open is not among them.

    Raises
    ------
    ValueError
        Where an entry is none that is known.
    """
    found: dict[str, Any] = {
        "preset": _one_of(form, "preset", PRESETS),
        "obfuscator": _one_of(form, "obfuscator", OBFUSCATORS),
        "n_components": whole_number(form, "components"),
        "epsilon": number(form, "epsilon"),
        "group_size": whole_number(form, "group_size", least=2),
        "noise": number(form, "noise"),
    }
    chosen = {name: value for name, value in found.items() if value is not None}
    if checked(form, "fit_on_anchor"):
        chosen["fit_on_anchor"] = True
    if checked(form, "as_they_are"):
        chosen["standardize"] = False
    return chosen


def options_of_way(way: Way) -> dict[str, Any]:
    """The options that mean a way of sharing that was tried."""
    own = not (way.is_private or way.residuals)
    preset = "groups" if way.residuals else "private" if way.is_private else None if way.defences else "none"
    found = {
        "preset": preset,
        "obfuscator": way.obfuscator,
        "n_components": way.n_components,
        "standardize": way.standardize,
        "epsilon": way.epsilon,
        "group_size": way.group_size if own else None,
        "noise": way.noise if own else None,
        "fit_on_anchor": way.fit_on_anchor if own else None,
    }
    return {name: value for name, value in found.items() if value is not None}


def form_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Entries of the form that stand for options."""
    entries = {"components": options.get("n_components", ""), "as_they_are": options.get("standardize") is False}
    names = ("preset", "obfuscator", "epsilon", "group_size", "noise", "fit_on_anchor")
    return entries | {name: options.get(name, "") for name in names}


def _one_of(form: FormData, name: str, known: tuple[str, ...]) -> str | None:
    written = text(form, name)
    if written and written not in known:
        raise ValueError(f"{name.capitalize()}: one of {', '.join(known)} is wanted. Choose one of them.")
    return written or None
