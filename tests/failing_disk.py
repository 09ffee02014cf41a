"""A disk that fails, or a person who presses Ctrl-C, at a chosen change of the file system."""

import builtins
import functools
import itertools
import os
from contextlib import contextmanager

import pytest

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = ("replace", "rename", "link", "unlink", "mkdir", "fsync", "truncate")


class Disk:
    """Counts changes of the file system, and raises an error at one of them, before or after it is made."""

    def __init__(self, number, error, *, after):
        self.number, self.error, self.after, self.counted = number, error, after, 0

    def call(self, real, *arguments, **options):
        """Make one change."""
        self.counted += 1
        if self.counted != self.number:
            return real(*arguments, **options)
        if self.after:
            made = real(*arguments, **options)
            if isinstance(made, int):
                os.close(made)
            elif made is not None:
                made.close()
        raise self.error

    @contextmanager
    def in_use(self):
        """Send all changes of the file system through this disk."""
        real_open, open_file = os.open, builtins.open

        def opened(path, flags, *arguments, **options):
            if flags & _WRITING:
                return self.call(real_open, path, flags, *arguments, **options)
            return real_open(path, flags, *arguments, **options)

        def opened_file(file, mode="r", *arguments, **options):
            if set(mode) & set("wax+") and not isinstance(file, int):
                return self.call(open_file, file, mode, *arguments, **options)
            return open_file(file, mode, *arguments, **options)

        with pytest.MonkeyPatch.context() as patch:
            for name in _CHANGES:
                patch.setattr(os, name, functools.partial(self.call, getattr(os, name)))
            patch.setattr(os, "open", opened)
            patch.setattr(builtins, "open", opened_file)
            yield


def failures(act, error, *, after, every=1):
    """Run a command with a failure at its first change, its second, and so on; yield the number after each.

    The caller sets everything up anew in between.  The last run is the one that no failure reached.
    """
    for number in itertools.count(1, every):
        disk = Disk(number, error, after=after)
        with disk.in_use():
            try:
                act()
            except type(error) as raised:
                # A command may say the same of another file, or in other words.
                del raised
        yield number
        if disk.counted < number:
            return
