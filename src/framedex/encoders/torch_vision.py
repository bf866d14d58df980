"""The import of torchvision, of which engines that import it need only transforms."""

import sys
from types import ModuleType


def import_torchvision() -> None:
    """Import torchvision, so that those who import it later find it.

    Its wheels are compiled for CUDA. Beside a PyTorch for CPUs their operators are missing, and the module that
    describes these to compilers cannot be imported (torchvision 0.28, PyTorch 2.13); an empty one does.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        described = "torchvision._meta_registrations"
        sys.modules[described] = ModuleType(described)
        import torchvision  # noqa: F401 - the engines find it then
