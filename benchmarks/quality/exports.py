"""Exports in the loaders of other tools and in trainings, each tool in an environment of its own.

Two annotated folders (YOLO and VOC) and a COCO file with outlines, masks, key points and captions, made from the first,
are read, exported in COCO, VOC and YOLO, and opened by pycocotools, torchvision, Ultralytics, datumaro (by which CVAT
imports) and FiftyOne's importers. Ids, names, order and numbers are compared with the sources. A detector of
Ultralytics and one of torchvision are trained on an export for 200 steps: no warning, and a loss that falls.
"""

import json
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import parents  # noqa: F401 - puts common on the path

from common import arguments, environment, require, run_worker, save, table
from framedex import Dataset, Workspace
from framedex.annotations.class_names import read_class_names

SPLIT = {"train": 0.8, "val": 0.2}
_SCRIPT = Path(__file__).resolve().parent / "exports_workers.py"
TOOLS = ("pycocotools", "torchvision", "ultralytics", "datumaro", "fiftyone")
_EDGES = ("xmin", "ymin", "xmax", "ymax")


class Checks:
    """The results of comparisons.

    Attributes:
        rows: source, tool, subject, value of the source, value that the tool read, and whether they are equal.
    """

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, Any, Any, bool]] = []

    def add(self, source: str, tool: str, subject: str, expected: Any, found: Any) -> None:
        """Compare what a tool read with the source."""
        plain = json.loads(json.dumps(found))
        self.rows.append((source, tool, subject, expected, found, plain == json.loads(json.dumps(expected))))

    def print(self) -> None:
        """Print a line for each comparison."""
        rows = [
            (source, tool, what, _short(found), "yes" if ok else "NO") for source, tool, what, _, found, ok in self.rows
        ]
        print(table(["source", "tool", "subject", "read", "as in the source"], rows))


def main() -> None:
    """Compare, print and write; the exit status is 1 if something differs."""
    options = arguments(__doc__).parse_args()
    folder = require(options.data, "annotated")
    pythons = {name: environment(options.peers, name) for name in TOOLS}
    checks = Checks()
    with tempfile.TemporaryDirectory(prefix="bench-exports-") as work:
        made = make_coco(folder / "coco-yolo", Path(work) / "coco")
        sources = {"coco-yolo": folder / "coco-yolo", "raccoon-voc": folder / "raccoon-voc", "coco": made}
        with Workspace(Path(work) / "workspace") as workspace:
            for name, source in sources.items():
                dataset = workspace.create_dataset(name, source, encoder="gist")
                compare(checks, name, source, dataset, Path(work) / "out" / name, pythons)
                compare_importers(checks, name, source, dataset, Path(work) / "importers" / name, pythons)
                if name == "coco-yolo":
                    train(checks, name, dataset, Path(work) / "trained", pythons)
    checks.print()
    wrong = [row for row in checks.rows if not row[-1]]
    for source, tool, subject, expected, found, _ in wrong:
        print(f"\n{source}, {tool}, {subject}: expected {_short(expected, 400)}, read {_short(found, 400)}")
    names = ("source", "tool", "subject", "expected", "found", "equal")
    save("exports_in_loaders", {"checks": [dict(zip(names, row, strict=True)) for row in checks.rows]})
    print(f"{len(checks.rows) - len(wrong)} of {len(checks.rows)} comparisons are equal")
    sys.exit(1 if wrong else 0)


