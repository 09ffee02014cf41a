#!/usr/bin/env bash
# The RDP accountant of dp-accounting 0.6.0 takes the relation REPLACE_ONE, and answers for ADD_OR_REMOVE_ONE: for the
# Gaussian mechanism its epsilon is the same whichever of the two it was told.  GaussianDpEvent(s) adds noise of
# deviation s to a sum of values of length 1 at most; replacing one value moves that by 2, adding or removing one by 1.
# The PLD accountant of the same package tells both apart.
#
# Seen, with noise of 2 and a delta of 1e-5: RDP 2.1657 for both relations; PLD 1.9931 for adding or removing, and
# 4.3772 for replacing, as the closed formula gives.  So the RDP figure, meant as an upper bound, is about half of the truth:
# at that epsilon the smallest delta for replacing is .0144, and not 1e-5.
#
# This ends 0 as long as that is so, and 1 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet dp-accounting==0.6.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import importlib.metadata
import math
import sys

from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
from dp_accounting.privacy_accountant import NeighboringRelation
from dp_accounting.rdp import rdp_privacy_accountant
from scipy.special import ndtr

noise, delta = 2.0, 1e-5
relations = NeighboringRelation.ADD_OR_REMOVE_ONE, NeighboringRelation.REPLACE_ONE


def epsilon_by(accountant, relation):
    accountant = accountant(neighboring_relation=relation)
    accountant.compose(dp_event.GaussianDpEvent(noise))
    return float(accountant.get_epsilon(delta))


def delta_at(epsilon, moved):
    """The smallest delta of noise if one value moves the sum so far (Balle and Wang 2018, theorem 8)."""
    half, shift = moved / noise / 2, epsilon * noise / moved
    return float(ndtr(half - shift) - math.exp(epsilon) * ndtr(-half - shift))


rdp = [epsilon_by(rdp_privacy_accountant.RdpAccountant, relation) for relation in relations]
pld = [epsilon_by(pld_privacy_accountant.PLDAccountant, relation) for relation in relations]
print(f"dp-accounting {importlib.metadata.version('dp-accounting')}, Python {sys.version.split()[0]}")
for number, (relation, moved) in enumerate(zip(relations, (1, 2))):
    exact = delta_at(rdp[number], moved)
    print(f"{relation.name}: RDP {rdp[number]:.4f}, PLD {pld[number]:.4f}; delta at the first is {exact:.3g}")
unchanged = rdp[0] == rdp[1] < pld[1] - 2 and delta_at(rdp[1], 2) > 1000 * delta
sys.exit(0 if unchanged else 1)
PYTHON
