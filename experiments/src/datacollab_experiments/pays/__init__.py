"""Does collaborating pay, against what a party has without it?  Run as ``python -m pays``; see README.md."""
