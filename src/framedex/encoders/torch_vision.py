"""Import of torchvision for engines that need only its transforms."""

import sys
from types import ModuleType


def import_torchvision() -> None:
    """Import torchvision, so that later imports succeed.

    Its wheels are compiled for CUDA. With a PyTorch for CPUs, their operators are missing, and the module that
    describes these operators to compilers cannot be imported (torchvision 0.28, PyTorch 2.13). An empty module replaces
    it.

    Raises:
        ImportError: torchvision is not installed.
    """
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        described = "torchvision._meta_registrations"
        sys.modules[described] = ModuleType(described)
        import torchvision  # noqa: F401 - for the engines' own imports
