"""What all tests, doctests and documents of this repository share."""

pytest_plugins = ["suite"]
