"""The images of a view as a dataset of PyTorch."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from framedex.core.arrays import Pixels
from framedex.training.stored_images import Images
from framedex.training.targets import ClassTargets, Targets
from framedex.training.texts import Texts


class TorchImages(Dataset[Any]):
    """Images with their targets, by position, for :class:`torch.utils.data.DataLoader` with any start method.

    It keeps the state in which it was made, whatever happens to the dataset. It holds arrays of paths and targets
    alone: it pickles fast, and a worker opens the image files and nothing else.

    Args:
        images: the images.
        targets: their targets; None for images alone.
        classes: the names of all classes of the dataset, by number.
        media_ids: the media id of each image.
        transform: called with each image as a Pillow image; None for tensors, uint8 of shape (3, H, W).
        n_left_out: the number of rows that are no image.

    Attributes:
        classes: the names of all classes of the dataset, by number.
        class_to_idx: the numbers of the classes by name.
        n_left_out: the number of rows of the view that are left out, as they could not be decoded when they were read.
        transform: called with each image.
    """

    def __init__(
        self,
        images: Images,
        targets: Targets | None,
        *,
        classes: Sequence[str],
        media_ids: Sequence[str],
        transform: Callable[[Any], Any] | None,
        n_left_out: int,
    ) -> None:
        self._images, self._targets, self._ids = images, targets, Texts(media_ids)
        self.classes, self.transform, self.n_left_out = list(classes), transform, n_left_out
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._images)

    def __getitem__(self, index: int) -> Any:
        """Return (image, target) at a position, or the image alone if the dataset has no targets.

        Raises:
            IndexError: there is no such position.
            NotFound: the file is gone.
            CannotDecode: the file is not an image, or the video no longer has the frame.
        """
        at = index + len(self) if index < 0 else index
        if not 0 <= at < len(self):
            raise IndexError(f"no image {index} in a dataset of {len(self):,}")
        image = _transformed(self._images.read(at), self.transform)
        return image if self._targets is None else (image, _as_tensors(self._targets[at]))

    def __iter__(self) -> Any:
        """Yield each image as indexing returns it."""
        return (self[index] for index in range(len(self)))

    @property
    def media_ids(self) -> list[str]:
        """The media ids of the images, in order."""
        return [self._ids[index] for index in range(len(self._ids))]

    def media_id(self, index: int) -> str:
        """Return the media id of the image at a position."""
        return self._ids[index]

    @property
    def targets(self) -> list[Any]:
        """The targets of all images, in order, as :class:`torchvision.datasets.ImageFolder` has them; None for none."""
        if isinstance(self._targets, ClassTargets):
            return list(self._targets.numbers.tolist())
        return [None if self._targets is None else self._targets[index] for index in range(len(self))]


def _transformed(pixels: Pixels, transform: Callable[[Any], Any] | None) -> Any:
    if transform is None:
        return torch.from_numpy(pixels).permute(2, 0, 1)
    from PIL import Image

    return transform(Image.fromarray(pixels))


def _as_tensors(target: Any) -> Any:
    if isinstance(target, np.ndarray):
        return torch.from_numpy(target)
    if isinstance(target, dict):
        return {name: _as_tensors(value) for name, value in target.items()}
    return target
