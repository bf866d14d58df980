"""Lists, patterns and tables of paths as sources; their other columns are custom fields, a split is a tag."""

import datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import InvalidInput, Workspace
from framedex.jobs.ingest.content import FilesInput, content_from_config, open_content
from framedex.jobs.ingest.source_facts import typed_values
from framedex.records import FieldType
from tests.gallery import SETTINGS, Averages, fill
from tests.inside import layout_of

DAY = datetime.date(2024, 5, 17)


def fields(dataset: Any) -> dict[str, str]:
    """Return the types of the custom fields by name."""
    return {each.field_name: str(each.field_type) for each in dataset.fields()}


def test_list__of_paths(workspace: Workspace, folder: Path) -> None:
    """A Python list of paths is a source, in its order; repeated ones are skipped, as in list files."""
    paths = [str(folder / "001.png"), folder / "000.png", folder / "001.png"]
    dataset = workspace.create_dataset("d", paths, Averages())
    assert [row["image_filename"] for row in dataset.view.rows(["image_filename"])] == ["001.png", "000.png"]
    assert dataset.skipped == {"repeated entries": 1}
    dataset.add_media([folder / "002.png"])
    assert dataset.count() == 3
    with pytest.raises(InvalidInput, match="item 1 is 5"):
        workspace.create_dataset("e", [str(folder / "001.png"), 5])


def test_pattern__of_paths(workspace: Workspace, in_tmp_path: Path) -> None:
    """A pattern is a source of the images that it matches, sorted, also relative to the working folder."""
    fill(in_tmp_path / "p/a/b", 2)
    fill(in_tmp_path / "p/c", 1, first_seed=7)
    (in_tmp_path / "p/a/notes.txt").write_text("no image")
    dataset = workspace.create_dataset("d", f"{in_tmp_path}/p/**/*", Averages())
    assert [row["image_filename"] for row in dataset.view.rows(["image_filename"])] == [
        "a/b/000.png", "a/b/001.png", "c/000.png",
    ]  # fmt: skip
    assert workspace.create_dataset("e", "p/?/*.png", Averages()).count() == 1
    with pytest.raises(InvalidInput, match=r"no image or video matches 'p/\*\.gif'"):
        workspace.create_dataset("f", "p/*.gif")


def test_data_frame__has_custom_fields(workspace: Workspace, folder: Path) -> None:
    """Other columns of a DataFrame become fields of the type of their values; those that cannot be are named."""
    frame = pd.DataFrame(
        {
            "path": [str(folder / f"{number:03}.png") for number in range(3)],
            "label": ["cat", "dog", None],
            "score": [0.5, None, 2.0],
            "taken": [DAY, DAY, None],
            "checked": [True, False, True],
            "code": ["007", "12", "x"],
            "link": ["https://example.org/a", None, "s3://b/c"],
            "split": ["train", "val", "train"],
            "width": [1, 2, 3],
        }
    )
    dataset = workspace.create_dataset("d", frame, Averages())
    types = {"score": "float", "taken": "datetime", "checked": "enum", "code": "string", "link": "link"}
    assert fields(dataset) == types
    rows = dataset.to_arrow(["labels", "tags", "score", "checked", "code", "taken"]).to_pylist()
    assert rows[0]["taken"] == datetime.datetime(2024, 5, 17, tzinfo=datetime.UTC)
    assert [(row["labels"], row["tags"], row["score"], row["checked"], row["code"]) for row in rows] == [
        (["cat"], ["train"], 0.5, "true", "007"),
        (["dog"], ["val"], None, "false", "12"),
        ([], ["train"], 2.0, "true", "x"),
    ]
    assert any("'width' is left out" in line and "reserved" in line for line in dataset.layout)
    assert "width" in dataset.last_task.status_message  # type: ignore[union-attr]  # a task made it


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_list_files__have_custom_fields(workspace: Workspace, folder: Path, suffix: str) -> None:
    """So do those of CSV and Parquet lists; an addition fills the fields that exist."""
    table = pa.table({"file": ["000.png", "001.png"], "weight": [1.5, 2.0], "Site": ["north", "south"]})
    first, second = (folder / f"{name}{suffix}" for name in ("a", "b"))

    def save(path: Path, content: pa.Table) -> None:
        if suffix == ".csv":
            content.to_pandas().to_csv(path, index=False)
        else:
            pq.write_table(content, path)

    save(first, table)
    save(second, pa.table({"file": ["002.png"], "weight": [7.0], "more": ["x"], "Site": ["5"]}))
    dataset = workspace.create_dataset("d", first, Averages())
    assert fields(dataset) == {"weight": "float", "Site": "string"}
    dataset.add_media(second)
    assert fields(dataset) == {"weight": "float", "Site": "string", "more": "string"}
    rows = dataset.to_arrow(["weight", "Site", "more"]).to_pylist()
    assert rows[:2] == [
        {"weight": 1.5, "Site": "north", "more": None},
        {"weight": 2.0, "Site": "south", "more": None},
    ]
    assert rows[2] == {"weight": 7.0, "Site": "5", "more": "x"}


