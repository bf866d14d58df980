"""The database of the service: users, tenants, grants, sessions, keys and settings, apart from the catalog."""
