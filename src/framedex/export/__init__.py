"""Getting data out: as Arrow tables, and as ZIP files."""
