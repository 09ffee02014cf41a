"""What an institution's rows went into: the ledger that outlasts folders, revisions and projects."""

from ._ledger import Ledger, LedgerEntry

__all__ = ["Ledger", "LedgerEntry"]
