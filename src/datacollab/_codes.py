"""Codes of refusals in the exchange of files: what each means, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["CODES", "EXIT_CODES", "Code", "add_codes", "known_codes"]

EXIT_CODES = {
    "keys": 10,
    "verification": 11,
    "policy": 12,
    "schema": 13,
    "state": 14,
    "limits": 15,
    "model": 16,
    "remote": 17,
}
"""What the program exits with, by the kind of a refusal."""


@dataclass(frozen=True)
class Code:
    """A reason to refuse.

    Attributes
    ----------
    kind : str
        A key of `EXIT_CODES`.
    meaning, remedy : str
        A sentence each, for the documentation.
    """

    kind: str
    meaning: str
    remedy: str

    @property
    def exit_code(self) -> int:
        """What the program exits with."""
        return EXIT_CODES[self.kind]


CODES = {
    # keys
    "KEY_MISSING": Code("keys", "There is no key where one is needed.", "Make one with `datacollab keys new`."),
    "KEY_EXPOSED": Code(
        "keys", "Others than their owner can read the secret keys.", "Close the file, or make new keys."
    ),
    "KEY_MALFORMED": Code("keys", "A file or text is no key of this program.", "Ask its owner to send it again."),
    "PASSPHRASE_WEAK": Code(
        "keys", "The passphrase for new keys is too short.", "Give a longer one, such as four words."
    ),
    "PASSPHRASE_WRONG": Code("keys", "The passphrase does not open the file.", "Try again; it cannot be recovered."),
    "NOT_A_MEMBER": Code(
        "keys", "A key is not the one that the project names for this role.", "Ask the project's owner to add the key."
    ),
    # verification
    "BUNDLE_MALFORMED": Code("verification", "A file is not a whole bundle.", "Have it sent again."),
    "HASH_MISMATCH": Code("verification", "A part of a bundle was changed on its way.", "Have it sent again."),
    "FORMAT_TOO_NEW": Code(
        "verification", "A file was written by a later version.", "Upgrade datacollab, then read it again."
    ),
    "WRONG_KIND": Code("verification", "A file is of another kind than the one wanted.", "Give the right file."),
    "SIGNATURE_MISSING": Code(
        "verification", "A file carries no signature where one is needed.", "Ask the sender for a signed file."
    ),
    "SIGNATURE_INVALID": Code(
        "verification",
        "A signature does not fit the contents or the key.",
        "Do not use the file; ask the sender by another way.",
    ),
    "SEAL_NOT_FOR_YOU": Code(
        "verification", "A file is sealed to other keys than this one.", "Ask the sender to seal it to your key."
    ),
    "SEAL_DAMAGED": Code("verification", "A sealed file was changed on its way.", "Have it sent again."),
    "PROJECT_OLDER": Code(
        "verification",
        "A project file is an older revision than the one that is there.",
        "Use the newer one; ask the owner by another way if in doubt.",
    ),
    "PROJECT_HASH_MISMATCH": Code(
        "verification",
        "A file belongs to another version of the project.",
        "Compare `datacollab project show` on both sides, and make the file again.",
    ),
    "WRONG_RECIPIENT": Code("verification", "A model was made for another party.", "Ask the analyst for your own."),
    "WRONG_SHARE": Code(
        "verification", "A model belongs to another share than the last one.", "Install the model made from it."
    ),
    "ANCHOR_MISMATCH": Code(
        "verification", "Parties used different anchors.", "Open the same anchor file everywhere, and share again."
    ),
    "LOG_BROKEN": Code(
        "verification", "Entries of the log were changed, or are missing.", "Keep the file; compare it with a copy."
    ),
    # policy
    "NOT_APPROVED": Code(
        "policy", "Nobody has approved that the share leaves.", "Look at it, and run the command with --approve."
    ),
    "TOO_FEW_ROWS": Code("policy", "There are fewer rows than agreed.", "Take more rows, or stay out."),
    "CLASS_TOO_SMALL": Code(
        "policy", "A class has fewer rows than the policy wants.", "Merge or leave out rare classes."
    ),
    "DIM_TOO_LARGE": Code("policy", "The representation has more columns than agreed.", "Take fewer components."),
    "OBFUSCATOR_NOT_ALLOWED": Code("policy", "The policy does not allow this obfuscator.", "Choose another."),
    "OBFUSCATOR_NOT_ROWWISE": Code(
        "policy",
        "The obfuscator maps a row differently in other company.",
        "Choose one that treats each row by itself; for UMAP the row-wise rule.",
    ),
    "UNDEFENDED": Code(
        "policy",
        "The party's rows themselves would leave, without any defence.",
        "Share with --preset groups; to share rows undefended, add --undefended.",
    ),
    "DEFENCE_NEEDED": Code("policy", "The policy wants a defence.", "Share with --preset groups."),
    "RISK_TOO_HIGH": Code(
        "policy",
        "The audit finds more risk than the policy allows.",
        "Share larger groups, more noise or fewer columns.",
    ),
    "RISK_UNKNOWN": Code(
        "policy",
        "The policy limits a risk that was not measured.",
        "Give the audit more rows (50 or more) or more time.",
    ),
    "ANCHOR_HAS_PRIVATE_ROWS": Code(
        "policy", "Rows of the party are in the anchor.", "Do not share; have a new anchor made from public rows."
    ),
    "DEADLINE_PASSED": Code("policy", "The project's deadline is over.", "Ask its owner for a new one."),
    "QUORUM_NOT_MET": Code("policy", "Too few parties have shared.", "Wait for the others."),
    "MODEL_LEAKS_ROWS": Code("policy", "A model contains rows that it was trained on.", "Train another kind of model."),
    # schema
    "SPEC_INVALID": Code("schema", "The project file says something impossible.", "Correct the named entry."),
    "REMOTE_INVALID": Code("schema", "A remote's address, or a link, cannot be used.", "Correct it."),
    "POLICY_INVALID": Code("schema", "The policy file says something impossible.", "Correct the named entry."),
    "TABLE_UNREADABLE": Code("schema", "A table cannot be read.", "Save it as CSV with commas, Parquet or Arrow."),
    "SCHEMA_MISSING_COLUMN": Code("schema", "A table lacks a column of the project.", "Add or rename the column."),
    "SCHEMA_DTYPE": Code("schema", "A column of numbers holds something else.", "Make them numbers."),
    "SCHEMA_RANGE": Code(
        "schema", "Numbers are outside the agreed range.", "Check the unit; correct or leave out the rows."
    ),
    "SCHEMA_CATEGORY_UNKNOWN": Code(
        "schema",
        "A column holds categories that were not agreed.",
        "Write agreed ones as agreed; let the owner add new ones to the project.",
    ),
    "SCHEMA_MISSING_ENTRY": Code(
        "schema", "Entries are missing where the project allows none.", "Fill them in, or leave out the rows."
    ),
    "ANCHOR_UNFIT": Code(
        "schema", "An anchor does not fit the project.", "Have it made again by the project's recipe."
    ),
    "TARGET_INVALID": Code(
        "schema", "Targets are missing, or none of those agreed.", "Correct them, or leave out the rows."
    ),
    # state
    "FOLDER_MISSING": Code(
        "state",
        "A folder is not there, or was not set up for this role.",
        "Check `-C` first. Then: `party join` at a party, `analyst init` at the analyst; `hub serve` makes a hub's.",
    ),
    "ALREADY_THERE": Code("state", "Something would be overwritten.", "Choose another place, or remove it first."),
    "ALREADY_SHARED": Code(
        "state",
        "The party has shared already; a second share of the same rows would tell more.",
        "Send the file in the outbox again, or run with --again and say so to the analyst.",
    ),
    "ANCHOR_MISSING": Code("state", "The anchor is not there yet.", "Run `datacollab party join` with it."),
    "NOT_SHARED": Code("state", "The party has not shared yet.", "Run `datacollab party share` first."),
    "NOT_INSTALLED": Code("state", "No model is installed.", "Run `datacollab party install` first."),
    "NOT_POOLED": Code(
        "state",
        "The party's own models were not pooled with the installed one.",
        "Predict with `--using collaboration`, or install a model that says what it makes of rows left out.",
    ),
    "NOT_INTEGRATED": Code("state", "The shares were not integrated yet.", "Run `datacollab analyst integrate` first."),
    "STATE_DAMAGED": Code("state", "A file of the state is damaged.", "Restore it from a backup."),
    "STATE_UNSUPPORTED": Code(
        "state", "This obfuscator cannot be stored.", "Choose another; for UMAP the row-wise rule."
    ),
    "FORGOTTEN": Code(
        "state",
        "The party has forgotten its map f_k, which sharing and the analyst's model need.",
        "Predict with what was distilled from anchor predictions; share from a new folder.",
    ),
    "NOT_FOUND": Code(
        "state",
        "A hub has no such project, file or upload, or not for this key.",
        "Compare the address; ask the project's owner whether the key is a member.",
    ),
    "BUSY": Code(
        "state", "Another command works in the folder, or another request ends the upload.", "Wait until it has ended."
    ),
    "PROJECT_MISSING": Code(
        "state", "A folder has no project yet.", "Run `datacollab remote pull`, or join with the project file."
    ),
    "NOT_SENT": Code("state", "A remote has no such file of this folder.", "Name one that it has."),
    "REMOTE_UNKNOWN": Code(
        "state", "A folder has no remote, or none of this name.", "Add one with `datacollab remote add`."
    ),
    # limits
    "TOO_LARGE": Code("limits", "A file is larger than allowed.", "Check its origin; raise the limit if it is right."),
    # model
    "SHARE_MALFORMED": Code("model", "The arrays of a share do not fit together.", "Have it made again."),
    "MODEL_MALFORMED": Code("model", "A model is inconsistent in itself.", "Do not use it; ask the analyst."),
    "ANSWERS_MALFORMED": Code("model", "Answers on the anchor are inconsistent.", "Do not use them; ask the analyst."),
    "ANSWERS_UNFIT": Code(
        "model",
        "No model can be distilled from these anchor predictions that would hold for the party's rows.",
        "Ask for a model instead, or for an anchor of rows like the party's.",
    ),
    "MODEL_UNSUPPORTED": Code("model", "A model of this kind cannot be sent.", "Train another kind of model."),
    "VERSION_MISMATCH": Code(
        "model",
        "A party's stored map was made with another version of scikit-learn.",
        "Install that version, or share again.",
    ),
    # remote
    "REMOTE_UNREACHABLE": Code(
        "remote", "A remote cannot be reached, or does not answer.", "Look at the network; then run the command again."
    ),
}


_ADDED: dict[str, Code] = {}


def add_codes(codes: Mapping[str, Code]) -> None:
    """Add the codes of a plugin.

    Raises
    ------
    ValueError
        When one of the names stands for something else already.
    """
    known = known_codes()
    taken = sorted(name for name, code in codes.items() if known.get(name, code) != code)
    if taken:
        raise ValueError(f"Codes of refusals that are taken: {', '.join(taken)}.")
    _ADDED.update(codes)


def known_codes() -> dict[str, Code]:
    """Return all codes by their names, those of plugins included."""
    return {**CODES, **_ADDED}
