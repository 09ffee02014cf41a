"""Sharing sums by files: the plan of a run, and the half of each side, which never import one another."""
