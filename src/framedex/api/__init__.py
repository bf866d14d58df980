"""The public classes: workspaces, datasets, views, reports."""
