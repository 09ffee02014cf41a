#!/bin/sh
# An exchange through one framework, in an environment of its own under output/: sh adapters/test.sh flower|nvflare
# Flower's tests need the source of the experiments as well, and none of their packages.
set -eu
name=$1
root=$(cd "$(dirname "$0")/.." && pwd)
environment=$root/output/adapters/$name
[ -d "$environment" ] || "${PYTHON:-python3}" -m venv "$environment"
"$environment/bin/python" -m pip install --quiet --editable "$root[exchange]" --editable "$root/adapters/$name[test]"
cd "$root/adapters/$name"
PYTHONPATH=$root/tests:$root/tests/remote:$root/adapters:$root/experiments/src exec "$environment/bin/python" -m pytest -c /dev/null --rootdir . --confcutdir "$root/adapters" -p no:cacheprovider tests ../tests
