"""The steps of both sides in their folders, by rows or by sums as the project says."""
