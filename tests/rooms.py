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
FOLDER = {
    "folder.log": Room("The log of a folder, and its witnesses.", "AuditLog", ("bundle",)),
    "folder.table_codes": Room("Whether two tables hold the same people.", "TableCodes"),
    "folder.ledger": Room(
        "Totals that an institution's rows are in.", "Ledger", ("bundle", "folder.log", "folder.table_codes")
    ),
    "folder.step_table": Room("The steps of both sides in one table.", "STEPS"),
    "folder.party": Room(
        "A party's files, policy and commits.",
        "Folder",
        (
            *("bundle", "targets", "table", "anchor", "sums", "agreement", "folder.log"),
            *("folder.ledger", "folder.step_table"),
        ),
    ),
    "folder.analyst": Room("Files that came in: from whom.", "AnalystWay", ("bundle", "agreement", "folder.log")),
}
BY_SUMS = {
    "by_sums.rounds": Room("The analyst's request for a round.", "NextRound", ("bundle", "study", "agreement")),
    "by_sums.plan": Room(
        "What a project's parties add up.", "plan_of", ("sums", "study", "agreement", "by_sums.rounds")
    ),
    "by_sums.party": Room(
        "Add up, mask, share; the one model.",
        "SumsAtParty",
        (
            *("linalg", "bundle", "table", "anchor", "sums", "study", "own", "agreement", "folder.table_codes"),
            *("folder.ledger", "folder.party", "by_sums.rounds", "by_sums.plan"),
        ),
    ),
    "by_sums.analyst": Room(
        "The total, its model and its tables.",
        "SumsAtAnalyst",
        ("linalg", "bundle", "sums", "study", "agreement", "folder.analyst", "by_sums.rounds", "by_sums.plan"),
    ),
}
BY_ROWS = {
    "by_rows.party": Room(
        "Obfuscate, attack, share; own models.",
        "RowsAtParty",
        (
            *("bundle", "table", "survival", "share", "anchor", "model", "own", "party", "testing"),
            *("risk.audit", "agreement", "folder.party"),
        ),
    ),
    "by_rows.analyst": Room(
        "Check shares, integrate, send models.",
        "RowsAtAnalyst",
        (
            *("linalg", "bundle", "survival", "share", "model", "analyst", "risk.attacks"),
            *("agreement", "folder.analyst"),
        ),
    ),
}
STEPS = {
    "steps.party": Room(
        "A party's steps, by the project's way.",
        "PartyFolder",
        (
            *("linalg", "bundle", "table", "survival", "sums", "agreement", "folder.step_table"),
            *("folder.party", "by_sums.rounds", "by_sums.plan", "by_sums.party", "by_rows.party"),
        ),
    ),
    "steps.analyst": Room(
        "The analyst's steps, by the same way.",
        "AnalystFolder",
        (
            *("bundle", "analyst", "effects", "agreement", "folder.log", "folder.analyst"),
            *("by_sums.rounds", "by_sums.analyst", "by_rows.analyst"),
        ),
    ),
}
LOOK = {"look": Room("The look of all pages.", "templates_in")}
REMOTE = {"remote": Room("Files carried from folder to folder.", "Remote", ("bundle", "agreement", "plugins"))}
DESK = {
    "desk.web": Room(
        "Pages of any role: who is let in, forms.",
        "create_app",
        ("bundle", "folder.step_table", "look"),
    ),
    "desk.party": Room(
        "A party's pages, step by step.",
        "party_app",
        ("bundle", "table", "risk.audit", "agreement", "folder.step_table", "steps.party", "desk.web"),
    ),
    "desk.analyst": Room(
        "The analyst's pages, step by step.",
        "analyst_app",
        ("analyst", "folder.step_table", "steps.analyst", "desk.web"),
    ),
}
CLI = {
    "cli": Room(
        "The commands, one file each.",
        "main",
        (*LIBRARY, *RISK, *CHOICE, *AGREEMENT, *FOLDER, *BY_SUMS, *BY_ROWS, *STEPS, *LOOK, *REMOTE, *DESK),
    )
}

WINGS = {"risk": RISK, "folder": FOLDER, "by_sums": BY_SUMS, "by_rows": BY_ROWS, "steps": STEPS, "desk": DESK}
WINGS_MAY_IMPORT = {
    **{"risk": set(), "folder": set(), "by_sums": {"folder"}, "by_rows": {"folder", "risk"}},
    **{"steps": {"folder", "by_sums", "by_rows"}, "desk": {"folder", "by_rows", "by_sums", "steps", "risk"}},
}
"""Other wings; the desk shows what attacks find."""

ROOMS = LIBRARY | RISK | CHOICE | AGREEMENT | FOLDER | BY_SUMS | BY_ROWS | STEPS | LOOK | REMOTE | DESK | CLI
EVERYWHERE = {
    *("errors", "_by_name", "_coefficients", "_encoder", "_entries", "_frames", "_validation", "_notebooks"),
    *("_constraints", "_notices", "_require", "_threads", "_typing", "_version"),
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
