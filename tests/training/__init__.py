"""Tests of datasets of other libraries."""
