"""Tests of permissions."""
