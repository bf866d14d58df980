"""The evaluation of detections: which boxes are compared, what is found, and how it is shown."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Client, Dataset, InvalidInput, Workspace, vql
from framedex.cli import main
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.gallery import SETTINGS
from tests.image_files import photo, write
from tests.inside import layout_of
from tests.service.client import BASE, client_of

TRUTH = [("0.png", "cat", [10, 10, 40, 40]), ("0.png", "dog", [80, 60, 40, 40]), ("1.png", "cat", [20, 20, 50, 50])]
FOUND = [("cat", [12, 12, 40, 40], 0.9), ("cat", [82, 62, 40, 40], 0.8), ("bird", [0, 90, 20, 20], 0.7)]
"""Of the first image."""


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Two images with three true boxes and three predictions: one right, one of another label, one of nothing."""
    folder = tmp_path_factory.mktemp("evaluate")
    for seed in range(2):
        write(folder / "images" / f"{seed}.png", photo(seed))
    rows = ["filename,col_x,row_y,width,height,label"]
    rows += [f"{name},{','.join(map(str, box))},{label}" for name, label, box in TRUTH]
    (folder / "object_annotations.csv").write_text("\n".join(rows))
    names = ["cat", "bird"]
    content = {
        "images": [{"id": 0, "file_name": "0.png"}],
        "categories": [{"id": number, "name": name} for number, name in enumerate(names)],
        "annotations": [
            {"id": number, "image_id": 0, "category_id": names.index(label), "bbox": box, "score": score}
            for number, (label, box, score) in enumerate(FOUND)
        ],
    }
    (folder / "found.json").write_text(json.dumps(content))
    with Workspace(folder / "ws", settings=SETTINGS) as workspace:
        made = workspace.create_dataset("pets", folder / "images", boxes=folder / "object_annotations.csv")
        made.add_objects([folder / "found.json"])
        yield made


def test_evaluate__by_label(dataset: Dataset) -> None:
    """Numbers by label, confusions and views of the boxes are those that a person counts."""
    found = dataset.evaluate()
    rows = {row["label"]: row for row in found.to_arrow().to_pylist()}
    assert {label: (row["n_truth"], row["n_predictions"], row["n_right"]) for label, row in rows.items()} == {
        "bird": (0, 1, 0), "cat": (2, 2, 1), "dog": (1, 0, 0)
    }  # fmt: skip
    assert rows["cat"]["average_precision"] == pytest.approx(51 / 101)
    assert [found.precision, found.recall] == pytest.approx([1 / 3, 1 / 3])
    assert found.mean_average_precision == pytest.approx(51 / 202)
    assert found.confusions().to_pylist() == [{"label": "dog", "predicted": "cat", "count": 1}]
    assert found.missing.to_arrow(["label"])["label"].to_pylist() == ["dog", "cat"]
    assert found.extra.to_arrow(["label"])["label"].to_pylist() == ["cat", "bird"]
    assert found.view("confused").to_arrow(["label"])["label"].to_pylist() == ["dog"]
    assert found.view("confused_predictions").to_arrow(["label"])["label"].to_pylist() == ["cat"]
    assert "precision 0.333, recall 0.333, mean average precision 0.252 of 3 labels at IoU 0.5" in repr(found)
    assert "most frequent confusions" in found._repr_html_()
    assert found.to_pandas()["label"].tolist() == ["bird", "cat", "dog"]


