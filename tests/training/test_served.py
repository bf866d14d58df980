"""The same datasets of PyTorch and Hugging Face through a service: rows at once, images one by one."""

import os
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from framedex import Client, Dataset, InvalidInput, NotFound, vql
from framedex.api.workspace import workspace_of
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.extras import need
from tests.processes import run
from tests.service.live import live_service

need("torch", "torch")
pytestmark = pytest.mark.slow  # a service and its requests take a second


@pytest.fixture(scope="module")
def url(every_kind: Dataset) -> Iterator[str]:
    """The address of a service with the dataset."""
    workspace = workspace_of(every_kind)
    with Hub(workspace) as hub, live_service(workspace, hub, ServiceSettings()) as (address, _):
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[Client]:
    """A client of the service."""
    with Client(url) as opened:
        yield opened


@pytest.mark.only_soak
@pytest.mark.parametrize("target", ["labels", "boxes", "caption", "width", None])
def test_to_torch__is_that_of_the_library(every_kind: Dataset, client: Client, target: str | None) -> None:
    """Targets, classes and ids are equal, and so are the pixels of whole files; frames come as JPEGs."""
    expected = every_kind.to_torch(target=target)
    found = client.dataset("d").to_torch(target=target)
    assert (found.media_ids, found.classes, found.n_left_out) == (expected.media_ids, expected.classes, 1)
    assert len(found) == len(expected) == 9
    whole = {every_kind.media_id(name) for name in ("cat/1.jpg", "cat/turned.jpg", "upload.png")}
    pixels: list[Any] = []
    for one, other in zip(found, expected, strict=True):
        (image, said), (same, true) = (one, other) if target is not None else ((one, None), (other, None))
        assert str(said) == str(true)
        assert image.shape == same.shape
        assert np.abs(image.numpy().astype(int) - same.numpy()).mean() < 4
        if target is None and found.media_ids[len(pixels)] in whole:
            assert np.array_equal(image.numpy(), same.numpy())
        pixels.append(image)


def test_to_torch__of_some_and_of_objects(every_kind: Dataset, client: Client) -> None:
    """Filters, windows and objects hold; the transform is called; another process has a connection of its own."""
    dataset = client.dataset("d")
    some = dataset.where(vql.labels("cat")).limit(2).to_torch(np.asarray, "labels")
    assert [(image.shape, said.tolist()) for image, said in some] == [
        (image.shape, said.tolist())
        for image, said in every_kind.where(vql.labels("cat")).limit(2).to_torch(np.asarray, "labels")
    ]
    crops, expected = dataset.objects.to_torch(), every_kind.objects.to_torch()
    assert (crops.classes, crops.targets) == (["ear", "tail"], expected.targets)
    assert [image.shape for image, _ in crops] == [image.shape for image, _ in expected]
    copied = pickle.loads(pickle.dumps(crops))
    assert np.array_equal(copied[1][0].numpy(), crops[1][0].numpy())


FORKED = """
import sys
import numpy as np
from torch.utils.data import DataLoader
from framedex import Client

with Client(sys.argv[1]) as client:
    found = client.dataset("d").to_torch(target=None)
    alone = [found[number] for number in range(len(found))]
    loader = DataLoader(found, batch_size=None, num_workers=2, multiprocessing_context="fork")
    print(all(np.array_equal(one.numpy(), other.numpy()) for one, other in zip(loader, alone, strict=True)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_to_torch__in_forked_workers(url: str) -> None:
    """Workers that were forked from a process with an open connection fetch the same images."""
    assert run(FORKED, url).strip() == "True"


def test_to_torch__of_what_is_no_target(client: Client) -> None:
    """Errors are those of the library; a deleted image is not found."""
    dataset = client.dataset("d")
    with pytest.raises(InvalidInput, match="target='label' needs one label for each image"):
        dataset.to_torch()
    with pytest.raises(InvalidInput, match=r"no columns \['nothing'\]"):
        dataset.to_torch(target="nothing")
    with pytest.raises(InvalidInput, match="transform must be a function"):
        dataset.to_torch(transform="resize")  # type: ignore[arg-type] # that is the point
    images = dataset.to_torch(target=None)._images
    images._ids = ["x" * 36]  # type: ignore[attr-defined] # as if it were gone
    with pytest.raises(NotFound):
        images.read(0)


def test_to_huggingface__is_that_of_the_library(every_kind: Dataset, client: Client) -> None:
    """Columns, features and values are equal; all images are in the dataset."""
    need("datasets", "datasets")
    expected, found = every_kind.to_huggingface(), client.dataset("d").to_huggingface()
    assert found.features == expected.features
    assert found.remove_columns("image")[:] == expected.remove_columns("image")[:]
    assert [each.size for each in found["image"]] == [each.size for each in expected["image"]]
