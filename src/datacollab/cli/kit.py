"""Parts of plugins' commands: groups, options that are spelt alike everywhere, and output.

Light: it is imported before any command runs.
"""

from ._command import (
    HERE,
    AsJson,
    Certificates,
    InFolder,
    Named,
    OutputArgument,
    PassphraseFile,
    choose_path,
    group,
    group_of,
    keys_of,
    opened,
    working,
)
from ._output import FAILED, Report, one_line_errors, reported, warn
from ._progress import shown_progress

__all__ = ["FAILED", "HERE", "AsJson", "Certificates", "InFolder", "Named", "OutputArgument", "PassphraseFile"]
__all__ += ["Report", "choose_path", "group", "group_of", "keys_of", "one_line_errors", "opened", "reported"]
__all__ += ["shown_progress", "warn", "working"]
