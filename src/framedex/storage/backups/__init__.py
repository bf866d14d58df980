"""The folders of backups: their format, backups in progress, copies of files and of the catalog."""
