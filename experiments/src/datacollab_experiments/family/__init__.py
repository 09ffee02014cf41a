"""Other methods of the data collaboration family: one experiment of each one's paper on public data."""
