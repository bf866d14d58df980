"""Ingestion: from files or tables with embeddings to rows of the media table."""
