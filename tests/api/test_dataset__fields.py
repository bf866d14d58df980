"""Custom fields: filled by a task, shown by tables and exports, renamed and deleted at once."""

import io
import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Aborted, Conflict, Dataset, InvalidInput, NotFound, ReadOnly, Task, Workspace
from framedex.records import FieldResult, FieldType
from tests.gallery import SETTINGS, Gate, embedded, fill
from tests.growth import columns_of, part, status_of
from tests.inside import stored_media
from tests.laws import examples
from tests.prepared import prepared

ROWS = 5
NOON = datetime(2024, 5, 17, 12, tzinfo=UTC)


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of five media."""
    return prepared(workspace, "d", embedded(np.eye(ROWS).tolist()))


def all_ids(dataset: Dataset) -> list[str]:
    return dataset.where([]).media_ids()


def values_of(dataset: Dataset, name: str) -> list[Any]:
    values: list[Any] = dataset.to_arrow([name])[name].to_pylist()
    return values


@pytest.mark.slow
def test_field__of_each_type(dataset: Dataset) -> None:
    """A field of each type takes values, alone and in lists, and gives them back."""
    first, second, *_ = all_ids(dataset)
    samples: dict[str, list[Any]] = {
        "string": ["a", "naïve, \"雪\"\n"],
        "float": [0.1, -3.0],
        "datetime": [NOON, NOON.replace(year=1969)],
        "enum": ["left", "right"],
        "link": ["https://example.org/?q", "s3://bucket/key"],
    }  # fmt: skip
    for kind, values in samples.items():
        options = ["right", "left"] if kind == "enum" else None
        one = dataset.add_field(kind, kind, enum_options=options, values={first: values[0], second: values[1]})
        many = dataset.add_field(f"{kind}s", kind, enum_options=options, is_multi=True, values={second: values})
        assert (one.status, one.inserted_rows, many.inserted_rows) == ("COMPLETED", 2, 1)
        assert values_of(dataset, kind) == [*values, None, None, None]
        assert values_of(dataset, f"{kind}s") == [None, values, None, None, None]
    assert [(field.field_name, field.field_type.value, field.is_multi) for field in dataset.fields()] == [
        (name, kind, name != kind) for kind in samples for name in (kind, f"{kind}s")
    ]
    shown = dataset.field_values(second)
    assert [each.field_name for each in shown] == [field.field_name for field in dataset.fields()]
    assert [each.value for each in shown] == [value for _, one in samples.items() for value in (one[1], one)]
    assert {each.field_name for each in dataset.field_values(first)} == set(samples)


@pytest.mark.slow
def test_field__record(dataset: Dataset) -> None:
    """A field says what it takes, who made it and when."""
    dataset.add_field("side", "enum", enum_options=["left", "right"], is_multi=True)
    (field,) = dataset.fields()
    assert (field.field_name, field.field_type, field.enum_options) == ("side", FieldType.ENUM, ["left", "right"])
    assert (field.is_multi, field.created_by) == (True, "tester@example.org")
    assert field.created_at.tzinfo is not None
    assert dataset.field_values(all_ids(dataset)[0]) == []
    assert values_of(dataset, "side") == [None] * ROWS


@pytest.mark.slow
def test_field__bad_rows_fail_alone(dataset: Dataset) -> None:
    """Good rows go in, and the record says how many did not and why; the task is one of its type."""
    first, second, *_ = all_ids(dataset)
    rows = [
        {"media_id": first, "value": 1},
        {"media_id": "nobody", "value": 2},
        {"media_id": second, "value": "three"},
        {"media_id": second, "value": 4},
    ]
    result = dataset.add_field("score", "float", values=rows)
    assert (result.status, result.progress) == ("COMPLETED_WITH_ERRORS", 100)
    assert (result.inserted_rows, result.error_count) == (2, 2)
    assert [(error.row_index, error.reason) for error in result.sample_errors] == [
        (1, "no media 'nobody'"),
        (2, "a float is a number, not 'three'"),
    ]
    assert values_of(dataset, "score") == [1.0, 4.0, None, None, None]
    task = dataset.last_task
    assert task is not None
    assert (task.task_id, task.task_type, task.status) == (result.task_id, "CUSTOM_METADATA", "COMPLETED")


@pytest.mark.slow
def test_field__result_is_kept_with_the_task(workspace: Workspace, dataset: Dataset) -> None:
    """Every process can read the result of the rows, as long as the task exists."""
    ids = all_ids(dataset)
    results = [dataset.add_field("a", "float", values={ids[0]: 1, "nobody": 2}), dataset.set_field("a", {ids[1]: 3})]
    with Workspace(workspace.path, settings=SETTINGS) as again:
        reopened = again.dataset("d")
        assert [reopened.field_result(result.task_id) for result in results] == results
        with pytest.raises(NotFound):
            reopened.field_result("nobody")
        creation = again.tasks(task_type="DATASET_CREATION").tasks[0]
        with pytest.raises(NotFound, match="DATASET_CREATION"):
            reopened.field_result(creation.task_id)


@pytest.mark.slow
@examples(20)
@given(st.lists(st.dictionaries(st.integers(0, ROWS), st.one_of(st.none(), st.integers(-9, 9))), max_size=4))
def test_set_field__any_sequence_agrees_with_a_dict(shared: Dataset, edits: list[dict[int, int | None]]) -> None:
    """Values that are set stay until they are set again, and None clears them."""
    for field in shared.fields():
        shared.delete_field(field.field_name)
    shared.add_field("n", "float")
    ids = [*all_ids(shared), "nobody"]
    expected: dict[int, float | None] = {}
    for edit in edits:
        result = shared.set_field("n", {ids[number]: value for number, value in edit.items()})
        assert (result.inserted_rows, result.error_count) == (len(edit.keys() - {ROWS}), int(ROWS in edit))
        expected |= {number: value for number, value in edit.items() if number < ROWS}
    assert values_of(shared, "n") == [expected.get(number) for number in range(ROWS)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A dataset that the examples of one law use in turn."""
    workspace = Workspace(tmp_path_factory.mktemp("fields") / "workspace", settings=SETTINGS)
    return workspace.create_dataset("d", embedded(np.eye(ROWS).tolist()))


