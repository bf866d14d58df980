"""Edits of rows: tags, labels, captions, custom fields, duplicate decisions."""
