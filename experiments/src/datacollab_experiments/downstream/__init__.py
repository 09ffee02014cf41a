"""Gains of a collaboration besides classification and regression: survival, effects and clusters."""
