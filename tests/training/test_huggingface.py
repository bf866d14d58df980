"""A view as a dataset of Hugging Face."""

import numpy as np
import pytest

from framedex import Dataset
from tests.extras import need

need("datasets", "datasets")
pytestmark = pytest.mark.slow


@pytest.mark.only_soak
def test_rows__have_pixels_and_labels(every_kind: Dataset) -> None:
    """Images have the pixels of ds.read; labels are class labels of the whole dataset; boxes are beside them."""
    every_kind_ = every_kind.to_huggingface()
    assert every_kind_.column_names == ["image", "media_id", "file_name", "labels", "caption", "tags", "objects"]
    assert len(every_kind_) == 9
    for row in every_kind_:
        assert np.array_equal(np.asarray(row["image"].convert("RGB")), every_kind.read(row["media_id"]))
    rows = {row["file_name"]: row for row in every_kind_.remove_columns("image")}
    names = every_kind_.features["labels"].feature.names
    assert [names[number] for number in rows["two.png"]["labels"]] == ["cat", "dog"]
    assert rows["cat/1.jpg"]["caption"] == "a cat"
    assert rows["cat/1.jpg"]["objects"]["bbox"] == [[1.5, 2.0, 30.0, 20.0], [50.0, 60.0, 40.5, 30.0]]
    assert [names[number] for number in rows["cat/1.jpg"]["objects"]["categories"]] == ["ear", "tail"]
    assert rows["none.png"]["objects"] == {"bbox": [], "categories": []}


def test_rows__of_objects_and_one_label(every_kind: Dataset) -> None:
    """A view of objects has a row for each crop; with one label for each image there is a column ``label``."""
    crops = every_kind.objects.to_huggingface()
    assert [crops.features["label"].int2str(number) for number in crops["label"]] == ["ear", "tail"]
    for row in crops:
        assert np.array_equal(np.asarray(row["image"]), every_kind.read(row["media_id"]))
    files = every_kind.select([every_kind.media_id("cat/1.jpg")]).to_huggingface()
    assert files.cast_column("image", files.features["image"].__class__(decode=False))[0]["image"]["bytes"] is None
