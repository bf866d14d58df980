"""A view as a dataset of PyTorch: the pixels of ds.read, with targets, in workers of any start method."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import Dataset, InvalidInput, Workspace, vql
from tests.extras import need
from tests.gallery import embedded
from tests.inside import layout_of
from tests.processes import run

need("torch", "torch")


def test_items__have_the_pixels_of_the_dataset(every_kind: Dataset) -> None:
    """Each item is what ds.read returns: of a turned JPEG, a PNG, frames, an upload; a broken file is left out."""
    found = every_kind.to_torch(target=None)
    assert (len(found), found.n_left_out) == (9, 1)
    assert found.media_ids == [each for each in every_kind.view.ids if each != every_kind.media_id("broken.jpg")]
    for image, media_id in zip(found, found.media_ids, strict=True):
        assert np.array_equal(image.permute(1, 2, 0).numpy(), every_kind.read(media_id))
    assert found[found.media_ids.index(every_kind.media_id("cat/turned.jpg"))].shape == (3, 160, 120)
    assert np.array_equal(found[-1].numpy(), found[8].numpy())
    with pytest.raises(IndexError, match="no image 9 in a dataset of 9"):
        found[9]


def test_items__of_objects_are_crops(every_kind: Dataset) -> None:
    """A view of objects gives the crop of each with the number of its class among those of objects."""
    found = every_kind.objects.to_torch()
    assert found.classes == ["ear", "tail"]
    assert [target for _, target in found] == [0, 1]
    for index, media_id in enumerate(found.media_ids):
        assert np.array_equal(found[index][0].permute(1, 2, 0).numpy(), every_kind.read(media_id))


def test_targets__of_each_kind(every_kind: Dataset) -> None:
    """One class, all classes, boxes as torchvision takes them, and the values of a column."""
    view = every_kind.select([every_kind.media_id(name) for name in ("dog/ü 3.png", "cat/1.jpg")])
    found = view.to_torch()
    assert found.classes == ["cat", "dog", "ear", "tail"]
    assert found.targets == [found.class_to_idx["dog"], found.class_to_idx["cat"]]
    several = every_kind.select([every_kind.media_id("two.png"), every_kind.media_id("none.png")]).to_torch(
        target="labels"
    )
    assert [target.tolist() for _, target in several] == [[1, 1, 0, 0], [0, 0, 0, 0]]
    (_, empty), (_, boxes) = view.to_torch(target="boxes")
    assert (tuple(empty["boxes"].shape), empty["image_id"], boxes["image_id"]) == ((0, 4), 0, 1)
    assert boxes["boxes"].tolist() == [[1.5, 2.0, 31.5, 22.0], [50.0, 60.0, 90.5, 90.0]]
    assert (boxes["labels"].tolist(), boxes["iscrowd"].tolist()) == ([0, 1], [0, 0])
    assert boxes["area"].tolist() == [600.0, 1215.0]
    assert [target for _, target in view.to_torch(target="caption")] == [None, "a cat"]
    assert [target for _, target in view.to_torch(target="width")] == [160, 160]
    vectors = view.to_torch(target="embedding").targets
    assert vectors[0].shape == (48,)


def test_targets__that_cannot_be(every_kind: Dataset) -> None:
    """Images without one label, columns that are no target, and boxes of crops are refused with a reason."""
    with pytest.raises(InvalidInput, match=r"6 of 9 have another number \(5 none, 1 several\)"):
        every_kind.to_torch()
    with pytest.raises(InvalidInput, match="is no target"):
        every_kind.to_torch(target="issues")
    with pytest.raises(InvalidInput, match="nothing"):
        every_kind.to_torch(target="nothing")
    with pytest.raises(InvalidInput, match="crops"):
        every_kind.objects.to_torch(target="boxes")
    with pytest.raises(InvalidInput, match="transform"):
        every_kind.to_torch(transform="resize", target=None)  # type: ignore[arg-type]


def test_empty__views(every_kind: Dataset) -> None:
    """A view without rows is a dataset without items."""
    assert len(every_kind.where(vql.labels("nothing")).to_torch(target="boxes")) == 0


def test_images__that_lie_elsewhere(workspace: Workspace) -> None:
    """Rows of a table of embeddings whose uris lead to no file are refused."""
    table = embedded([[1.0, 0.0], [0.0, 1.0]], label=["cat", "dog"])
    table = table.set_column(0, "uri", [["https://example.org/0.jpg", "https://example.org/1.jpg"]])
    with pytest.raises(InvalidInput, match=r"2 images are neither files of this machine.*'https://example.org/0.jpg'"):
        workspace.create_dataset("d", table).to_torch()


def _size(image: Any) -> Any:
    return image.size


def test_transform__takes_images_of_pillow(every_kind: Dataset) -> None:
    """A transform is called with an image of Pillow, also after pickling; pickles are small and hold no table."""
    found = every_kind.to_torch(_size, None)
    text = pickle.dumps(found)
    again = pickle.loads(text)
    assert list(again) == list(found)
    assert found[0] == (160, 120)
    assert len(text) < 2000 + 9 * 300
    assert b"lance" not in text


WORKERS = """
import sys
import numpy as np
import torch
from framedex import Workspace

def main():
    with Workspace(sys.argv[1]) as workspace:
        dataset = workspace.dataset("d")
        found = dataset.to_torch(target=None)
        expected = [dataset.read(each) for each in found.media_ids]
        for method in sys.argv[2].split():
            loader = torch.utils.data.DataLoader(
                found, batch_size=None, num_workers=2, shuffle=False, multiprocessing_context=method
            )
            images = [each.permute(1, 2, 0).numpy() for each in loader]
            assert len(images) == len(expected)
            assert all(np.array_equal(*pair) for pair in zip(images, expected))
            print(method)

if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_workers__of_each_start_method(every_kind: Dataset, tmp_path: Path) -> None:
    """Forked and spawned workers of an open workspace give the pixels of ds.read, twice."""
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    out = run("import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
              script, layout_of(every_kind).root, "fork spawn fork")  # fmt: skip
    assert out.split() == ["fork", "spawn", "fork"]


@pytest.mark.slow
def test_import__of_a_worker_loads_no_engine() -> None:
    """What a spawned worker imports to read images loads neither Lance nor DuckDB nor SQLAlchemy."""
    out = run(
        "import sys, framedex.training.stored_images, framedex.training.targets; "
        "print([name for name in ('lance', 'duckdb', 'sqlalchemy', 'botocore', 'PIL') if name in sys.modules])",
        fresh=True,
    )
    assert out.strip() == "[]"