@pytest.mark.parametrize(
    ("values", "kind", "stored"),
    [
        (["1", "2.5", None], FieldType.FLOAT, [1.0, 2.5, None]),
        (["1", "0123"], FieldType.STRING, ["1", "0123"]),
        (["1e999", "1"], FieldType.STRING, ["1e999", "1"]),
        (["True", "false"], FieldType.ENUM, ["true", "false"]),
        ([True, 1], FieldType.STRING, ["true", "1"]),
        (["2024-05-17"], FieldType.DATETIME, [datetime.datetime(2024, 5, 17, tzinfo=datetime.UTC)]),
        (["https://a.example/x y"], FieldType.STRING, ["https://a.example/x y"]),
        ([["a", "b"], []], FieldType.STRING, [["a", "b"], None]),
        ([{"a": 1}], FieldType.STRING, ['{"a": 1}']),
        ([float("inf")], FieldType.STRING, ["Infinity"]),
        (["\ud800"], FieldType.STRING, ["?"]),
    ],
)
def test_types__of_values(values: list[Any], kind: FieldType, stored: list[Any]) -> None:
    """Values have the type that suits all of them, and are text otherwise."""
    found = typed_values(values)
    assert (found[0], found[3]) == (kind, stored)


def test_retries__open_the_same_source(workspace: Workspace, folder: Path) -> None:
    """Another process opens a pattern, or a folder whose folders are no classes, by the config of the task alone."""
    dataset = workspace.create_dataset("d", folder)
    pattern = open_content(f"{folder}/*1.png", "auto", SETTINGS)
    plain = open_content(str(folder), "auto", SETTINGS, class_folders=False)
    for content in (pattern, plain):
        assert isinstance(content, FilesInput)
        assert content.config is not None
        again = content_from_config(content.config, dataset.embedding_config, layout_of(dataset), SETTINGS)
        assert isinstance(again, FilesInput)
        assert list(again.source.items()) == list(content.source.items())
        assert again.config == content.config
    in_memory = open_content([str(folder / "000.png")], "auto", SETTINGS)
    assert isinstance(in_memory, FilesInput)
    assert in_memory.config is None


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-02T10:00:00+02:00",
        "2024-01-02 10:00:00+02",
        "2024-07-02T10:00:00.123456789Z",
        "2024-01-02 10:00:00 UTC",
        "2024-07-02 10:00:00 Europe/Berlin",
        "2024/01/02 10:00:00",
        "2024-01-02",
    ],
)
def test_typed_values__times_are_those_of_duckdb(text: str) -> None:
    """Texts with zones, or without one, are the times that DuckDB reads."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        expected = connection.execute("SELECT epoch_us(CAST(? AS TIMESTAMPTZ))", [text]).fetchone()
    kind, _, _, (value,) = typed_values([text])
    assert kind == FieldType.DATETIME
    assert expected is not None
    assert round(value.timestamp() * 1e6) == expected[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024:01:02 10:00:00", datetime.datetime(2024, 1, 2, 10, tzinfo=datetime.UTC)),
        ("2024-01-02T10:00:00+02:00[Europe/Berlin]", datetime.datetime(2024, 1, 2, 8, tzinfo=datetime.UTC)),
        ("01/02/2024", "01/02/2024"),
        ("2024-01-02 10:00:00 Nowhere/Town", "2024-01-02 10:00:00 Nowhere/Town"),
    ],
)
def test_typed_values__times_of_other_programs(text: str, expected: datetime.datetime | str) -> None:
    """Times of Exif and Java are read; a date that may have two meanings stays a text."""
    assert typed_values([text])[3] == [expected]
