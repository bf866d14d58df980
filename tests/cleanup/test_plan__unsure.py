"""Groups of which it is not sure which image is the original lose nothing, unless the plan names them."""

import io
from pathlib import Path

from PIL import Image

from framedex import Workspace
from framedex.hub.proposals import proposed_copies
from tests.analysis.test_fidelity import scene
from tests.image_files import encode


def test_plan__without_unsure_groups(workspace: Workspace, tmp_path: Path) -> None:
    """Nothing tells which of two files of like quality is the original; a coarse copy of a file goes."""
    folder = tmp_path / "images"
    folder.mkdir()
    files = {
        "like.jpg": encode(scene(1), "JPEG", quality=75),
        "alike.jpg": encode(scene(1), "JPEG", quality=76),
        "first.jpg": encode(scene(2), "JPEG", quality=75),
    }
    files["coarse.jpg"] = encode(Image.open(io.BytesIO(files["first.jpg"])), "JPEG", quality=40)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    dataset = workspace.create_dataset("d", folder, "gist")
    sure = {tuple(sorted(group.file_names)): group.is_sure for group in dataset.duplicates()}
    assert sure == {("coarse.jpg", "first.jpg"): True, ("alike.jpg", "like.jpg"): False}
    coarse = dataset.media_id("coarse.jpg")
    plan = dataset.plan_cleanup(duplicates=0.96)
    assert (plan.removed_ids(), plan.summary.unsure) == ([coarse], 1)
    assert plan.words.endswith("; 1 group left out, as the original is not sure")
    found = proposed_copies(dataset, 0.96)
    assert (found.media_ids, found.n_groups, found.n_unsure) == ([coarse], 1, 1)
    wide = proposed_copies(dataset, 0.96, unsure=True)
    assert (len(wide.media_ids), wide.n_groups, wide.n_unsure) == (2, 2, 0)
    for more in ({"unsure": True}, {"keep": "largest"}):
        plan = dataset.plan_cleanup(duplicates=0.96, **more)
        assert (len(plan), plan.summary.unsure, "left out" in plan.words) == (2, 0, False)
