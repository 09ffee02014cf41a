"""Fingerprints that other institutions read out: without them, one person may have made up all the other parties."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from ...errors import ExchangeError
from ...folder.party import PATIENCE, Folder, locked

_NEEDED = 2
"""Other institutions to be confirmed before sums leave.  If the only one works with the analyst, no mask hides."""


def confirm(folder: Folder, heard: Sequence[str]) -> list[str]:
    """Keep fingerprints that other institutions read out, and return their parties; see `PartyFolder.confirm`."""
    names = []
    for typed in heard:
        names.append(_find_party(folder, typed))
        # One by one: a slip in the last one does not lose those before it.
        with locked(folder, patience=PATIENCE):
            known = {*_list_heard(folder), *names}
            institutions = {folder.project.parties[name].text: _institution(folder, name) for name in known}
            folder.write(folder.files.heard, {"roster": _roster(folder), "institutions": institutions}, {})
    return names


def n_unconfirmed(folder: Folder) -> int:
    """Return how many other institutions have still to be confirmed before sums leave."""
    # Two keys of one institution count once.  Every project of sums has two other institutions.
    return max(0, _NEEDED - len({_institution(folder, name) for name in _list_heard(folder)}))


def check_confirmed(folder: Folder) -> None:
    """Raise NOT_CONFIRMED unless the keys of two other institutions were confirmed."""
    if (n_more := n_unconfirmed(folder)) == 0:
        return
    known = {_institution(folder, name) for name in (*_list_heard(folder), folder.name)}
    names = [name for name in folder.project.parties if _institution(folder, name) not in known]
    whom = f"one of {', '.join(names)}"
    if len(names) == n_more:
        whom = " and ".join(names)
    raise ExchangeError(
        "NOT_CONFIRMED",
        f"Party {folder.name!r}: sums leave once two other institutions are confirmed; one person may have made up all "
        f"others. {n_more} more: ring up {whom}, at a number that you know. Have it read out the fingerprint "
        "of its own key (`datacollab keys show`). Type what you hear; commands take it as --heard, once for each.",
    )


def other_parties(folder: Folder) -> tuple[str, ...]:
    """Return each other party with its institution; its fingerprint only if it was heard, so that nobody copies it."""
    project = folder.project
    heard = _list_heard(folder)
    lines = []
    for name, key in project.parties.items():
        if name == folder.name:
            continue
        line = f"{name} ({project.sums.entities[name]})"
        if name in heard:
            line += f": {key.fingerprint}, as heard"
        lines.append(line)
    return tuple(lines)


def _list_heard(folder: Folder) -> list[str]:
    """Return the parties whose fingerprints were heard, among exactly these, from institutions of the same names."""
    try:
        facts = folder.read(folder.files.heard).facts
    except (FileNotFoundError, ExchangeError):
        # Nothing was heard, or the file is damaged: then the fingerprints are read out once more.
        return []
    # Among other keys everything is to be heard anew: a new party may be of the same person as another.
    if facts["roster"] != _roster(folder):
        return []
    kept = facts["institutions"]
    return [name for name, key in folder.project.parties.items() if kept.get(key.text) == _institution(folder, name)]


def _roster(folder: Folder) -> list[str]:
    return sorted(key.text for key in folder.project.parties.values())


def _institution(folder: Folder, name: str) -> str:
    return folder.project.sums.entity(name)


def _find_party(folder: Folder, typed: str) -> str:
    """Return the party of another institution that has the fingerprint, or raise NOT_CONFIRMED."""
    project = folder.project
    letters = _letters_of(typed)
    # These are no parties, and are known here so that a mix-up is named.
    keys = {"the analyst": project.analyst, "the owner": project.owner} | project.parties
    name = {_letters_of(key.fingerprint): name for name, key in keys.items()}.get(letters)
    # Each case has a fault of its own, so that the caller knows whether to ask again or to stop.
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
    """Return letters and digits of a fingerprint alone, without spaces and dashes that people add when they type."""
    return "".join(each for each in unicodedata.normalize("NFKC", fingerprint).casefold() if each.isalnum())
