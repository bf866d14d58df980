"""Tests of the hub: users, tenants, sessions, keys and sharing."""
