"""Edits: tags, labels, captions, custom fields, and decisions about duplicates, as new versions of the tables."""
