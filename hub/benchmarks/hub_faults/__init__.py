"""Faults of a hub's world: whatever is killed, cut, doubled or full, no share is lost, taken twice, or half there."""
