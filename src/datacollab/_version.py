"""The version of this library, which files that are written name."""

__version__ = "0.1.0"
