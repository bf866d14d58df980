"""The GPUs of this machine, as its drivers show them: no engine is loaded, and no GPU is used."""

import os
import re
import sys
from ctypes.util import find_library
from pathlib import Path

_DEVICES = Path("/dev")
_AMD = Path("/sys/class/kfd/kfd/topology/nodes")
_VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def may_have_gpu() -> bool:
    """Return whether an engine should look for a GPU: on Linux if there is the device file of a driver."""
    drivers = ("nvidiactl", "kfd", "dxg")  # NVIDIA, AMD, and Windows' device under WSL
    return sys.platform != "linux" or any((_DEVICES / each).exists() for each in drivers)


def gpu_count() -> int:
    """Return the number of GPUs that this process may use: those of NVIDIA, and on Linux those of AMD.

    ``CUDA_VISIBLE_DEVICES``, or what ROCm has in its place, restricts them.
    """
    if sys.platform == "linux":
        count = len(list(_DEVICES.glob("nvidia[0-9]*"))) or _amd_gpus() or int((_DEVICES / "dxg").exists())
    else:
        count = int(sys.platform == "win32" and find_library("nvcuda") is not None)
    chosen = next((os.environ[name] for name in _VISIBLE if name in os.environ), None)
    return count if chosen is None else min(count, _chosen(chosen))


def _amd_gpus() -> int:
    """Return the number of AMD's GPUs; nodes without vector units are processors."""
    count = 0
    for each in _AMD.glob("*/properties"):
        try:
            found = re.search(r"^simd_count (\d+)$", each.read_text(), re.MULTILINE)
        except OSError:
            continue
        count += int(found is not None and int(found[1]) > 0)
    return count


def _chosen(text: str) -> int:
    """Return the number of devices that a list names; it ends at the first one that does not exist, as -1."""
    names = [each.strip() for each in text.split(",")]
    return next((place for place, name in enumerate(names) if not name or name.startswith("-")), len(names))
