"""Clean-up plans, their pages, and the deletion of files."""
