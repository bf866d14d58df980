"""Uploads of images in many calls, and what a dataset's folder holds of them."""

from collections.abc import Sequence
from pathlib import Path

from framedex import Dataset, UploadTransaction, Workspace
from framedex.records import UploadState
from tests.growth import columns_of
from tests.image_files import encode, photo


def image(seed: int) -> bytes:
    """Return the content of a PNG."""
    return encode(photo(seed), "PNG")


def pairs(*seeds: int) -> list[tuple[str, bytes]]:
    """Return files of a call, named by their seeds."""
    return [(f"{seed}.png", image(seed)) for seed in seeds]


def drafted(workspace: Workspace, *seeds: int, name: str = "pets") -> tuple[Dataset, UploadTransaction]:
    """Return a draft with an open transaction that holds some images."""
    dataset = workspace.create_draft(name)
    transaction = dataset.open_upload()
    if seeds:
        transaction.add(pairs(*seeds))
    return dataset, transaction


def state_of(transaction: UploadTransaction) -> UploadState:
    """Return the state now; a call, of which no type checker thinks that it stays the same."""
    return transaction.state


def paths_of(dataset: Dataset) -> list[str]:
    """Return the paths of all media, sorted."""
    return sorted(columns_of(dataset, ["path"])["path"])


def home_of(workspace: Workspace, dataset: Dataset) -> Path:
    """Return the folder of a dataset."""
    return workspace.path / "datasets" / dataset.id


def blobs_of(workspace: Workspace, dataset: Dataset) -> list[Path]:
    """Return the stored contents of a dataset."""
    return sorted(path for path in (home_of(workspace, dataset) / "blobs").rglob("*") if path.is_file())


def lists_of(workspace: Workspace, dataset: Dataset) -> list[str]:
    """Return the lists of transactions and of uploads that a dataset's folder holds."""
    home = home_of(workspace, dataset)
    found = [*(home / "transactions").glob("*"), *(home / "uploads").glob("*")]
    return sorted(path.relative_to(home).as_posix() for path in found)


def distinct(sent: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return files of an upload, as names and numbers of contents, each once: in the place of the last."""
    return [each for place, each in enumerate(sent) if each not in sent[place + 1 :]]


def with_upload(rows: dict[str, int], sent: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Return a plain model of uploaded images, the number of their content by name, after an upload.

    Content that is there already adds nothing; other content of a name that is taken gets the name with a number.
    """
    files, result, came = distinct(sent), dict(rows), set[str]()
    for name, number in files:
        if number in rows.values():
            continue
        place, count = name, 1
        while place in result or (place in dict(files) and (count > 1 or name in came)):
            count += 1
            stem, _, suffix = name.rpartition(".")
            place = f"{stem}-{count}.{suffix}"
        came.add(name)
        result[place] = number
    return result
