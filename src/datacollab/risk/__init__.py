"""Attacks on what a party sends, and the audit that makes them before anything is sent."""