def compare(checks: Checks, name: str, source: Path, dataset: Dataset, out: Path, pythons: dict[str, Path]) -> None:
    """Export a dataset and compare what the tools read with its source."""
    classes, objects = _classes(name, source), dataset.objects.count()
    read = _run(pythons["pycocotools"], "pycocotools", _unpacked(dataset, out / "coco", "coco"))
    checks.add(name, "pycocotools", "ids and names of classes", sorted(classes), sorted(read["categories"]))
    checks.add(name, "pycocotools", "annotations", objects, read["annotations"])
    checks.add(name, "pycocotools", "AP of the same boxes", 1.0, round(read["AP"], 6))
    if name == "coco":
        content = json.loads((source / "annotations.json").read_text())
        ids = {f"images/{each['file_name']}": each["id"] for each in content["images"]}
        checks.add(name, "pycocotools", "ids of images", ids, read["images"])
        for key, expected in _expected_shapes(content).items():
            checks.add(name, "pycocotools", key, expected, read[key])
        of_source = _run(pythons["pycocotools"], "pycocotools", source)
        checks.add(name, "pycocotools", "areas of outlines and masks", of_source["mask areas"], read["mask areas"])
        captions = json.loads((source / "captions.json").read_text())["annotations"]
        checks.add(name, "pycocotools", "captions", len(captions), read["captions"])
    read = _run(pythons["torchvision"], "torchvision_coco", out / "coco")
    checks.add(name, "torchvision", "COCO: images", dataset.count(), read["images"])
    checks.add(name, "torchvision", "COCO: boxes", objects, read["boxes"])
    read = _run(pythons["torchvision"], "torchvision_voc", _unpacked(dataset, out / "voc", "voc", split=SPLIT))
    checks.add(name, "torchvision", "VOC: images", dataset.count(), sum(read["parts"].values()))
    checks.add(name, "torchvision", "VOC: boxes", objects, sum(map(len, read["boxes"].values())))
    if name == "raccoon-voc":
        checks.add(name, "torchvision", "VOC: the same numbers", _voc_edges(source), read["boxes"])
    names = [label for _, label in classes]
    for folder, options in (("yolo", {}), ("yolo-split", {"split": SPLIT}), ("yolo-outlines", {"outlines": True})):
        read = _run(pythons["ultralytics"], "ultralytics", _unpacked(dataset, out / folder, "yolo", **options))
        checks.add(
            name, "Ultralytics", f"{folder}: names", {str(n): each for n, each in enumerate(names)}, read["names"]
        )
        parts = read["parts"] if "split" in options else {"train": read["parts"]["train"]}
        images, boxes = (sum(each[key] for each in parts.values()) for key in ("images", "boxes"))
        checks.add(name, "Ultralytics", f"{folder}: images", dataset.count(), images)
        checks.add(name, "Ultralytics", f"{folder}: boxes", objects, boxes)
        if "outlines" in options:
            checks.add(name, "Ultralytics", f"{folder}: outlines", objects, parts["train"]["outlines"])


def compare_importers(
    checks: Checks, name: str, source: Path, dataset: Dataset, out: Path, pythons: dict[str, Path]
) -> None:
    """Export a dataset and compare images and boxes of each class with those that importers read."""
    expected = dict(Counter(dataset.objects.to_arrow(["label"])["label"].to_pylist()))
    for format_ in ("coco", "voc", "yolo"):
        options = {"split": SPLIT} if format_ == "voc" else {}  # VOC data sets have lists of their parts
        for tool in ("datumaro", "fiftyone"):
            folder = _unpacked(dataset, out / f"{tool}-{format_}", format_, **options)
            read = _run(pythons[tool], f"{tool}_{format_}", folder)
            if (tool, format_) == ("datumaro", "coco"):  # it takes the id 0 for the background; the export says so
                names = dict(_classes(name, source))
                read["boxes"] = {names.get(0, "") if key == "no class" else key: n for key, n in read["boxes"].items()}
            checks.add(name, tool, f"{format_}: images", dataset.count(), read["images"])
            checks.add(name, tool, f"{format_}: boxes of each class", expected, read["boxes"])


def train(checks: Checks, name: str, dataset: Dataset, out: Path, pythons: dict[str, Path]) -> None:
    """Train a detector of Ultralytics and one of torchvision on an export."""
    for tool, task, format_ in (
        ("ultralytics", "train_ultralytics", "yolo"),
        ("torchvision", "train_ssdlite", "coco"),
    ):
        read = _run(pythons[tool], task, _unpacked(dataset, out / tool, format_))
        for key, expected in {"enough steps": True, "the loss falls": True, "warnings": []}.items():
            checks.add(name, tool, f"training: {key}", expected, read[key])


