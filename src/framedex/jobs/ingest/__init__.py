"""Ingestion: from a source to rows of the media table."""
