"""The job that merges two datasets into a new one."""
