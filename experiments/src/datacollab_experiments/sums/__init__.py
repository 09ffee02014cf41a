"""Which D and which noise for sums under masks: what the total brings, and what it tells of targets."""
