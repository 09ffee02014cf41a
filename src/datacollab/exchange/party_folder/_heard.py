"""Fingerprints that other institutions read out: without them, one person may have made up all the other parties."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ...errors import ExchangeError
from ._folder import PATIENCE, Folder, locked

_NEEDED = 2
"""Other institutions to be confirmed before sums leave.  If the only one works with the analyst, no mask hides."""


def confirm(folder: Folder, heard: Sequence[str]) -> list[str]:
    """Keep fingerprints as other institutions read them out of their own keys, and return the names of their parties.

    They hold as long as the project has parties of exactly these keys, and the institutions keep their names.  For one
    that is of no other institution's party, NOT_CONFIRMED is raised; those before it are kept.
    """
    names = []
    for typed in heard:
        names.append(_find_party(folder, typed))
        with locked(folder, patience=PATIENCE):
            known = {*_heard(folder), *names}
            institutions = {folder.project.parties[name].text: _institution(folder, name) for name in known}
            folder.write(folder.files.heard, {"roster": _roster(folder), "institutions": institutions}, {})
    return names


def n_unconfirmed(folder: Folder) -> int:
    """Return how many other institutions have still to be confirmed before sums leave; 0 if rows are shared."""
    if not folder.project.shares_sums:
        return 0
    # Two keys of one institution count once.  Every project of sums has two other institutions.
    return max(0, _NEEDED - len({_institution(folder, name) for name in _heard(folder)}))


def check_confirmed(folder: Folder) -> None:
    """Raise NOT_CONFIRMED unless the keys of two other institutions were confirmed."""
    if (n_more := n_unconfirmed(folder)) == 0:
        return
    known = {_institution(folder, name) for name in (*_heard(folder), folder.name)}
    names = ", ".join(name for name in folder.project.parties if _institution(folder, name) not in known)
    raise ExchangeError(
        "NOT_CONFIRMED",
        f"Party {folder.name!r}: sums leave once two other institutions are confirmed; one person may have made up all "
        f"others. {n_more} more: ring up one of {names}, at a number that you know. Have it read out the fingerprint "
        "of its own key (`datacollab keys show`). Type what you hear; commands take it as --heard, once for each.",
    )


def other_parties(folder: Folder) -> tuple[str, ...]:
    """Return each other party with its institution; its fingerprint only if it was heard, so that nobody copies it."""
    project = folder.project
    heard = _heard(folder)
    return tuple(
        f"{name} ({project.sums.entities[name]})" + f": {key.fingerprint}, as heard" * (name in heard)
        for name, key in project.parties.items()
        if name != folder.name
    )


def _heard(folder: Folder) -> list[str]:
    """Return the parties whose fingerprints were heard, among exactly these, from institutions of the same names."""
    try:
        facts = folder.read(folder.files.heard).facts
    except (FileNotFoundError, ExchangeError):
        # Nothing was heard, or the file is damaged: then the fingerprints are read out once more.
        return []
    kept = facts["institutions"] if facts["roster"] == _roster(folder) else {}
    return [name for name, key in folder.project.parties.items() if kept.get(key.text) == _institution(folder, name)]


def _roster(folder: Folder) -> list[str]:
    return sorted(key.text for key in folder.project.parties.values())


def _institution(folder: Folder, name: str) -> str:
    sharing = folder.project.sharing
    return name if sharing is None else sharing.entity(name)


def _find_party(folder: Folder, typed: str) -> str:
    """Return the party of another institution that has the fingerprint, or raise NOT_CONFIRMED."""
    project = folder.project
    letters = _letters_of(typed)
    keys = {"the analyst": project.analyst, "the owner": project.owner} | project.parties
    name = {_letters_of(key.fingerprint): name for name, key in keys.items()}.get(letters)
    if len(letters) != len(_letters_of(project.owner.fingerprint)):
        fault = f"a fingerprint has 16 letters and digits, and {len(letters)} were typed. Have it read again."
    elif name is None:
        fault = f"no party of project {project.name!r} has the fingerprint that was typed. Have it read once more. If "
        fault += "it is right, the project names another key there: share nothing, and ring up the project's owner."
    elif name not in project.parties:
        fault = f"this is the fingerprint of {name}, who is no party. Ring up another party."
    elif _institution(folder, name) == _institution(folder, folder.name):
        fault = f"this is the fingerprint of party {name!r}, of your own institution. Ring up another one."
    else:
        return name
    raise ExchangeError("NOT_CONFIRMED", f"Party {folder.name!r}: {fault}")


def _letters_of(fingerprint: str) -> str:
    """Return letters and digits of a fingerprint alone, without what people add when they type."""
    return "".join(each for each in unicodedata.normalize("NFKC", fingerprint).casefold() if each.isalnum())
