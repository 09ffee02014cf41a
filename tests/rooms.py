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
    "datasets": Room("Data sets of the paper, dealt to parties.", "load"),
    "bundle": Room("Signed files without pickle, keys, seals.", "pack"),
    "targets": Room("Times and effects as targets.", "survival_target"),
    "table": Room("A file becomes a matrix, by a schema.", "read_table", ("bundle", "targets")),
    "survival": Room("Cox regression, forests, their measures.", "CoxRegression", ("targets",)),
    "share": Room("The message of a party that shares rows.", "Share", ("bundle", "targets")),
    "anchor": Room("Making the anchor; private rows in it.", "SMOTEAnchor"),
    "sums": Room("Sums over all parties' rows under masks.", "MaskedSum", ("linalg", "bundle")),
    "study": Room("Statistics as sums, and their one plan.", "StudyPlan", ("linalg", "sums")),
    "model": Room("The way back: g_k and h, as numbers.", "PartyModel", ("linalg", "bundle", "targets", "survival")),
    "own": Room("A party's own models, which stay there.", "PersonalModel", ("linalg", "bundle", "sums", "model")),
    "party": Room(
        "The rows that a party shares, defended.", "Party", ("linalg", "targets", "share", "sums", "model", "own")
    ),
    "analyst": Room(
        "The analyst's side: integrate and train.", "Analyst", ("linalg", "targets", "survival", "share", "model")
    ),
    "effects": Room(
        "Effects of treatments, from shared rows.", "estimate_effect", ("targets", "share", "model", "analyst")
    ),
    "estimators": Room(
        "All roles in one process, and baselines.",
        "DataCollaborationClassifier",
        ("datasets", "targets", "survival", "share", "sums", "model", "own", "party", "analyst"),
    ),
    "plugins": Room("Commands and remotes of others.", "plugins"),
    "progress": Room("A progress bar.", "ProgressBar"),
    "testing": Room("Checks of others' parts.", "check_integrator"),
}
"""What a data scientist imports; it never imports a wing."""

RISK = {
    "risk.attacks": Room(
        "Attacks on shared rows, and measures.", "ReconstructionAttack", ("linalg", "share", "anchor")
    ),
    "risk.audit": Room(
        "Attackers of several kinds, played.", "audit", ("targets", "share", "party", "analyst", "risk.attacks")
    ),
}
CHOICE = {"choice": Room("The most useful way within limits of risk.", "choose", ("party", "risk.audit"))}
AGREEMENT = {
    "agreement": Room(
        "The project: file, draft, sealed anchor.", "load_project", ("bundle", "targets", "table", "anchor", "sums")
    )
}
EXCHANGE = {
    "exchange.log": Room("The log of a folder, and its witnesses.", "AuditLog", ("bundle",)),
    "exchange.table_codes": Room("Whether two tables hold the same people.", "TableCodes"),
    "exchange.ledger": Room(
        "Totals that an institution's rows are in.", "Ledger", ("bundle", "exchange.log", "exchange.table_codes")
    ),
    "exchange.study": Room("Statistics by files.", "study_statistics", ("sums", "study", "agreement")),
    "exchange.sums": Room(
        "Sums by files, and the model's file.", "plan_of", ("bundle", "sums", "study", "agreement", "exchange.study")
    ),
    "exchange.party_folder": Room(
        "A party's folder: share, install, predict.",
        "PartyFolder",
        (
            *("linalg", "bundle", "targets", "table", "survival", "share", "anchor", "sums", "study", "model", "own"),
            *("party", "testing", "risk.audit", "exchange.log", "exchange.ledger", "exchange.table_codes", "agreement"),
            *("exchange.study", "exchange.sums", "exchange.steps"),
        ),
    ),
    "exchange.steps": Room("The steps of both sides in one table.", "STEPS"),
    "exchange.analyst_folder": Room(
        "The analyst's folder: receive, integrate.",
        "AnalystFolder",
        (
            *("linalg", "bundle", "survival", "share", "sums", "study", "model", "analyst", "effects", "risk.attacks"),
            *("exchange.log", "agreement", "exchange.sums"),
        ),
    ),
}
LOOK = {"look": Room("The look of all pages.", "templates_in")}
REMOTE = {"remote": Room("Files carried from folder to folder.", "Remote", ("bundle", "agreement", "plugins"))}
DESK = {
    "desk.web": Room("Pages of any role: who is let in, forms.", "create_app", ("bundle", "exchange.steps", "look")),
    "desk.party": Room(
        "A party's pages, step by step.",
        "party_app",
        ("bundle", "table", "risk.audit", "agreement", "exchange.party_folder", "exchange.steps", "desk.web"),
    ),
    "desk.analyst": Room(
        "The analyst's pages, step by step.",
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
