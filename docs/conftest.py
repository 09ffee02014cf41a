"""What of this folder is no document: the site's own code, and what building it writes here."""

collect_ignore = ["conf.py", "_ext", "api", "commands", "gallery"]
