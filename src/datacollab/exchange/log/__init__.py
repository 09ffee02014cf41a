"""The log of what was done in a folder, what witnesses it, and one command at a time."""

from ._chain import CHAIN_START, Chain
from ._lock import locked
from ._log import AuditLog
from ._witness import check_log_against, log_witnesses

__all__ = ["CHAIN_START", "AuditLog", "Chain", "check_log_against", "locked", "log_witnesses"]
