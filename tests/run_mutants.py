"""Plant each fault of mutants.toml alone into a copy of the package, and say whether tests fail: run as a program."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main():
    """Run the tests of every fault; exit with 1 if a fault passes, or if tests fail without one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="WORDS", default="", help="faults whose name holds these words")
    only = parser.parse_args().only
    mutants = tomllib.loads((ROOT / "tests" / "mutants.toml").read_text(encoding="utf-8"))["mutant"]
    chosen = [mutant for mutant in mutants if only in mutant["name"]]
    sound = {"name": "no fault", "room": ".", "tests": sorted({target for each in chosen for target in each["tests"]})}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        without, *failed = pool.map(_fails, [sound, *chosen])
    if without:
        sys.exit("Tests fail without a fault, so that a failure says nothing. Mend them first.")
    alive = [mutant["name"] for mutant, found in zip(chosen, failed, strict=True) if not found]
    print(f"{len(chosen) - len(alive)} of {len(chosen)} faults make tests fail.")
    sys.exit("\n".join(["Faults that pass:", *alive]) if alive else 0)


def _fails(mutant):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        changes = [(mutant["old"], mutant["new"]), *mutant.get("also", [])] if "old" in mutant else []
        for old, new in changes:
            path = _only_file(source / "datacollab" / mutant["room"], old, mutant["name"])
            path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(source)}
        done = subprocess.run([*command, *mutant["tests"]], cwd=ROOT, env=environment, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{mutant['name']}: tests did not run.\n{done.stdout.decode()[-3000:]}{done.stderr.decode()[-3000:]}")
    print(f"{'pass  ' if done.returncode == 0 else 'fail  '} {mutant['room']}: {mutant['name']}", flush=True)
    return done.returncode == 1


def _only_file(room, text, name):
    found = [path for path in sorted(room.rglob("*.py")) if text in path.read_text(encoding="utf-8")]
    if len(found) != 1 or found[0].read_text(encoding="utf-8").count(text) != 1:
        sys.exit(f"{name}: the text to be changed stands in {len(found)} files of {room.name}; expected once in one.")
    return found[0]


if __name__ == "__main__":
    main()
