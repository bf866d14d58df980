"""Faults of annotated boxes: which kind is found, in which order, and how it is shown."""

import json
from collections.abc import Iterator

import pytest

from framedex import Client, Dataset, InvalidInput, Workspace
from framedex.cli import main
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.gallery import SETTINGS
from tests.image_files import photo, write
from tests.inside import layout_of
from tests.service.client import BASE, client_of

BOXES = [
    ("0.png", "cat", [10, 10, 40, 40]),
    ("0.png", "cat", [11, 10, 40, 41]),  # the same cat again
    ("0.png", "dog", [100, 10, 40, 40]),  # a cat
    ("1.png", "cat", [40, 60, 40, 40]),  # it is farther to the left
    ("1.png", "dog", [120, 20, 30, 60]),  # nothing
]
PREDICTED = [
    ("0.png", "cat", [10, 10, 40, 40], 0.95),
    ("0.png", "cat", [100, 11, 40, 40], 0.9),
    ("1.png", "cat", [10, 60, 40, 40], 0.85),
    ("1.png", "cat", [100, 90, 50, 25], 0.8),  # without a box
]
KINDS = {"duplicate": 1, "wrong_class": 1, "placement": 1, "spurious": 1, "missing": 1}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Two images with a fault of each kind, and one with boxes that are right."""
    folder = tmp_path_factory.mktemp("faults")
    right = [("2.png", "cat", [10 + 30 * place, 10, 25, 25]) for place in range(4)]
    for seed in range(3):
        write(folder / "images" / f"{seed}.png", photo(seed, width=160, height=120))
    rows = ["filename,col_x,row_y,width,height,label"]
    rows += [f"{name},{','.join(map(str, box))},{label}" for name, label, box in [*BOXES, *right]]
    (folder / "boxes.csv").write_text("\n".join(rows))
    names = ["cat", "dog"]
    predicted = [*PREDICTED, *((*each, 0.9) for each in right)]
    content = {
        "images": [{"id": number, "file_name": f"{number}.png"} for number in range(3)],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "annotations": [
            {
                "id": number,
                "image_id": int(name[0]),
                "category_id": names.index(label),
                "bbox": box,
                "score": score,
            }
            for number, (name, label, box, score) in enumerate(predicted)
        ],
    }
    (folder / "found.json").write_text(json.dumps(content))
    with Workspace(folder / "ws", settings=SETTINGS) as workspace:
        made = workspace.create_dataset("pets", folder / "images", boxes=folder / "boxes.csv")
        made.add_objects([folder / "found.json"])
        yield made


def test_object_issues__one_row_a_fault(dataset: Dataset) -> None:
    """Each fault has its kind, the box, its evidence and what is suggested; scores fall."""
    found = dataset.object_issues()
    table = found.to_arrow()
    rows = {row["kind"]: row for row in table.to_pylist()}
    assert found.counts() == KINDS
    assert table["score"].to_pylist() == sorted(table["score"].to_pylist(), reverse=True)
    boxes = {kind: (row["path"], row["label"], row["box"]) for kind, row in rows.items()}
    assert boxes["wrong_class"] == ("0.png", "dog", [100, 10, 40, 40])
    assert boxes["placement"] == ("1.png", "cat", [40, 60, 40, 40])
    assert boxes["spurious"] == ("1.png", "dog", [120, 20, 30, 60])
    assert boxes["missing"] == ("1.png", None, None)
    assert boxes["duplicate"][:2] == ("0.png", "cat")
    suggested = {kind: (row["suggested_label"], row["suggested_box"]) for kind, row in rows.items()}
    assert suggested == {
        "wrong_class": ("cat", [100, 11, 40, 40]),
        "placement": ("cat", [10, 60, 40, 40]),
        "missing": ("cat", [100, 90, 50, 25]),
        "duplicate": (None, None),
        "spurious": (None, None),
    }
    evidence = rows["duplicate"]["evidence_id"]
    assert evidence != rows["duplicate"]["object_id"]
    assert dataset.objects.select([evidence]).to_arrow(["labels"])["labels"].to_pylist() == [["cat"]]
    assert rows["spurious"]["evidence_id"] is None
    assert list(found.view("missing").ids) == [rows["missing"]["evidence_id"]]
    assert len(found.view(limit=2).ids) == 2
    assert found.to_arrow("placement").num_rows == 1
    assert "5 faults of boxes: 1 missing, 1 spurious" in repr(found)
    assert "dog → cat" in found._repr_html_()


def test_object_issues__refuses(dataset: Dataset) -> None:
    """Without predictions, or with a kind that does not exist, an error says what is right."""
    with pytest.raises(InvalidInput, match="found by predictions, and there are none; detect objects by"):
        dataset.object_issues("csv", dataset.objects.limit(0))
    with pytest.raises(InvalidInput, match="boxes in common"):
        dataset.object_issues("csv", "csv")
    with pytest.raises(InvalidInput, match="faults of boxes are missing, spurious"):
        dataset.object_issues().view("wrong")


def test_object_issues__by_command_and_client(dataset: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line, the service and a client have the same rows."""
    root, own = layout_of(dataset).root, dataset.object_issues()
    with pytest.raises(SystemExit):
        main(["object-issues", "pets", "-w", str(root), "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert (shown["rows"], shown["counts"]) == (own.to_arrow().to_pylist(), KINDS)
    with pytest.raises(SystemExit):
        main(["object-issues", "pets", "-w", str(root), "--kind", "placement"])
    out = capsys.readouterr().out
    assert "1.png" in out
    assert "wrong_class " not in out
    with (
        Workspace(root, settings=SETTINGS) as opened,
        Hub(opened) as hub,
        client_of(opened, hub, ServiceSettings()) as served,
        Client(BASE, transport=served._transport) as client,
    ):
        url = f"/api/v1/dataset/{dataset.id}/objects/issues"
        page = served.get(url, params={"kind": "missing"}).json()
        assert (page["rows"], page["total"]) == (own.to_arrow("missing").to_pylist(), 1)
        assert page["counts"] == KINDS
        assert served.get(url, params={"limit": 501}).status_code == 422
        assert served.get(url, params={"kind": "wrong"}).status_code == 422
        remote = client.dataset("pets").object_issues()
        assert remote.to_arrow() == own.to_arrow()
        assert list(remote.view("spurious").ids) == list(own.view("spurious").ids)
