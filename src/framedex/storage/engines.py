"""The engines of tables and queries, which are loaded when they are first used."""


def import_engines() -> None:
    """Import them now: a program that waits for its first request has the time."""
    import duckdb  # noqa: F401
    import lance  # noqa: F401
