"""A module that cannot be imported."""

raise RuntimeError("no licence found\nand a second line")
