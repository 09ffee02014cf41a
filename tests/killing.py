"""A program that kills a command at random points, again and again.

It is run with a module that has ``act(folder)``, which a child process does, and ``check(folder)``, which the parent
does after each kill.  Children are forked from a process that has imported everything, and has one thread.
"""

import importlib.util
import os
import random
import signal
import sys
import time
from pathlib import Path


def main(module_file, folder, n_kills, seed):
    spec = importlib.util.spec_from_file_location("acting", module_file)
    acting = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(acting)
    acting.act(folder)  # imports everything
    start = time.perf_counter()
    _forked(acting, folder, wait=None)
    longest = time.perf_counter() - start
    acting.check(folder)
    chance, n_killed = random.Random(seed), 0
    for _ in range(n_kills):
        wait = chance.uniform(0, longest)
        if _forked(acting, folder, wait=wait):
            n_killed += 1
        else:
            longest = (longest + wait) / 2  # the machine was busier when it was timed
        acting.check(folder)
    acting.act(folder)
    acting.check(folder)
    sys.stdout.write(f"{n_killed}\n")


def _forked(acting, folder, wait):
    """Do it in a child; kill it after a while, unless it is done.  Returns whether it was killed."""
    child = os.fork()
    if child == 0:
        try:
            acting.act(folder)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    if wait is not None:
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, "the command failed by itself"
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
