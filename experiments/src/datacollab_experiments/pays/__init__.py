"""Does collaborating pay, against what a party has without it?  See experiments/docs/pays.md."""
