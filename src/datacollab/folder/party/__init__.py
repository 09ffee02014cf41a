"""A party's folder on its own disk: its files, changes that survive a kill, the party's own rules, and its sides."""

from ._folder import (
    ANCHOR,
    PATIENCE,
    SEALED,
    Files,
    Folder,
    check_logged,
    check_not_forgotten,
    check_unchanged,
    commit_distilled,
    commit_model,
    commit_share,
    commit_sum,
    destroy_map,
    digest_of,
    encode,
    erase_file,
    has_forgotten,
    last_share,
    load_anchor,
    load_mask_key,
    locked,
    make_mask_key,
    open_outbox,
    public_key_text,
    read_sum,
    record,
    send_again,
    settle,
)
from ._policy import (
    Policy,
    ask_approver,
    deadline_passed,
    default_policy_text,
    judge_anchor_density,
    judge_anchor_fit,
    judge_private_rows,
    load_policy,
    refuse,
)
from ._sides import NO_MODEL, AtHome, MappedModel, are_targets, check_not_older, list_times, malformed, times_within
from ._way import KEEP_FOLDER, PartyWay

__all__ = ["ANCHOR", "KEEP_FOLDER", "NO_MODEL", "PATIENCE", "SEALED", "AtHome", "Files", "Folder"]
__all__ += ["MappedModel", "PartyWay", "Policy", "are_targets", "ask_approver", "check_logged"]
__all__ += ["check_not_forgotten", "check_not_older", "check_unchanged", "commit_distilled", "commit_model"]
__all__ += ["commit_share", "commit_sum", "deadline_passed", "default_policy_text", "destroy_map", "digest_of"]
__all__ += ["encode", "erase_file", "has_forgotten", "judge_anchor_density", "judge_anchor_fit"]
__all__ += ["judge_private_rows", "last_share", "list_times", "load_anchor", "load_mask_key", "load_policy"]
__all__ += ["locked", "make_mask_key", "malformed", "open_outbox", "public_key_text", "read_sum", "record"]
__all__ += ["refuse", "send_again", "settle", "times_within"]
