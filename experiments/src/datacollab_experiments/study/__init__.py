"""How often a study's intervals and tests hold, and how much its totals tell."""
