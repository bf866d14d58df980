"""Full-text search over the texts of rows."""
