"""Files between organisations: what is agreed on, the folders of both sides, and the log of what was done."""
