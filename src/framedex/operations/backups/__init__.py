"""Backups of a workspace in use, and restores that prove them."""
