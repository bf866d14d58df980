"""Import and export of annotations by one tool: ``python formats_workers.py TOOL:TASK:FORMAT FOLDER ANSWER``.

FOLDER has a folder of the same data for each format, and what earlier tasks of the tool left in ``work``. A worker runs
in the environment of its tool and answers seconds, and the numbers of images and boxes that it has read, or the bytes
that it has written.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
_SIZE = (160, 120)
_NAME = "bench"


class Clock:
    """Seconds of the parts of a task that are measured.

    Attributes:
        seconds: so far, by the clock.
        processor_s: seconds of processor time so far.
    """

    def __init__(self) -> None:
        self.seconds = self.processor_s = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measure a part."""
        started, used = time.perf_counter(), time.process_time()
        try:
            yield
        finally:
            self.seconds += time.perf_counter() - started
            self.processor_s += time.process_time() - used


# Framedex


def framedex_make(folder: Path, option: str, clock: Clock) -> Answer:
    """Make the data of a format: ``FORMAT=IMAGES``."""
    sys.path.append(str(Path(__file__).resolve().parent))
    from formats_inputs import FORMATS, box_count

    name, _, images = option.partition("=")
    with clock.running():
        FORMATS[name](folder / name, int(images))
    return {"images": int(images), "boxes": box_count(int(images))}


def framedex_read(folder: Path, option: str, clock: Clock) -> Answer:
    """Read a folder as a creation does, all but the pixels: list its images, read its files, find what each image has.

    The size of each image is given, as the creation has it from the header.
    """
    from framedex.annotations.sources import read_box_index
    from framedex.jobs.ingest.content import FilesInput, open_content
    from framedex.settings import Settings

    images = boxes = 0
    with clock.running():
        content = open_content(str(folder / option), "gist", Settings())
        assert isinstance(content, FilesInput), "it is a folder of images"
        index = read_box_index(content.boxes)
        source, annotations = content.source, content.annotations
        annotations.find_images(lambda: (item.path for item in source.items()))
        index.find_images(lambda: (item.path for item in source.items()))
        for item in source.items():
            annotations.find(item.path)
            boxes += len(index.find(item.path, _SIZE))
            images += 1
    return {"images": images, "boxes": boxes}


class _Colours:
    """An encoder of the colours of four quarters, which costs nothing: exports of annotations read no embedding."""

    name, dimension, min_side_px = "colours", 12, 4
    thresholds = (0.0001, 0.001, 0.01, 0.1, 0.3)

    def prepare(self, pixels: Any) -> Any:
        import cv2

        return cv2.resize(pixels, (2, 2), interpolation=cv2.INTER_AREA).reshape(-1).astype("float32") + 1

    def encode_images(self, batch: Any) -> Any:
        return batch / (batch**2).sum(axis=1, keepdims=True) ** 0.5


def framedex_store(folder: Path, option: str, clock: Clock) -> Answer:
    """Create the dataset that is exported, with its pixels, crops and index."""
    from framedex import Workspace

    with Workspace(folder / "work/framedex") as workspace, clock.running():
        dataset = workspace.create_dataset(_NAME, folder / option, _Colours())
        return {"images": dataset.count(), "boxes": dataset.objects.count()}


def framedex_write(folder: Path, option: str, clock: Clock) -> Answer:
    """Export annotations without images."""
    from framedex import Workspace

    target = folder / "work" / ("out.parquet" if option == "parquet" else "out.zip")
    with Workspace(folder / "work/framedex") as workspace:
        dataset = workspace.dataset(_NAME)
        dataset.count()  # loads the engines
        with clock.running():
            dataset.export(target, option)
    answer = {"bytes": target.stat().st_size}
    target.unlink()
    return answer


# Datumaro

_DATUMARO_IN = {"coco": "coco", "yolo": "yolo", "voc": "voc_detection", "cvat": "cvat"}
_DATUMARO_OUT = {"coco": "coco_instances", "yolo": "yolo_ultralytics", "voc": "voc_detection"}


def _datumaro(folder: Path, name: str) -> Any:
    import datumaro  # type: ignore[import-not-found, unused-ignore]

    return datumaro.Dataset.import_from(str(folder / name), _DATUMARO_IN[name])


def datumaro_read(folder: Path, option: str, clock: Clock) -> Answer:
    """Read a folder into objects in memory."""
    import datumaro  # noqa: F401 - its import is not measured

    images = boxes = 0
    with clock.running():
        for item in _datumaro(folder, option):
            images += 1
            boxes += len(item.annotations)
    return {"images": images, "boxes": boxes}


