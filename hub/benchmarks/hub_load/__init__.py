"""A hub under load: a thousand parties that poll, and uploads at the same hub.  `python -m hub_load` runs it."""
