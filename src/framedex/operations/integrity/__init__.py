"""Verification of a workspace: its catalog, tables, uploaded files and caches; and repairs where possible."""
