"""What commands of plugins are made of: groups, options that are spelt alike everywhere, and what is printed.

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
    group,
    group_of,
    keys_of,
    named_once,
    opened,
    working,
)
from ._output import FAILED, Report, one_line_errors, reported, warn
from ._progress import shown_progress

__all__ = ["FAILED", "HERE", "AsJson", "Certificates", "InFolder", "Named", "OutputArgument", "PassphraseFile"]
__all__ += ["Report", "group", "group_of", "keys_of", "named_once", "one_line_errors", "opened", "reported"]
__all__ += ["shown_progress", "warn", "working"]
