"""Sharing rows by files: the half of each side, which never import one another."""
