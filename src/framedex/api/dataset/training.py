"""A dataset as datasets of other libraries, for training."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from framedex.api.view import View
from framedex.operations.context import Context

if TYPE_CHECKING:
    from framedex.training.torch_dataset import TorchImages


class DatasetTraining:
    """Datasets of PyTorch and of Hugging Face, made of all media."""

    _context: Context
    id: str

    def to_torch(self, transform: Callable[[Any], Any] | None = None, target: str | None = "label") -> "TorchImages":
        """Return all images as a :class:`torch.utils.data.Dataset`; see :meth:`View.to_torch`.

        Examples:
            >>> images = ds.to_torch(target="labels")
            >>> len(images), images.classes
            (32, ['bird', 'cat', 'dog'])
        """
        return View(self._context, self.id).to_torch(transform, target)

    def to_huggingface(self) -> Any:
        """Return all images as a :class:`datasets.Dataset` of Hugging Face; see :meth:`View.to_huggingface`.

        Examples:
            >>> ds.to_huggingface().features["label"]
            ClassLabel(names=['bird', 'cat', 'dog'])
        """
        return View(self._context, self.id).to_huggingface()