@pytest.mark.slow
@pytest.mark.only_soak
def test_evaluate__predictions_with_the_sides_of_true_boxes(tmp_path: Path) -> None:
    """A prediction that equals a true box is an object of its own, and right; added again, it is skipped."""
    write(tmp_path / "images" / "0.png", photo(0))
    annotation = {"id": 0, "image_id": 0, "category_id": 0, "bbox": [10, 10, 40, 40]}
    content = {"images": [{"id": 0, "file_name": "0.png"}], "categories": [{"id": 0, "name": "cat"}]}
    for name, more in {"true": {}, "found": {"score": 0.9}}.items():
        text = json.dumps({**content, "annotations": [{**annotation, **more}]})
        (tmp_path / f"{name}.json").write_text(text)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        made = workspace.create_dataset("pets", tmp_path / "images", boxes=tmp_path / "true.json")
        for _ in range(2):
            made.add_objects([tmp_path / "found.json"])
            made.add_objects([tmp_path / "true.json"])
        assert made.objects.to_arrow(["confidence"])["confidence"].to_pylist() == [None, pytest.approx(0.9)]
        assert (made.evaluate().precision, made.evaluate().recall) == (1.0, 1.0)


def test_evaluate__of_chosen_boxes(dataset: Dataset) -> None:
    """Truth and predictions are sources, filters or views; another IoU finds fewer; nothing is no error."""
    objects = dataset.objects
    by_source = dataset.evaluate("csv", "coco")
    assert repr(by_source.to_arrow().to_pylist()) == repr(dataset.evaluate().to_arrow().to_pylist())  # NaN is not NaN
    sure = objects.where(vql.confidence("ge", 0.75))
    assert dataset.evaluate(objects.where(vql.source("csv")), sure).to_arrow()["n_predictions"].to_pylist() == [2, 0]
    assert dataset.evaluate("csv", vql.confidence("ge", 0.75)).precision == 0.5
    assert dataset.evaluate(iou=0.95).recall == 0
    assert len(dataset.evaluate(sure.limit(0), sure.limit(0))) == 0
    with pytest.raises(InvalidInput, match="boxes in common"):
        dataset.evaluate("csv", objects)
    with pytest.raises(InvalidInput, match="of the source 'yolox', which predictions names; there are: annotated"):
        dataset.evaluate(predictions="yolox")
    with pytest.raises(InvalidInput, match="iou must be a number above 0"):
        dataset.evaluate(iou=0)
    with pytest.raises(InvalidInput, match="truth must be a view of objects"):
        dataset.evaluate(dataset.view)
    with pytest.raises(InvalidInput, match="boxes are missing, extra"):
        dataset.evaluate().view("right")  # type: ignore[arg-type] # checked


def test_evaluate__without_objects(dataset: Dataset, tmp_path: Path) -> None:
    """A dataset without objects has an empty evaluation."""
    write(tmp_path / "images" / "0.png", photo(0))
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        found = workspace.create_dataset("none", tmp_path / "images").evaluate()
        assert (len(found), len(found.missing), len(found.extra), found.confusions().num_rows) == (0, 0, 0, 0)
        assert repr(found).endswith("precision nan, recall nan, mean average precision nan of 0 labels at IoU 0.5>")


def test_evaluate__by_command_and_client(dataset: Dataset, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line and a client find the same."""
    root, own = layout_of(dataset).root, dataset.evaluate()
    with pytest.raises(SystemExit):
        main(["evaluate", "pets", "-w", str(root), "--json"])
    shown = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in shown["labels"]] == ["bird", "cat", "dog"]
    assert (shown["recall"], shown["confusions"]) == (pytest.approx(1 / 3), own.confusions().to_pylist())
    with pytest.raises(SystemExit):
        main(["evaluate", "pets", "-w", str(root), "--truth", "csv"])
    assert "precision 0.333, recall 0.333" in capsys.readouterr().out
    with (
        Workspace(root, settings=SETTINGS) as opened,
        Hub(opened) as hub,
        client_of(opened, hub, ServiceSettings()) as served,
        Client(BASE, transport=served._transport) as client,
    ):
        remote = client.dataset("pets").evaluate("csv", "coco")
        assert repr(remote) == repr(own)
        assert remote.confusions() == own.confusions()
        assert list(remote.missing.ids) == list(own.missing.ids)
        assert list(remote.extra.ids) == list(own.extra.ids)
        with pytest.raises(InvalidInput, match="annotated, detected or a source"):
            client.dataset("pets").evaluate(dataset.objects)  # type: ignore[arg-type] # checked
