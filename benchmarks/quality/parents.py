"""Puts the folder of the benchmarks on the path of modules; imported first by each program of this folder."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent))
