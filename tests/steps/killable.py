"""Runs commands in a party's folder, each in a child process that may be killed, or kills itself at a chosen point.

Started once, so that the libraries are loaded once.  Reads lines of JSON with a command and the number of the step
before which it dies, counting what reaches the disk, or the time after which it is killed.  Writes how it ended.
"""

import json
import os
import signal
import sys
import time

import datacollab.by_rows.party  # noqa: F401 - with all that either way takes, so that no child loads it anew
from datacollab.steps.party import PartyFolder


def die_before(step):
    """Have the process kill itself before the call of this number that makes something lasting."""
    counted = 0

    def wrapped(real):
        def call(*arguments, **options):
            nonlocal counted
            counted += 1
            if counted == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    for name in ("fsync", "replace", "open", "unlink", "rename"):
        setattr(os, name, wrapped(getattr(os, name)))


def run(command):
    folder = PartyFolder(command["folder"])
    if command["step"]:
        die_before(command["step"])
    if command["verb"] == "share" and folder.project.sharing is not None:
        others = [key.fingerprint for name, key in folder.project.parties.items() if name != folder.name]
        folder.share(command["file"], approve=lambda summary: "me", heard=others[:2])
    elif command["verb"] == "share":
        folder.share(
            command["file"],
            approve=lambda summary: "me",
            audit=False,
            preset="none",
            undefended=True,
            n_components=3,
            again=True,
        )
    elif command["verb"] == "answer":
        request = folder.path / "inbox" / "round.dcround"
        folder.share(command["file"], approve=lambda summary: None, round_file=request)
    elif command["verb"] in ("forget", "withdraw"):
        getattr(folder, command["verb"])()
    else:
        getattr(folder, command["verb"])(command["file"])


def killed_in_time(child, command):
    """Kill a child at the moment asked for; as it was not waited for, its number is still its own."""
    last = time.monotonic() + 5
    while command["once_there"] and not os.path.exists(command["once_there"]) and time.monotonic() < last:
        pass
    time.sleep(command["kill_after"])
    os.kill(child, signal.SIGKILL)


def told(ending):
    sys.stdout.write(f"{ending}\n")
    sys.stdout.flush()


def main():
    for line in sys.stdin:
        command = json.loads(line)
        if command["verb"] == "warm":
            # What is imported here need not be in every child.
            run(command | {"verb": "share"})
            told(0)
            continue
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(command)
                status = 0
            finally:
                os._exit(status)
        if command["kill_after"] is not None:
            killed_in_time(child, command)
        _, status = os.waitpid(child, 0)
        told(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
