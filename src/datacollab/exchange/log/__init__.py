"""The log of what was done in a folder, what witnesses it, and one command at a time."""

from ._lock import locked
from ._log import AuditLog
from ._witness import check_log_against, log_witnesses

__all__ = ["AuditLog", "check_log_against", "locked", "log_witnesses"]
