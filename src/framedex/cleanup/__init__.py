"""Plans of what to remove from a dataset, their pages, and the deletion of files."""
