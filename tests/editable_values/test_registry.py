"""Editable values: a row of the registry is all that a value needs to be set, kept and exported."""

import pytest

from framedex import InvalidInput, Workspace
from framedex.editable_values import editable_values, find_editable_value
from tests.gallery import fill
from tests.processes import run


def test_values__are_those_of_the_interface() -> None:
    """Captions and labels are built in; an unknown name is refused, with the way to a value of one's own."""
    assert list(editable_values()) == ["caption", "labels"]
    with pytest.raises(InvalidInput, match="no editable value 'stars'; there are: caption, labels; others are custom"):
        find_editable_value("stars")


@pytest.mark.slow
def test_set_value__is_set_labels_and_set_captions(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The general method does what the methods for labels and captions do, for a selection and by media id."""
    dataset = workspace.create_dataset("pets", fill(tmp_path_factory.mktemp("pets"), 4))
    ids = dataset.where([]).media_ids()
    dataset.set_value("labels", dataset.where([]), ["cat"])
    dataset.set_value("labels", {ids[1]: ["dog", "pet"], ids[2]: None})
    dataset.set_value("caption", ids[:2], "both")
    dataset.set_value("caption", ids[0], None)
    table = dataset.to_arrow(["labels", "caption"]).to_pydict()
    assert table == {"labels": [["cat"], ["dog", "pet"], [], ["cat"]], "caption": [None, "both", None, None]}
    with pytest.raises(InvalidInput, match=f"a caption is text or None, not 5; it is that of media '{ids[1]}'"):
        dataset.set_value("caption", {ids[0]: "a", ids[1]: 5})
    for wrong in ({ids[0]: "a"}, "a"), (ids,):
        with pytest.raises(InvalidInput, match=r"set_value (takes either values by|needs the value of)"):
            dataset.set_value("caption", *wrong)
    assert dataset.to_arrow(["caption"]).to_pydict()["caption"] == [None, "both", None, None]


@pytest.mark.slow
def test_new_value__is_one_row(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A value that is only registered is set, exported, and kept by all other changes."""
    code = """
    import json, sys, zipfile
    from pathlib import Path
    import pyarrow as pa
    import pyarrow.parquet as pq
    from framedex.editable_values import EditableValue, registry
    from framedex.errors import InvalidInput

    def parse(value):
        if value is not None and value not in range(1, 6):
            raise InvalidInput(f"a rating is a whole number from 1 to 5, not {value!r}")
        return value

    registry._BUILT_IN["rating"] = EditableValue("rating", pa.int64(), parse)
    import framedex
    from tests.gallery import SETTINGS

    folder, workspace = Path(sys.argv[2]), framedex.Workspace(sys.argv[1], settings=SETTINGS)
    dataset = workspace.create_dataset("pets", folder, "gist")
    ids = dataset.where([]).media_ids()
    ratings = lambda each: each.to_arrow(["rating"])["rating"].to_pylist()
    assert ratings(dataset) == [None] * 4
    before = dataset.snapshot("before")
    dataset.set_value("rating", {ids[0]: 5, ids[1]: 3, ids[2]: 1})
    dataset.set_value("rating", ids[2], None)
    try:
        dataset.set_value("rating", ids, 6)
    except InvalidInput as error:
        assert "1 to 5, not 6" in str(error)
    assert ratings(dataset) == [5, 3, None, None]
    assert ratings(dataset.clone(dataset.snapshot("rated"))) == [5, 3, None, None]

    (folder / "000.png").write_bytes((folder / "003.png").read_bytes())  # a changed file keeps its value
    dataset.add_media(folder)
    dataset.reindex()
    rows = dataset.to_arrow(["file_path", "rating"]).to_pylist()
    assert sorted((row["file_path"][-7:], row["rating"]) for row in rows) == [
        ("000.png", 5), ("001.png", 3), ("002.png", None), ("003.png", None)]

    dataset.export(Path(sys.argv[1]) / "a.zip", format="json")
    with zipfile.ZipFile(Path(sys.argv[1]) / "a.zip") as archive:
        text = next(archive.read(name).decode() for name in archive.namelist() if name.endswith(".json"))
    items = [item for media in json.loads(text)["media_items"] for item in media["metadata_items"]]
    assert sorted(each["properties"]["value"] for each in items if each["type"] == "rating") == [3, 5]
    dataset.export(Path(sys.argv[1]) / "b.zip", format="parquet")
    with zipfile.ZipFile(Path(sys.argv[1]) / "b.zip") as archive:
        name = next(name for name in archive.namelist() if name.endswith(".parquet"))
        table = pq.read_table(pa.BufferReader(archive.read(name)))
    assert sorted(value for value in table["rating"].to_pylist() if value) == [3, 5]
    try:
        dataset.add_field("rating", "float")
    except InvalidInput as error:
        print(error)
    dataset.restore(before)
    assert ratings(dataset) == [None] * 4
    """
    root = tmp_path_factory.mktemp("rating")
    printed = run(code, root / "ws", fill(root / "images", 4), fresh=True)
    assert "rating" in printed
