"""Readings of the paper's protocol: definitions, and the paper as printed beside our numbers."""
