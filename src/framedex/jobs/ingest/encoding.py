"""Embeddings of decoded images in batches: by the encoder of this process, or on the GPUs of a cluster."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbours import check_vectors
from framedex.core.arrays import Vectors
from framedex.core.counts import counted
from framedex.encoders import Encoder, choose_encoder, is_loaded_by_name
from framedex.errors import InvalidEmbedding, Unavailable
from framedex.executors import POLL_S, Executor, ResultLost
from framedex.jobs.ingest.decoding import DecodedFile, DecodedVideo, stack_inputs
from framedex.settings import Settings
from framedex.storage.fragments import Fragment


class EncoderBatch(NamedTuple):
    """A batch of images and frames, and what comes after them.

    Attributes:
        files: the images and frames.
        video: the video that ends with them.
        fragment: rows that a worker has written.
    """

    files: list[DecodedFile]
    video: DecodedVideo | None = None
    fragment: Fragment | None = None


_AHEAD = 2  # batches a GPU


@dataclass(frozen=True)
class RemoteEncoder:
    """An encoder in another process, which its name loads there.

    Attributes:
        name: the encoder's name.
        settings: have the folder of models.
    """

    name: str
    settings: Settings

    def __call__(self, prepared: npt.NDArray[Any]) -> Vectors:
        """Return the vectors of prepared images: float32, shape (N, D)."""
        return self._encoder.encode_images(prepared)

    @cached_property
    def _encoder(self) -> Encoder:
        return choose_encoder(self.name, self.settings)[0]


def encoded(
    groups: Iterable[EncoderBatch],
    encoder: Encoder,
    settings: Settings,
    executor: Executor | None,
    meanwhile: Callable[[], None],
) -> Generator[tuple[EncoderBatch, list[Vectors | None]], None, None]:
    """Yield groups with the vectors of their files, in order; None for a file without one.

    A few batches are on the way to GPUs at the same time, if there are any.

    Args:
        groups: the files.
        encoder: computes the vectors.
        settings: have the folder of models.
        executor: its GPUs encode, if its name loads the encoder; None for this process.
        meanwhile: called at least twice a second while a batch takes long; raises to stop.

    Raises:
        InvalidEmbedding: the output of the encoder is invalid.
        Unavailable: a worker with a GPU was lost again and again.
    """
    if executor is None or executor.capacity.gpus < 1 or not is_loaded_by_name(encoder.name):
        for group in groups:
            inputs = stack_inputs(group.files)
            yield group, file_vectors(group.files, encoder, None if inputs is None else encoder.encode_images(inputs))
        return
    remote, ahead = RemoteEncoder(encoder.name, settings), _AHEAD * int(executor.capacity.gpus)
    waiting = deque[tuple[EncoderBatch, Future[Vectors] | None]]()

    def first() -> tuple[EncoderBatch, list[Vectors | None]]:
        group, future = waiting.popleft()
        return group, file_vectors(group.files, encoder, None if future is None else _result(future, meanwhile))

    try:
        for group in groups:
            inputs = stack_inputs(group.files)
            waiting.append((group, None if inputs is None else executor.submit(remote, inputs, gpus=1)))
            while len(waiting) > ahead:
                yield first()
        while waiting:
            yield first()
    finally:
        for _, future in waiting:
            if future is not None:
                future.cancel()


def _result(future: "Future[Vectors]", meanwhile: Callable[[], None]) -> Vectors:
    while not wait([future], timeout=POLL_S).done:
        meanwhile()
    try:
        return future.result()
    except ResultLost as lost:
        raise Unavailable(f"images cannot be encoded on the GPUs of the cluster: {lost}") from lost


def file_vectors(
    files: Sequence[DecodedFile], encoder: Encoder, vectors: Vectors | None = None
) -> list[Vectors | None]:
    """Return the embeddings of files; None for a file without one.

    Args:
        files: the files; the embeddings of the built-in encoder were computed with their measures.
        encoder: the encoder.
        vectors: what another encoder returned for those that have an input: float32, shape (N, D).

    Raises:
        InvalidEmbedding: an embedding is invalid.
    """
    described = [each.vector for each in files if each.vector is not None]
    if described:
        check_encoding(encoder, np.stack(described), len(described))
    if vectors is None:
        return [each.vector for each in files]
    checked = iter(check_encoding(encoder, vectors, sum(each.prepared is not None for each in files)))
    return [None if each.prepared is None else next(checked) for each in files]


def check_encoding(encoder: Encoder, vectors: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.float32]:
    """Return the output of an encoder, if its shape and values are valid.

    Raises:
        InvalidEmbedding: they are not.
    """
    if np.shape(vectors) != (count, encoder.dimension):
        raise InvalidEmbedding(
            f"encoder {encoder.name!r} returned shape {np.shape(vectors)} for {counted(count, 'images')}; "
            f"it promises {(count, encoder.dimension)}"
        )
    check_vectors(vectors)
    return vectors
