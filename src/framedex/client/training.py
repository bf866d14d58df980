"""Datasets of PyTorch and Hugging Face of a view of a service: rows at once, images one by one."""

import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from framedex.client import calls
from framedex.client.connection import Connection
from framedex.core.arrays import Pixels
from framedex.core.forks import abandon
from framedex.errors import CannotDecode
from framedex.media.decode import decode_pixels
from framedex.settings import load_settings
from framedex.training.huggingface import check_huggingface, huggingface_dataset
from framedex.training.rows import torch_images
from framedex.training.texts import Texts

if TYPE_CHECKING:
    from framedex.training.torch_dataset import TorchImages


class ClientTraining(ABC):
    """Methods for training with the media of a service."""

    _connection: Connection
    _dataset_id: str

    @property
    @abstractmethod
    def rid(self) -> str:
        """The id of the results of the view in the service, in the current state."""

    def to_torch(self, transform: Callable[[Any], Any] | None = None, target: str | None = "label") -> "TorchImages":
        """Return the images of the view as a :class:`torch.utils.data.Dataset`; see :meth:`framedex.View.to_torch`.

        An image is fetched whenever it is asked for; each worker has a connection of its own. Frames of videos and
        crops of objects come as JPEGs. What is fetched of the dataset are paths and targets, not images.

        Args:
            transform: as there.
            target: as there.

        Raises:
            InvalidInput: as there.
            MissingDependency: the extra ``torch`` is not installed.
        """
        make = torch_images(transform)
        rows = self._connection.table(
            calls.TRAINING, query={"target": target}, dataset_id=self._dataset_id, rid=self.rid
        )
        return make(ServedImages(self._connection, self._dataset_id, rows["media_id"].to_pylist()), rows, target)

    def to_huggingface(self) -> Any:
        """Return the images of the view as a :class:`datasets.Dataset`; see :meth:`framedex.View.to_huggingface`.

        All images are fetched and are in the dataset. Frames of videos and crops of objects are JPEGs.

        Raises:
            MissingDependency: the extra ``datasets`` is not installed.
        """
        check_huggingface()
        query = {"described": True}
        rows = self._connection.table(calls.TRAINING, query=query, dataset_id=self._dataset_id, rid=self.rid)
        images = ServedImages(self._connection, self._dataset_id, rows["media_id"].to_pylist())
        return huggingface_dataset(images, rows)


class ServedImages:
    """Images of a service, in order. Each is fetched when it is asked for, by any process or thread.

    Args:
        connection: to the service; another process opens one of its own.
        dataset_id: the dataset.
        media_ids: the ids of the images.
    """

    def __init__(self, connection: Connection, dataset_id: str, media_ids: Sequence[str]) -> None:
        self._connection, self._dataset_id, self._ids = connection, dataset_id, Texts(media_ids)
        self._max_pixels, self._pid = load_settings().max_pixels, os.getpid()

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self._ids)

    def __getstate__(self) -> Mapping[str, Any]:
        """Return the arrays, and what the connection is made of."""
        return {**self.__dict__, "_pid": None}

    def read(self, index: int) -> Pixels:
        """Return an image, a frame, or the crop of an object: uint8, shape (H, W, 3), RGB, upright.

        Raises:
            NotFound: it is gone, or the user may no longer view it.
            CannotDecode: it is no image.
            Unavailable: the service cannot be reached.
        """
        try:
            return decode_pixels(self.data(index), max_pixels=self._max_pixels)
        except CannotDecode as error:
            raise CannotDecode(f"image {self._ids[index]} cannot be read: {error}", error.fault) from error

    def data(self, index: int) -> bytes:
        """Return the content of an image; errors as of :meth:`read`."""
        if self._pid != os.getpid():  # connections of another process are not shared with this one
            abandon(self._connection)
            self._connection, self._pid = self._connection.anew(), os.getpid()
            weakref.finalize(self, self._connection.close)
        answer = self._connection.send(
            calls.MEDIA_FILE, query={"format": "original"}, dataset_id=self._dataset_id, media_id=self._ids[index]
        )
        return bytes(answer.content)

    def is_whole_file(self, index: int) -> bool:
        """Return whether the content is the image."""
        return True

    def local_path(self, index: int) -> str | None:
        """Return None: no image is a file of this machine."""
        return None