def test_field__requests_that_cannot_be(dataset: Dataset) -> None:
    """A request that is wrong as a whole starts no task and changes nothing."""
    dataset.add_field("a", "string")
    tasks = dataset.last_task
    with pytest.raises(Conflict, match="a field named 'a' exists already"):
        dataset.add_field("a", "float")
    with pytest.raises(InvalidInput, match="no field type 'text'"):
        dataset.add_field("b", "text")
    with pytest.raises(InvalidInput, match="a field of type enum needs a list"):
        dataset.add_field("b", "enum")
    with pytest.raises(InvalidInput, match="a field cannot be named 'tags'"):
        dataset.add_field("tags", "string")
    with pytest.raises(InvalidInput, match="values are a mapping"):
        dataset.add_field("b", "string", values="text")
    with pytest.raises(NotFound, match="no field 'b' in this dataset; there are: 'a'"):
        dataset.set_field("b", {})
    with pytest.raises(NotFound, match="no field 'b'"):
        dataset.rename_field("b", "c")
    with pytest.raises(NotFound, match="no field 'b'"):
        dataset.delete_field("b")
    with pytest.raises(NotFound, match="no media 'nobody'"):
        dataset.field_values("nobody")
    with pytest.raises(InvalidInput, match="no columns"):
        dataset.to_arrow(["b"])
    assert dataset.last_task == tasks
    assert [field.field_name for field in dataset.fields()] == ["a"]


@pytest.mark.slow
def test_field__renamed(dataset: Dataset) -> None:
    """Another name, the same values; the old name is free again."""
    first = all_ids(dataset)[0]
    dataset.add_field("a", "string", values={first: "x"})
    before = dataset.fields()[0]
    assert dataset.rename_field("a", "b") == before.model_copy(update={"field_name": "b"})
    assert values_of(dataset, "b") == ["x", None, None, None, None]
    with pytest.raises(InvalidInput, match="no columns"):
        dataset.to_arrow(["a"])
    dataset.add_field("a", "float")
    with pytest.raises(Conflict):
        dataset.rename_field("a", "b")
    assert dataset.rename_field("a", "a").field_name == "a"
    assert values_of(dataset, "a") == [None] * ROWS


