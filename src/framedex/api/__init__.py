"""What users call: workspaces, datasets, views, reports."""
