"""What a collaboration brings besides classification and regression, beside what should hold.

Survival, effects, anchor predictions, clusters, groups of parties, and sums with differential privacy.
"""
