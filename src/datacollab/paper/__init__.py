"""The paper again: its experiments, what it prints and concludes, and the reports that hold both side by side."""