@pytest.mark.slow
@pytest.mark.only_soak
def test_field__deleted(dataset: Dataset) -> None:
    """A deleted field is gone with its values; a new one of its name begins empty, in a column of its own."""
    first = all_ids(dataset)[0]
    dataset.add_field("a", "string", values={first: "x"})
    dataset.add_field("b", "string", values={first: "y"})
    dataset.delete_field("a")
    assert "field_0" not in stored_media(dataset).table.schema.names
    dataset.delete_field("b")
    assert dataset.fields() == []
    dataset.add_field("a", "float")
    assert values_of(dataset, "a") == [None] * ROWS
    dataset.set_field("a", {first: 1})
    assert "field_2" in stored_media(dataset).table.schema.names
    assert values_of(dataset, "a") == [1.0, None, None, None, None]


@pytest.mark.slow
@pytest.mark.only_soak
def test_field__status_stays(workspace: Workspace) -> None:
    """READY stays READY, and PARTIAL INDEX stays so; values stay by additions and a reindex."""
    dataset = workspace.create_dataset("d", part(np.eye(4)))
    first = all_ids(dataset)[0]
    dataset.add_field("a", "float", values={first: 1})
    assert status_of(dataset) == "READY"
    dataset.add_media(part(np.eye(4)[:1] + 0.5, 4))
    dataset.set_field("a", {all_ids(dataset)[4]: 5})
    dataset.add_field("b", "float", values={first: 2})
    assert status_of(dataset) == "PARTIAL INDEX"
    dataset.reindex()
    assert (values_of(dataset, "a"), values_of(dataset, "b")) == ([1.0, None, None, None, 5.0], [2.0, *[None] * 4])


@pytest.mark.slow
def test_field__leaves_the_rest(dataset: Dataset) -> None:
    """Filling a field changes no other column."""
    names = [name for name in stored_media(dataset).table.schema.names if "neighbour" not in name]
    before = columns_of(dataset, names)
    dataset.add_field("a", "string", values=dict.fromkeys(all_ids(dataset), "x"))
    assert columns_of(dataset, names) == before


@pytest.mark.slow
def test_field__as_a_task(dataset: Dataset) -> None:
    """Without waiting there is a task at once, whose result can be looked at."""
    first = all_ids(dataset)[0]
    task = dataset.add_field("a", "float", values={first: 1, "nobody": 2}, wait=False)
    assert isinstance(task, Task)
    assert dataset.task is task
    assert task.wait(60).status == "COMPLETED"
    result = dataset.field_result(task.id)
    assert isinstance(result, FieldResult)
    assert (result.task_id, result.status, result.error_count) == (task.id, "COMPLETED_WITH_ERRORS", 1)
    other = dataset.set_field("a", {first: 3}, wait=False)
    assert isinstance(other, Task)
    other.wait(60)
    assert values_of(dataset, "a")[0] == 3.0


@pytest.mark.slow
def test_field__while_the_task_runs(dataset: Dataset) -> None:
    """The dataset is READ ONLY meanwhile; readers see the state before; an aborted task leaves nothing."""
    first = all_ids(dataset)[0]
    gate = Gate()

    class Row(dict[str, Any]):
        def __getitem__(self, key: str) -> Any:
            gate.reached.set()
            assert gate.opened.wait(60)
            return super().__getitem__(key)

    task = dataset.add_field("a", "float", values=[Row(media_id=first, value=1)], wait=False)
    assert isinstance(task, Task)
    assert gate.reached.wait(60)
    assert status_of(dataset) == "READ ONLY"
    assert dataset.fields() == []
    assert dataset.field_result(task.id).status == "RUNNING"
    with pytest.raises(Conflict, match="blocked while CUSTOM_METADATA task is running"):
        dataset.tag(first, "x")
    with pytest.raises(Conflict, match="blocked while CUSTOM_METADATA task is running"):
        dataset.add_field("b", "float")
    task._runner.run_of(task.id).progress.cancel()  # type: ignore[union-attr] # it runs here
    gate.opened.set()
    with pytest.raises(Aborted):
        task.wait(60)
    assert status_of(dataset) == "READY"
    assert dataset.fields() == []
    assert dataset.field_result(task.id).status == "ABORTED"
    task.retry()
    task.wait(60)
    assert values_of(dataset, "a")[0] == 1.0


