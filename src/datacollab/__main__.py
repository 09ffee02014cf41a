"""``python -m datacollab``: the same as the program ``datacollab``."""

from .cli import main

main()
