"""Whether audits are above the strongest attackers."""
