"""The map of the package: its rooms in reading order, where to begin in each, and what each may import.

`test_imports.py` holds the package to it, and CONTRIBUTING shows it; `python tests/rooms.py` prints what is shown.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """A package or module of `datacollab`.

    Attributes
    ----------
    contents : str
        In one sentence.
    entry : str
        A name of its own with which to begin reading.
    may_import : tuple of str
        Other rooms, besides the modules that all may import.
    """

    contents: str
    entry: str
    may_import: tuple[str, ...] = ()


LIBRARY = {
    "errors": Room("Everything that can go wrong, in one tree.", "DataCollabError"),
    "linalg": Room("Pure functions on arrays: the mathematics.", "ridge_coefficients"),
    "datasets": Room("Data sets of the paper, and splitting a table into parties.", "load"),
    "bundle": Room("Signed files: containers, arrays without pickle, keys, seals.", "pack"),
    "targets": Room("Times to events and effects as targets, beside classes and numbers.", "survival_target"),
    "table": Room("A file becomes a matrix, by a schema.", "read_table", ("bundle", "targets")),
    "survival": Room("Cox regression, survival forests, and how good they are.", "CoxRegression", ("targets",)),
    "share": Room("What a party sends.", "Share", ("bundle", "targets")),
    "anchor": Room("Making the anchor, and finding private rows in it.", "SMOTEAnchor"),
    "sums": Room("Sums over all parties' rows under masks.", "MaskedSum", ("linalg", "bundle")),
    "study": Room("Statistics as sums under masks, and the one plan of a message.", "StudyPlan", ("linalg", "sums")),
    "model": Room("What goes back: g_k and h, as numbers.", "PartyModel", ("linalg", "bundle", "targets", "survival")),
    "own": Room(
        "What stays at a party: its map at home, own models, and what the common model gains there.",
        "PersonalModel",
        ("linalg", "bundle", "sums", "model"),
    ),
    "party": Room(
        "What a party shares, and how that is defended.",
        "Party",
        ("linalg", "targets", "share", "sums", "model", "own"),
    ),
    "analyst": Room(
        "The analyst's side: integration and training.", "Analyst", ("linalg", "targets", "survival", "share", "model")
    ),
    "effects": Room(
        "Effects of treatments, from what parties share.",
        "estimate_effect",
        ("targets", "share", "model", "analyst"),
    ),
    "estimators": Room(
        "All roles in one process, and the baselines.",
        "DataCollaborationClassifier",
        ("datasets", "targets", "survival", "share", "sums", "model", "own", "party", "analyst"),
    ),
    "plugins": Room("Commands and kinds of remote that other distributions bring.", "plugins"),
    "progress": Room("A progress bar in a notebook or at a terminal.", "ProgressBar"),
    "testing": Room("Checks of others' integrators and obfuscators.", "check_integrator"),
}
"""What a data scientist imports; it never imports a wing."""

RISK = {
    "risk.attacks": Room(
        "Attacks on what parties share, and measures.", "ReconstructionAttack", ("linalg", "share", "anchor")
    ),
    "risk.audit": Room(
        "What attackers of several kinds would learn.",
        "audit",
        ("targets", "share", "party", "analyst", "risk.attacks"),
    ),
}
CHOICE = {
    "choice": Room("The most useful way of sharing rows within limits of risk.", "choose", ("party", "risk.audit"))
}
AGREEMENT = {
    "agreement": Room(
        "What is agreed on: the project, its file and draft, the sealed anchor.",
        "load_project",
        ("bundle", "targets", "table", "anchor", "sums"),
    )
}
EXCHANGE = {
    "exchange.log": Room("The log of a folder, its chain, and its witnesses.", "AuditLog", ("bundle",)),
    "exchange.table_codes": Room("Whether two tables hold the same people.", "TableCodes"),
    "exchange.ledger": Room(
        "What an institution's rows went into.", "Ledger", ("bundle", "exchange.log", "exchange.table_codes")
    ),
    "exchange.study": Room(
        "Statistics by files: what both sides make of the project.",
        "study_statistics",
        ("sums", "study", "agreement"),
    ),
    "exchange.sums": Room(
        "Sums by files: what both sides make of the project, and the model's file.",
        "plan_of",
        ("bundle", "sums", "study", "agreement", "exchange.study"),
    ),
    "exchange.party_folder": Room(
        "A party's folder: share once, install, predict.",
        "PartyFolder",
        (
            *("linalg", "bundle", "targets", "table", "survival", "share", "anchor", "sums", "study", "model", "own"),
            *("party", "testing", "risk.audit", "exchange.log", "exchange.ledger", "exchange.table_codes", "agreement"),
            *("exchange.study", "exchange.sums", "exchange.steps"),
        ),
    ),
    "exchange.steps": Room("The steps of both sides in one table, which commands and pages render.", "STEPS"),
    "exchange.analyst_folder": Room(
        "The analyst's folder: receive, integrate, export.",
        "AnalystFolder",
        (
            *("linalg", "bundle", "survival", "share", "sums", "study", "model", "analyst", "effects", "risk.attacks"),
            *("exchange.log", "agreement", "exchange.sums"),
        ),
    ),
}
LOOK = {"look": Room("What all pages look like: the stylesheet, templates that escape, headers.", "templates_in")}
REMOTE = {
    "remote": Room(
        "Carrying an exchange's files through a folder that all reach; kinds of plugins.",
        "Remote",
        ("bundle", "agreement", "plugins"),
    )
}
DESK = {
    "desk.web": Room(
        "What pages of any role need: who is let in, forms, work, pictures.",
        "create_app",
        ("bundle", "exchange.steps", "look"),
    ),
    "desk.party": Room(
        "A party's pages: the steps of its commands.",
        "party_app",
        ("bundle", "table", "risk.audit", "agreement", "exchange.party_folder", "exchange.steps", "desk.web"),
    ),
    "desk.analyst": Room(
        "The analyst's pages: the steps of its commands.",
        "analyst_app",
        ("analyst", "exchange.analyst_folder", "exchange.steps", "desk.web"),
    ),
}
CLI = {
    "cli": Room(
        "The commands, one file each.", "main", (*LIBRARY, *RISK, *CHOICE, *AGREEMENT, *EXCHANGE, *LOOK, *REMOTE, *DESK)
    )
}

WINGS = {"risk": RISK, "exchange": EXCHANGE, "desk": DESK}
WINGS_MAY_IMPORT = {**{"risk": set(), "exchange": {"risk"}}, "desk": {"exchange", "risk"}}
"""Other wings; the desk shows what attacks find."""

ROOMS = LIBRARY | RISK | CHOICE | AGREEMENT | EXCHANGE | LOOK | REMOTE | DESK | CLI
EVERYWHERE = {
    *(
        "errors",
        "_encoder",
        "_entries",
        "_frames",
        "_validation",
        "_codes",
        "_notebooks",
        "_methods",
        "_notices",
        "_obfuscators",
        "_positive",
        "_recommended",
        "_require",
        "_secrets",
        "_threads",
        "_typing",
        "_version",
    )
}
"""Modules that every room may import."""


def floor_of(name: str) -> int:
    """Return how many rooms lie below one, along the longest chain of imports."""
    below = ROOMS.keys() - {name} if name == "cli" else {*ROOMS[name].may_import} & ROOMS.keys()
    return 1 + max(map(floor_of, below), default=-1)


def draw_house() -> str:
    """Draw the house as CONTRIBUTING shows it: floors from top to bottom, and on each its rooms."""
    floors = {name: floor_of(name) for name in ROOMS}
    width = max(map(len, ROOMS)) + 2
    lines = []
    for floor in sorted(set(floors.values()), reverse=True):
        rooms = [name for name in ROOMS if floors[name] == floor]
        for name in rooms:
            number = str(floor) if name == rooms[0] else ""
            lines.append(f"{number:>2}  {name:<{width}}{ROOMS[name].contents}")
    return "\n".join(["```text", *lines, "```"])


if __name__ == "__main__":
    print(draw_house())