@pytest.mark.slow
def test_field__in_a_workspace_that_is_read_only(workspace: Workspace, dataset: Dataset) -> None:
    """Fields can be read there and not written."""
    first = all_ids(dataset)[0]
    dataset.add_field("a", "float", values={first: 1})
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as reader:
        seen = reader.dataset("d")
        assert seen.fields() == dataset.fields()
        assert seen.field_values(first) == dataset.field_values(first)
        for edit in (lambda: seen.set_field("a", {first: 2}), lambda: seen.delete_field("a")):
            with pytest.raises(ReadOnly):
                edit()


@pytest.mark.slow
def test_to_arrow__has_fields_by_name(dataset: Dataset) -> None:
    """A field's name selects its column, beside others and in the wanted order; by default there are none."""
    ids = all_ids(dataset)
    dataset.add_field("free text", "string", values={ids[1]: "x"})
    dataset.add_field("location", "float", values={ids[0]: 2})
    table = dataset.to_arrow(["location", "media_id", "free text"])
    assert table.column_names == ["location", "media_id", "free text"]
    assert table.to_pylist()[:2] == [
        {"location": 2.0, "media_id": ids[0], "free text": None},
        {"location": None, "media_id": ids[1], "free text": "x"},
    ]
    assert table.schema.types == [pa.float64(), pa.string(), pa.string()]
    assert dataset.where([{"tags": {"op": "is", "value": "a"}}]).to_arrow(["path"]).num_rows == 0
    assert "path" not in dataset.to_arrow().column_names
    assert dataset.to_pandas(["free text"])["free text"].tolist()[1] == "x"


def test_export__has_fields(dataset: Dataset, tmp_path: Path) -> None:
    """JSON has an item for each value, Parquet a column for each field."""
    first, second, *_ = all_ids(dataset)
    dataset.add_field('a "b"', "float", values={first: 0.1, second: 1e300})
    dataset.add_field("when", "datetime", is_multi=True, values={second: ["2024-05-17T12:00:00Z", NOON]})
    dataset.add_field("side", "enum", enum_options=["left\\"], values={first: "left\\"})
    dataset.add_field("empty", "string")
    dataset.export(tmp_path / "out.zip")
    content = json.loads(zipfile.ZipFile(tmp_path / "out.zip").read("metadata.json"))
    items = [
        [part["properties"] for part in item["metadata_items"] if part["type"] == "custom_field"]
        for item in content["media_items"]
    ]
    noon = "2024-05-17T12:00:00.000000Z"
    assert items == [
        [
            {"field_name": 'a "b"', "field_type": "float", "value": 0.1},
            {"field_name": "side", "field_type": "enum", "value": "left\\"},
        ],
        [
            {"field_name": 'a "b"', "field_type": "float", "value": 1e300},
            {"field_name": "when", "field_type": "datetime", "value": [noon, noon]},
        ],
        [],
        [],
        [],
    ]
    dataset.export(tmp_path / "out.zip", "parquet")
    table = pq.read_table(io.BytesIO(zipfile.ZipFile(tmp_path / "out.zip").read("metadata.parquet")))
    assert table['a "b"'].to_pylist() == [0.1, 1e300, None, None, None]
    assert table["when"].to_pylist() == [None, [NOON, NOON], None, None, None]
    assert table["empty"].null_count == ROWS


@pytest.mark.slow
def test_field__values_of_a_dataset_of_images(workspace: Workspace, tmp_path: Path) -> None:
    """Media that were read from files have fields like all others."""
    dataset = workspace.create_dataset("d", fill(tmp_path / "images", 3), "gist")
    ids = all_ids(dataset)
    dataset.add_field("a", "string", values={ids[2]: "x"})
    assert values_of(dataset, "a") == [None, None, "x"]
