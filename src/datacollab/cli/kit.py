"""What commands of plugins are made of: groups, options that are spelt alike everywhere, and what is printed.

Light: it is imported before any command runs.
"""

from ._command import HERE, AsJson, OutputArgument, PassphraseFile, group, group_of, named_once
from ._output import FAILED, Report, one_line_errors, reported, warn
from ._progress import shown_progress
from ._remote import Certificates, InFolder, Named, keys_of, opened, working
from ._stage import Stage, Step

__all__ = [
    "FAILED",
    "HERE",
    "AsJson",
    "Certificates",
    "InFolder",
    "Named",
    "OutputArgument",
    "PassphraseFile",
    "Report",
    "Stage",
    "Step",
    "group",
    "group_of",
    "keys_of",
    "named_once",
    "one_line_errors",
    "opened",
    "reported",
    "shown_progress",
    "warn",
    "working",
]
