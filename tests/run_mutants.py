"""Plant each fault of mutants.toml alone into a copy of the package, and say whether tests fail: run as a program."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/datacollab")


def main():
    """Run the tests of every fault; exit with 1 if a fault passes, or if tests fail without one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="WORDS", default="", help="faults whose name holds these words")
    only = parser.parse_args().only
    mutants = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    chosen = [mutant for mutant in mutants if only in mutant["name"]]
    sound = {target for mutant in chosen for target in mutant["tests"]}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        if not _passes(sorted(sound), source):
            sys.exit("Tests fail without a fault, so that a failure says nothing. Mend them first.")
        alive = [mutant["name"] for number, mutant in enumerate(chosen, 1) if not _fails(mutant, number, source)]
    print(f"{len(chosen) - len(alive)} of {len(chosen)} faults make tests fail.")
    sys.exit("\n".join(["Faults that pass:", *alive]) if alive else 0)


def _fails(mutant, number, source):
    room = source / "datacollab" / mutant["room"]
    kept = {}
    try:
        for old, new in [(mutant["old"], mutant["new"]), *mutant.get("also", [])]:
            path = _only_file(room, old, mutant["name"])
            text = path.read_text(encoding="utf-8")
            kept.setdefault(path, text)
            path.write_text(text.replace(old, new), encoding="utf-8")
        failed = not _passes(mutant["tests"], source)
    finally:
        for path, text in kept.items():
            path.write_text(text, encoding="utf-8")
    print(f"{number:3} {'fails ' if failed else 'PASSES'} {mutant['room']}: {mutant['name']}", flush=True)
    return failed


def _only_file(room, text, name):
    found = [path for path in sorted(room.rglob("*.py")) if text in path.read_text(encoding="utf-8")]
    if len(found) != 1 or found[0].read_text(encoding="utf-8").count(text) != 1:
        sys.exit(f"{name}: the text to be changed stands in {len(found)} files of {room.name}; expected once in one.")
    return found[0]


def _passes(targets, source):
    # Bytecode of a file that was changed twice within a second could be taken for the earlier one's.
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-x", "-q", "-m", "not slow", "-n", "2", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *targets]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"Tests did not run: {' '.join(targets)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.returncode == 0


if __name__ == "__main__":
    main()
