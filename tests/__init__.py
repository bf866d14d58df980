"""Tests of the package."""

import os

# Threads of linear algebra wait for each other busily, for an eighth of all processor time: with other work on the
# cores, several are many times slower than one. Their number is read when NumPy or PyTorch is imported.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
