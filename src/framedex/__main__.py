"""``python -m framedex`` is the command line."""

from framedex.cli import main

main()
