"""Facts of the members of duplicate groups: what tells an original from its copies."""

import io
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from framedex import Workspace
from framedex.browse.member_facts import facts_of
from framedex.records import MemberFacts
from tests.image_files import detailed, encode
from tests.prepared import prepared


@pytest.mark.parametrize("quality", [10, 35, 60, 80, 90, 97])
def test_facts__quality(quality: int) -> None:
    """The quality is that of libjpeg from the mean of the steps, which are whole numbers."""
    table = Image.open(io.BytesIO(encode(detailed(0), "JPEG", quality=quality))).quantization[0]  # type: ignore[attr-defined]
    step = np.mean([table[place] for place in (1, 8, 16, 9, 2, 10, 17, 18)])
    found = facts_of({"keep_step": np.array([np.nan, step])}, 1).quality
    assert found is not None
    assert abs(found - quality) <= 1
    assert facts_of({"keep_step": np.array([np.nan, step])}, 0).quality is None
    assert facts_of({"keep_step": np.array([0.0])}, 0).quality is None


def test_facts__of_nothing() -> None:
    """What was not measured is not known."""
    assert facts_of({}, 0) == MemberFacts()


def test_facts__of_a_group(workspace: Workspace, tmp_path: Path) -> None:
    """Each member has its facts, in the order of the members; equal files have none."""
    folder = tmp_path / "images"
    folder.mkdir()
    data = Image.Exif()
    data[0x010F] = "Maker"
    Image.fromarray(detailed(1)).save(folder / "a.jpg", quality=90, exif=data)
    image = Image.open(folder / "a.jpg").convert("RGB")
    (folder / "b.jpg").write_bytes(encode(np.asarray(image), "JPEG", quality=40))
    (folder / "c.jpg").write_bytes(encode(np.asarray(ImageOps.expand(image, 30, (0, 0, 0))), "JPEG", quality=90))
    (folder / "d.jpg").write_bytes((folder / "b.jpg").read_bytes())
    dataset = prepared(workspace, "facts", folder, "gist")
    (group,) = dataset.duplicates()
    facts = dict(zip(group.file_names, group.facts, strict=True))
    assert {name: (each.width, each.height) for name, each in facts.items()} == {
        "a.jpg": (320, 240), "b.jpg": (320, 240), "c.jpg": (380, 300), "d.jpg": (320, 240),
    }  # fmt: skip
    assert [facts[name].metadata for name in ("a.jpg", "b.jpg")] == [True, False]
    qualities = [facts[name].quality for name in ("a.jpg", "b.jpg")]
    assert all(found is not None and abs(found - made) <= 1 for found, made in zip(qualities, (90, 40), strict=True))
    assert (facts["c.jpg"].added_pixels or 0) > 20_000 > (facts["a.jpg"].added_pixels or 0)
    assert facts["a.jpg"].size_bytes == (folder / "a.jpg").stat().st_size
    changed = datetime.fromtimestamp((folder / "a.jpg").stat().st_mtime, UTC)
    assert facts["a.jpg"].modified_at is not None
    assert abs((facts["a.jpg"].modified_at - changed).total_seconds()) < 1
    assert all(each.colour and each.clipped is not None and 0 <= each.clipped <= 1 for each in group.facts)
    assert [each.facts for each in dataset.duplicates(exact=True)] == [[]]
    assert group.facts == [facts[name] for name in group.file_names]
