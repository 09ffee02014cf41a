"""Folders on the disk of either side: their log and steps, an institution's ledger, and the files of a party."""
