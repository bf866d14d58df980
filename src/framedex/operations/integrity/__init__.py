"""Verification of a workspace: its catalog, tables, uploaded files and caches; and repairs of what can be repaired."""
