"""Uploads beside a model: known content is known, and other content of an equal name is another image."""

import io
import shutil
import tarfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Dataset, TaskFailed, Workspace, vql
from framedex.encoders import register
from tests.gallery import SETTINGS, Averages
from tests.growth import columns_of
from tests.image_files import photo
from tests.laws import examples, law_folder
from tests.prepared import new_workspace
from tests.tuning import Tuning
from tests.uploading import drafted, image, with_upload

Files = Sequence[tuple[str, int]]
"""Names of files, and the numbers of their images."""
NAME = st.sampled_from(["a.png", "x/a.png", "y/a.png", "a-2.png", "b.png"])
FILES = st.lists(st.tuples(NAME, st.integers(1, 5)), min_size=1, max_size=4)
UPLOAD = st.tuples(st.sampled_from(["files", "archive", "transaction"]), FILES)


def send(dataset: Dataset, way: str, files: Files) -> None:
    """Upload images in one of the ways."""
    pairs = [(name, image(number)) for name, number in files]
    if way == "files":
        dataset.add_media(files=pairs)
    elif way == "archive":
        folder = law_folder("archive")
        with tarfile.open(folder / "x.tar", "w") as archive:
            for name, content in pairs:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        dataset.add_media(archive=folder / "x.tar")
        shutil.rmtree(folder)
    else:
        upload = dataset.open_upload()
        for each in pairs:
            upload.add([each])
        upload.process(encoder="averages") if dataset.info.n_images == 0 else upload.process()


def shown(dataset: Dataset) -> dict[str, int]:
    """Return the numbers of the images of a dataset by their names, from their pixels."""
    of_pixels = {photo(number).tobytes(): number for number in range(6)}
    rows = columns_of(dataset, ["path", "media_id"])
    numbers = [of_pixels[dataset.read(media_id).tobytes()] for media_id in rows["media_id"]]
    return dict(zip(rows["path"], numbers, strict=True))


@pytest.mark.slow
@given(uploads=st.lists(UPLOAD, min_size=1, max_size=4))
@examples(15)
def test_uploads__are_a_dictionary(uploads: list[tuple[str, Files]]) -> None:
    """Any sequence of uploads gives the rows of a model; ids and labels stay, and a clone gets the same ids."""
    register("averages", lambda _name: Averages())
    folder = law_folder("uploads")
    try:
        with new_workspace(folder / "ws", SETTINGS) as workspace:
            dataset = workspace.create_draft("pets")
            send(dataset, "transaction", [("seed.png", 0)])
            dataset.set_labels(dataset.view, ["seed"])
            rows, ids = {"seed.png": 0}, dict[str, str]()
            copy = dataset.clone()
            for way, files in uploads:
                send(dataset, way, files)
                sent = [(name.rpartition("/")[2] if way == "transaction" else name, each) for name, each in files]
                rows = with_upload(rows, sent)
                assert shown(dataset) == rows
                now = dict(zip(*columns_of(dataset, ["path", "media_id"]).values(), strict=True))
                assert {name: now[name] for name in ids} == ids
                ids = now
                send(copy, way, files)
                assert dict(zip(*columns_of(copy, ["path", "media_id"]).values(), strict=True)) == ids
            for way, files in uploads:
                send(dataset, way, files)
            assert (shown(dataset), [label.count for label in dataset.labels()]) == (rows, [1])
            assert workspace.check().findings == []
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.slow
def test_uploads__annotations_of_equal_names(workspace: Workspace) -> None:
    """Annotations belong to the name in the upload; those of a name that several files have belong to none of them."""
    register("averages", lambda _name: Averages())
    dataset, upload = drafted(workspace, 1)
    upload.process(encoder="averages")
    boxes = "filename,col_x,row_y,width,height,label\n1.png,5,5,20,20,ant\n"
    labels = "filename,label\n1.png,dog\ntwice.png,cat\n"
    more = dataset.open_upload()
    more.add([("1.png", image(2)), ("twice.png", image(3)), ("twice.png", image(4))])
    more.add([("image_annotations.csv", labels.encode()), ("object_annotations.csv", boxes.encode())])
    more.process()
    rows = dict(zip(*columns_of(dataset, ["path", "labels"]).values(), strict=True))
    assert rows == {"1.png": None, "1-2.png": ["dog"], "twice.png": None, "twice-2.png": None}
    assert dataset.skipped == {"files without their annotation, because several have their name": 2}
    (parent,) = {row["parent_id"] for row in dataset.objects.rows(["parent_id"])}
    assert dataset.where(vql.objects("ant")).media_ids() == [parent] == [dataset.media_id("1-2.png")]


def test_uploads__of_a_name_that_was_deleted(workspace: Workspace) -> None:
    """A name that is free again may be given to another image, which shows nothing of the deleted one."""
    register("averages", lambda _name: Averages())
    dataset, upload = drafted(workspace, 1, 2)
    upload.process(encoder="averages")
    media_id = dataset.media_id("1.png")
    dataset.set_labels(media_id, "old")
    before = dataset.thumbnail(media_id)
    dataset.delete_media([media_id])
    dataset.add_media(files=[("1.png", image(3))])
    again = dataset.media_id("1.png")
    assert dataset.thumbnail(again) != before
    assert (dataset.labels(), dataset.media_item(again).file_name) == ([], "1.png")


class FailingLate(Averages):
    """An encoder that fails at its third batch."""

    batches = 0

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        self.batches += 1
        if self.batches == 3:
            raise RuntimeError("the encoder is out of order")
        return super().encode_images(batch)


@pytest.mark.slow
def test_uploads__that_resume(workspace: Workspace, tuning: Tuning) -> None:
    """A task that goes on after some rows gives the names and ids of an uninterrupted one."""
    register("averages", lambda _name: Averages())
    dataset, upload = drafted(workspace, 0)
    upload.process(encoder="averages")
    names = [(f"{number % 2}.png", image(number)) for number in range(1, 8)]
    other = dataset.clone()
    other.add_media(files=names)
    tuning.committed_rows, tuning.encoded_images = 1, 1
    late = FailingLate()
    register("averages", lambda _name: late)
    task = dataset.add_media(files=names, wait=False)
    with pytest.raises(TaskFailed):
        task.wait(60)
    task.retry()
    task.wait(60)
    assert late.batches == len(names) + 1  # so the first two were not encoded again
    assert columns_of(dataset, ["path", "media_id"]) == columns_of(other, ["path", "media_id"])
