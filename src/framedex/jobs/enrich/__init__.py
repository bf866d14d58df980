"""Enrichment: a copy of a dataset with columns computed by models."""