def make_coco(source: Path, folder: Path) -> Path:
    """Make a COCO folder from a YOLO folder: sparse ids, outlines, masks, key points and several captions."""
    with tempfile.TemporaryDirectory(prefix="bench-exports-") as work, Workspace(work) as workspace:
        dataset = workspace.create_dataset("d", source, encoder="gist")
        dataset.export(Path(work) / "out.json", "coco")
        content: dict[str, Any] = json.loads((Path(work) / "out.json").read_text())
    folder.mkdir(parents=True)
    new = {each["id"]: 3 * each["id"] + 7 for each in content["categories"]}
    images = {each["id"]: {**each, "id": int(Path(each["file_name"]).stem)} for each in content["images"]}
    for each in images.values():
        name = Path(each["file_name"]).name
        (folder / name).symlink_to((source / each["file_name"]).resolve())
        each["file_name"] = name
        del each["media_id"], each["labels"]
    for category in content["categories"]:
        category |= {"id": new[category["id"]], "keypoints": ["head", "hand", "foot"], "skeleton": [[1, 2], [1, 3]]}
        category["supercategory"] = "animal" if category["name"] in ("cat", "dog", "horse", "zebra") else "thing"
    for number, each in enumerate(content["annotations"]):
        image = images[each["image_id"]]
        each |= {
            "image_id": image["id"],
            "category_id": new[each["category_id"]],
            **_shape(number, each["bbox"], image),
        }
    whole = {**content, "images": list(images.values())}
    (folder / "annotations.json").write_text(json.dumps(whole))
    texts = [
        {"id": 5 * number + turn + 1, "image_id": each["id"], "caption": f"caption {turn} of {each['file_name']}"}
        for number, each in enumerate(images.values())
        for turn in range(5)
    ]
    (folder / "captions.json").write_text(json.dumps({"images": whole["images"], "annotations": texts}))
    return folder


def _shape(number: int, bbox: list[float], image: dict[str, Any]) -> dict[str, Any]:
    """Return a shape in a box: a triangle, a mask, key points or nothing, in turn."""
    x, y, width, height = bbox
    match number % 4:
        case 0:
            corners = [x, y, x + width, y, x + width, y + height]
            return {"segmentation": [corners], "area": width * height / 2}
        case 1:
            rows, columns = image["height"], image["width"]
            before = int(x) * rows + int(y)
            length = max(min(int(height), rows - int(y)), 1)
            counts = [before, length, rows * columns - before - length]
            return {"segmentation": {"size": [rows, columns], "counts": counts}, "area": length, "iscrowd": 1}
        case 2:
            return {"segmentation": [], "keypoints": [int(x), int(y), 2, int(x + width), int(y), 1, 0, 0, 0]}
        case _:
            return {"segmentation": []}


def _expected_shapes(content: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of crowds, classes of animals and visible key points of a COCO file."""
    annotations = content["annotations"]
    return {
        "crowds": sum(each.get("iscrowd", 0) for each in annotations),
        "animals": sum(each["supercategory"] == "animal" for each in content["categories"]),
        "key points": 2 * sum("keypoints" in each for each in annotations),
    }


def _classes(name: str, source: Path) -> list[tuple[int, str]]:
    """Return (id, name) of the classes of a source, in its order."""
    if name == "coco":
        return [
            (each["id"], each["name"]) for each in json.loads((source / "annotations.json").read_text())["categories"]
        ]
    if name == "raccoon-voc":  # without a class list: labels in alphabetical order, from 1
        labels = {each.findtext("name") or "" for root in _voc_files(source) for each in root.findall("object")}
        return list(enumerate(sorted(labels), 1))
    return sorted((read_class_names(source / "config.yaml") or {}).items())


def _voc_files(source: Path) -> Iterator[ElementTree.Element]:
    for path in sorted(source.rglob("*.xml")):
        yield ElementTree.parse(path).getroot()


def _voc_edges(source: Path) -> dict[str, list[list[str]]]:
    """Return the edges of all boxes of VOC files, as they are written, by image."""
    return {
        root.findtext("filename") or "": [
            [each.findtext(f"bndbox/{edge}") or "" for edge in _EDGES] for each in root.findall("object")
        ]
        for root in _voc_files(source)
    }


def _unpacked(dataset: Dataset, folder: Path, format_: str, **options: Any) -> Path:
    """Return the folder of an unpacked export with images."""
    folder.mkdir(parents=True)
    path = folder.with_suffix(".zip")
    print(f"{dataset.name}, {folder.name}: {dataset.export(path, format_, True, **options).message}")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder


def _run(python: Path, task: str, folder: Path) -> dict[str, Any]:
    return run_worker(python, task, folder, script=_SCRIPT).result


def _short(value: Any, length: int = 40) -> str:
    text = str(value)
    return text if len(text) <= length else f"{text[:length]}…"


if __name__ == "__main__":
    main()
