"""The index engine: arrays in, arrays out. It knows no tables, files or datasets."""