def datumaro_write(folder: Path, option: str, clock: Clock) -> Answer:
    """Export annotations without images, from objects in memory, which were read from COCO."""
    import datumaro

    dataset = _datumaro(folder, "coco")
    dataset.init_cache()
    if option == "yolo":  # which needs both parts
        dataset.put(datumaro.DatasetItem("none", subset="val", media=next(iter(dataset)).media))
    target = folder / "work/datumaro-out"
    with clock.running():
        dataset.export(str(target), _DATUMARO_OUT[option], save_media=False)
    size = _bytes_below(target)
    shutil.rmtree(target)
    return {"bytes": size}


# FiftyOne: its readers and writers without its database, so less than its imports and exports do

_NO_SERVER = {"FIFTYONE_DATABASE_URI": "mongodb://127.0.0.1:9", "FIFTYONE_DO_NOT_TRACK": "true"}


def _fiftyone(folder: Path, name: str) -> Any:
    """Return the reader of a folder, which yields samples, or triples of path, metadata and labels."""
    os.environ.update(_NO_SERVER)
    from fiftyone.utils import coco, cvat, voc, yolo  # type: ignore[import-not-found, unused-ignore]
    from fiftyone.utils.data.importers import (  # type: ignore[import-not-found, unused-ignore]
        LegacyFiftyOneDatasetImporter,
    )

    place = folder / name

    def paths(images: str, labels: str) -> dict[str, str]:
        return {"data_path": str(place / images), "labels_path": str(place / labels)}

    match name:
        case "coco":
            files = paths("images/train", "annotations/instances_train.json")
            return coco.COCODetectionDatasetImporter(**files, label_types="detections")
        case "yolo":
            return yolo.YOLOv5DatasetImporter(str(place), yaml_path=str(place / "data.yaml"), split="train")
        case "voc":
            return voc.VOCDetectionDatasetImporter(**paths("JPEGImages", "Annotations"))
        case "cvat":
            return cvat.CVATImageDatasetImporter(**paths("images", "annotations.xml"))
    return LegacyFiftyOneDatasetImporter(str(place))


def _detections(sample: Any) -> Any:
    labels = sample[2] if isinstance(sample, tuple) else sample["ground_truth"]
    return labels["detections"] if isinstance(labels, dict) else labels


def fiftyone_read(folder: Path, option: str, clock: Clock) -> Answer:
    """Read a folder into objects in memory, which are kept as datumaro keeps its own."""
    reader = _fiftyone(folder, option)
    with clock.running(), reader:
        samples = list(reader)
    return {"images": len(samples), "boxes": sum(len(_detections(each).detections) for each in samples)}


def fiftyone_write(folder: Path, option: str, clock: Clock) -> Answer:
    """Export annotations without images, from objects in memory, which were read from COCO."""
    with _fiftyone(folder, "coco") as reader:
        samples = list(reader)
        classes = list(reader.get_dataset_info()["classes"])
    from fiftyone.utils import coco, voc, yolo

    target = folder / "work/fiftyone-out"
    writers: dict[str, Callable[[], Any]] = {
        "coco": lambda: coco.COCODetectionDatasetExporter(
            labels_path=str(target / "labels.json"), export_media=False, classes=classes
        ),
        "yolo": lambda: yolo.YOLOv5DatasetExporter(str(target), export_media=False, classes=classes),
        "voc": lambda: voc.VOCDetectionDatasetExporter(str(target), export_media=False),
    }
    with clock.running(), writers[option]() as writer:
        for path, metadata, labels in samples:
            writer.export_sample(path, _detections((path, metadata, labels)), metadata=metadata)
    size = _bytes_below(target)
    shutil.rmtree(target)
    return {"bytes": size}


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


TASKS: dict[str, Callable[[Path, str, Clock], Answer]] = {
    "framedex:make": framedex_make,
    "framedex:read": framedex_read,
    "framedex:store": framedex_store,
    "framedex:write": framedex_write,
    "datumaro:read": datumaro_read,
    "datumaro:write": datumaro_write,
    "fiftyone:read": fiftyone_read,
    "fiftyone:write": fiftyone_write,
}


def main() -> None:
    """Run the task that the command line names."""
    task, _, option = sys.argv[1].rpartition(":")
    clock = Clock()
    answer = TASKS[task](Path(sys.argv[2]), option, clock)
    Path(sys.argv[3]).write_text(
        json.dumps({"seconds": clock.seconds, "processor_s": clock.processor_s, **answer}), "utf-8"
    )


if __name__ == "__main__":
    main()
