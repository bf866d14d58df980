"""What the loaders of other tools read from an export: ``python exports_workers.py TASK FOLDER ANSWER``.

Each task runs in the environment of its tool, so the tools are imported within the tasks.
"""

import json
import logging
import math
import os
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
_LIBRARIES: list[Any] = []


def pycocotools(folder: Path) -> Answer:
    """Read the COCO files with each part of the programming interface."""
    import matplotlib

    matplotlib.use("Agg")
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    coco = COCO(str(folder / "annotations.json"))
    coco.info()
    everything = coco.loadAnns(coco.getAnnIds(areaRng=[0, 1e9]))
    with_shape = [each for each in everything if each["segmentation"]]
    coco.showAnns(everything[:20], draw_bbox=True)
    by_supercategory = coco.getCatIds(supNms=["animal"])
    results = [
        {**{key: each[key] for key in ("image_id", "category_id", "bbox")}, "score": 0.9}
        for each in everything
        if not each["iscrowd"]
    ]
    evaluation = COCOeval(coco, coco.loadRes(results), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    captions = folder / "captions.json"
    texts = COCO(str(captions)) if captions.is_file() else None
    return {
        "images": {each["file_name"]: each["id"] for each in coco.loadImgs(coco.getImgIds())},
        "categories": [(each["id"], each["name"]) for each in coco.loadCats(coco.getCatIds())],
        "annotations": len(everything),
        "crowds": len(coco.getAnnIds(iscrowd=True)),
        "animals": len(by_supercategory),
        "mask areas": [float(coco.annToMask(each).sum()) for each in with_shape],
        "key points": sum(each.get("num_keypoints", 0) for each in everything),
        "AP": float(evaluation.stats[0]),
        "captions": 0 if texts is None else len(texts.loadAnns(texts.getAnnIds())),
    }


def declare_operators() -> None:
    """Declare torchvision's compiled operators where its build does not fit that of PyTorch; no data set needs them."""
    import torch

    try:
        import torchvision
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        library.impl("nms", _without_overlaps, "CPU")
        _LIBRARIES.append(library)
        for module in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[module]
        import torchvision.extension

        torchvision.extension._has_ops = lambda: True


def _without_overlaps(boxes: Any, scores: Any, iou_threshold: float) -> Any:
    """Return the boxes that no better one overlaps: the operator ``nms``, which validation calls once at the end."""
    import torch

    left, kept = torch.argsort(scores, descending=True), []
    while len(left):
        best, left = left[0], left[1:]
        kept.append(best)
        low, high = torch.maximum(boxes[best, :2], boxes[left, :2]), torch.minimum(boxes[best, 2:], boxes[left, 2:])
        both = (high - low).clamp(min=0).prod(dim=1)
        areas = [(each[..., 2:] - each[..., :2]).prod(dim=-1) for each in (boxes[best], boxes[left])]
        left = left[both <= iou_threshold * (areas[0] + areas[1] - both)]
    return torch.stack(kept) if kept else left


def torchvision_coco(folder: Path) -> Answer:
    """Read images with their annotations, plain and as tensors, and the captions."""
    declare_operators()
    from torchvision.datasets import CocoCaptions, CocoDetection, wrap_dataset_for_transforms_v2

    plain = CocoDetection(str(folder), str(folder / "annotations.json"))
    tensors = wrap_dataset_for_transforms_v2(plain, target_keys=("boxes", "labels", "image_id"))
    targets = [target for _, target in tensors]
    captions = folder / "captions.json"
    texts = CocoCaptions(str(folder), str(captions)) if captions.is_file() else []
    return {
        "images": len(plain),
        "boxes": sum(len(target.get("boxes", ())) for target in targets),
        "labels": sorted({int(each) for target in targets for each in target.get("labels", ())}),
        "captions": sum(len(lines) for _, lines in texts),
    }


def torchvision_voc(folder: Path) -> Answer:
    """Read the VOC files of each part, in the folders of the VOC data sets."""
    declare_operators()
    from torchvision.datasets import VOCDetection

    root = folder / "VOCdevkit" / "VOC2012"
    root.mkdir(parents=True)
    for name, target in {"JPEGImages": "images", "Annotations": "annotations", "ImageSets": "ImageSets"}.items():
        (root / name).symlink_to(folder / target)
    found: dict[str, list[list[str]]] = {}
    parts = {}
    for path in sorted((folder / "ImageSets" / "Main").iterdir()):
        targets = [target for _, target in VOCDetection(str(folder), "2012", path.stem)]
        parts[path.stem] = len(targets)
        for each in targets:
            boxes = [one["bndbox"] for one in each["annotation"]["object"]]
            found[each["annotation"]["filename"]] = [
                [box[edge] for edge in ("xmin", "ymin", "xmax", "ymax")] for box in boxes
            ]
    return {"parts": parts, "boxes": found}


def ultralytics(folder: Path) -> Answer:
    """Read the YOLO files of each part as its training does, from another working directory."""
    declare_operators()
    os.environ |= {"YOLO_CONFIG_DIR": str(Path.cwd()), "YOLO_AUTOINSTALL": "false", "YOLO_OFFLINE": "true"}
    from ultralytics.data.dataset import YOLODataset
    from ultralytics.data.utils import check_det_dataset

    data = check_det_dataset(str(folder / "data.yaml"), autodownload=False)
    parts = {}
    for part in ("train", "val"):
        dataset = YOLODataset(img_path=data[part], data=data, task="segment" if "outlines" in folder.name else "detect")
        parts[part] = {
            "images": len(dataset),
            "boxes": sum(len(each["bboxes"]) for each in dataset.labels),
            "outlines": sum(len(each["segments"]) for each in dataset.labels),
            "classes": sorted({int(each) for one in dataset.labels for each in one["cls"].ravel()}),
        }
    return {"names": {int(number): name for number, name in data["names"].items()}, "parts": parts}


def datumaro_coco(folder: Path) -> Answer:
    """Read a COCO export by datumaro, with which CVAT imports, in the folders of the COCO data sets."""
    (folder / "annotations").mkdir()
    place = folder / "annotations" / "instances_default.json"
    place.symlink_to(folder / "annotations.json")
    return _by_datumaro(place, "coco_instances")


def datumaro_voc(folder: Path) -> Answer:
    """Read a VOC export by datumaro, in the folders of the VOC data sets."""
    for name, target in {"JPEGImages": "images", "Annotations": "annotations"}.items():
        (folder / target).rename(folder / name)
    return _by_datumaro(folder, "voc_detection")


def datumaro_yolo(folder: Path) -> Answer:
    """Read a YOLO export by datumaro."""
    return _by_datumaro(folder, "yolo")


def _by_datumaro(path: Path, format_: str) -> Answer:
    import datumaro  # type: ignore[import-not-found, unused-ignore]

    dataset = datumaro.Dataset.import_from(str(path), format_)
    names = [each.name for each in dataset.categories()[datumaro.AnnotationType.label].items]
    boxes: Counter[str] = Counter()
    images = 0
    for item in dataset:
        images += 1
        # An outline or a mask is an annotation beside its box, in the same group.
        no_shapes = (datumaro.AnnotationType.label, datumaro.AnnotationType.caption)
        shapes = [each for each in item.annotations if each.type not in no_shapes]
        seen = {(each.group or -number, each.label) for number, each in enumerate(shapes, 1)}
        boxes.update("no class" if label is None else names[label] for _, label in seen)
    return {"images": images, "boxes": dict(boxes)}


def fiftyone_coco(folder: Path) -> Answer:
    """Read a COCO export by FiftyOne's importer, without its database."""
    _without_server()
    from fiftyone.utils import coco  # type: ignore[import-not-found, unused-ignore]

    files = {"data_path": str(folder), "labels_path": str(folder / "annotations.json")}
    return _by_fiftyone(coco.COCODetectionDatasetImporter(**files, label_types="detections"))


def fiftyone_voc(folder: Path) -> Answer:
    """Read a VOC export by FiftyOne's importer, without its database."""
    _without_server()
    from fiftyone.utils import voc  # type: ignore[import-not-found, unused-ignore]

    files = {"data_path": str(folder / "images"), "labels_path": str(folder / "annotations")}
    return _by_fiftyone(voc.VOCDetectionDatasetImporter(**files))


def fiftyone_yolo(folder: Path) -> Answer:
    """Read a YOLO export by FiftyOne's importer, without its database."""
    _without_server()
    from fiftyone.utils import yolo  # type: ignore[import-not-found, unused-ignore]

    return _by_fiftyone(yolo.YOLOv5DatasetImporter(str(folder), yaml_path=str(folder / "data.yaml"), split="train"))


def _without_server() -> None:
    os.environ.update({"FIFTYONE_DATABASE_URI": "mongodb://127.0.0.1:9", "FIFTYONE_DO_NOT_TRACK": "true"})


def _by_fiftyone(reader: Any) -> Answer:
    boxes: Counter[str] = Counter()
    images = 0
    with reader:
        for _, _, labels in reader:
            images += 1
            found = labels.get("detections") if isinstance(labels, dict) else labels
            boxes.update(each.label for each in (found.detections if found else ()))
    return {"images": images, "boxes": dict(boxes)}


class _Warnings(logging.Handler):
    """The texts that a library logs as warnings or worse, or that name themselves so."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.levelno >= logging.WARNING or "warning" in text.casefold():
            self.texts.append(text)


def train_ultralytics(folder: Path) -> Answer:
    """Train YOLO11 nano from random weights on a YOLO export: :data:`STEPS` steps of eight images."""
    declare_operators()
    os.environ |= {"YOLO_CONFIG_DIR": str(Path.cwd()), "YOLO_AUTOINSTALL": "false", "YOLO_OFFLINE": "true"}
    from ultralytics import YOLO  # type: ignore[import-not-found, unused-ignore]
    from ultralytics.utils import LOGGER  # type: ignore[import-not-found, unused-ignore]

    heard = _Warnings()
    LOGGER.addHandler(heard)
    losses: list[float] = []
    model = YOLO("yolo11n.yaml")
    model.add_callback("on_train_batch_end", lambda trainer: losses.append(float(trainer.loss.detach().sum())))
    images = len([each for each in (folder / "images").rglob("*") if each.is_file()])
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        model.train(
            data=str(folder / "data.yaml"), epochs=-(-STEPS // (images // 8)), batch=8, imgsz=160, workers=0,
            device="cpu", amp=False, val=False, plots=False, save=False, warmup_epochs=0, optimizer="AdamW", lr0=1e-3,
            project=str(Path.cwd()), deterministic=True, seed=0, mosaic=0.0,
        )  # fmt: skip
    return _training(losses, [*heard.texts, *_texts(others)])


def train_ssdlite(folder: Path) -> Answer:
    """Train torchvision's SSDlite from random weights on a COCO export: :data:`STEPS` steps of four images."""
    declare_operators()
    import torch
    from torchvision.datasets import CocoDetection, wrap_dataset_for_transforms_v2
    from torchvision.models.detection import ssdlite320_mobilenet_v3_large
    from torchvision.transforms.v2.functional import to_dtype, to_image

    torch.manual_seed(0)
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        plain = CocoDetection(str(folder), str(folder / "annotations.json"))
        wrapped = wrap_dataset_for_transforms_v2(plain, target_keys=("boxes", "labels"))
        pairs = []
        for image, target in wrapped:
            boxes = target.get("boxes")
            pairs.append(
                (
                    to_dtype(to_image(image), torch.float32, scale=True),
                    {
                        "boxes": torch.zeros((0, 4)) if boxes is None else boxes.as_subclass(torch.Tensor),
                        "labels": torch.zeros(0, dtype=torch.int64) if boxes is None else target["labels"],
                    },
                )
            )
        classes = 1 + max(plain.coco.getCatIds())
        model = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=classes).train()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        losses = []
        for step in range(STEPS):
            batch = [pairs[(4 * step + place) % len(pairs)] for place in range(4)]
            loss = sum(model([image for image, _ in batch], [target for _, target in batch]).values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
    return _training(losses, _texts(others))


def _training(losses: list[float], texts: list[str]) -> Answer:
    """Return the number of steps, whether the loss is finite and falls, and the distinct warnings."""
    quarter = len(losses) // 4
    falls = all(map(math.isfinite, losses)) and sum(losses[-quarter:]) < sum(losses[:quarter])
    return {"enough steps": len(losses) >= STEPS, "the loss falls": falls, "warnings": sorted(set(texts))}


def _texts(found: list[warnings.WarningMessage]) -> list[str]:
    return [str(each.message) for each in found]


STEPS = 200
"""Steps of each training."""
TASKS: dict[str, Callable[[Path], Answer]] = {
    each.__name__: each
    for each in (
        pycocotools,
        torchvision_coco,
        torchvision_voc,
        ultralytics,
        datumaro_coco,
        datumaro_voc,
        datumaro_yolo,
        fiftyone_coco,
        fiftyone_voc,
        fiftyone_yolo,
        train_ultralytics,
        train_ssdlite,
    )
}


def main() -> None:
    """Run a task and write its answer."""
    task, folder, answer = sys.argv[1:]
    started = time.perf_counter()
    found = TASKS[task](Path(folder))
    Path(answer).write_text(json.dumps({**found, "seconds": time.perf_counter() - started}), "utf-8")


if __name__ == "__main__":
    main()
