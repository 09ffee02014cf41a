"""What attackers learn: figures that documents cite, and whether audits are above the strongest attackers."""
