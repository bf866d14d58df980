"""Devices of PyTorch models, with their precision and batch size."""

from dataclasses import dataclass
from typing import Any

from framedex.errors import InvalidInput

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("auto", "float32", "float16", "bfloat16")

_BATCHES = {"cpu": 32, "mps": 64, "cuda": 256}


@dataclass(frozen=True)
class Device:
    """A device with the precision and batch size of models on it.

    Attributes:
        name: the device's name in PyTorch: ``cpu``, ``cuda``, ``cuda:1``, ``mps``.
        precision: ``float32``, or ``float16`` or ``bfloat16`` for operations that allow half precision.
        batch: the number of images in a batch; it bounds memory.
    """

    name: str
    precision: str
    batch: int

    @property
    def kind(self) -> str:
        """The device's name without a number."""
        return self.name.partition(":")[0]

    def autocast(self) -> Any:
        """Return a context in which PyTorch uses half precision where possible; without effect for float32."""
        import torch

        half = self.precision != "float32"
        return torch.autocast(self.kind, dtype=getattr(torch, self.precision) if half else None, enabled=half)


def choose_device(device: str = "auto", precision: str = "auto") -> Device:
    """Return the device and precision for a model.

    Args:
        device: ``auto`` for a GPU if one is available, or ``cpu``, ``cuda``, ``cuda:<number>``, ``mps``.
        precision: ``auto`` for ``float16`` on CUDA, where it is several times as fast, and ``float32`` elsewhere.

    Raises:
        InvalidInput: the device or precision does not exist, or is not available on this machine.
    """
    import torch

    kind = device.partition(":")[0]
    if kind not in DEVICES or (":" in device and not device.removeprefix("cuda:").isdigit()):
        raise InvalidInput(f"{device!r} is no device; there are: {', '.join(DEVICES)}, and cuda:<number>")
    if precision not in PRECISIONS:
        raise InvalidInput(f"{precision!r} is no precision; there are: {', '.join(PRECISIONS)}")
    number = int(device.removeprefix("cuda:")) if ":" in device else 0
    cuda, mps = torch.cuda.is_available() and number < torch.cuda.device_count(), torch.backends.mps.is_available()
    if device == "auto":
        device = kind = "cuda" if cuda else "mps" if mps else "cpu"
    if (kind == "cuda" and not cuda) or (kind == "mps" and not mps):
        raise InvalidInput(f"PyTorch {torch.__version__} finds no device {device!r} here; 'cpu' is always there")
    if precision == "auto":
        precision = "float16" if kind == "cuda" else "float32"
    return Device(device, precision, _BATCHES[kind])
