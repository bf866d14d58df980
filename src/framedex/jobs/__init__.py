"""The long operations, as plain functions."""
