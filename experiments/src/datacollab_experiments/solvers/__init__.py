"""Costs of KTI's fits: beside their estimates, and on a graphics processor."""
