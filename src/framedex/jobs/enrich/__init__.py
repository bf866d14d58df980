"""Enrichment: a copy of a dataset with columns that models made."""
