"""The hub: a mailbox for signed files of many projects.  It computes nothing, and opens nothing."""
