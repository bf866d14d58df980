"""Semantic search over captions: vectors of texts, cached by content."""
