"""Experiments with `datacollab`: research, which is not shipped with it."""
