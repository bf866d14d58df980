"""The index engine: functions from arrays to arrays, without tables, files or datasets."""
