"""What the loaders of other tools read from an export: ``python exports_workers.py TASK FOLDER ANSWER``.

Each task runs in the environment of its tool, so the tools are imported within the tasks.
"""

import json
import os
import sys
import time
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
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _LIBRARIES.append(library)
        for module in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[module]


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


TASKS: dict[str, Callable[[Path], Answer]] = {
    each.__name__: each for each in (pycocotools, torchvision_coco, torchvision_voc, ultralytics)
}


def main() -> None:
    """Run a task and write its answer."""
    task, folder, answer = sys.argv[1:]
    started = time.perf_counter()
    found = TASKS[task](Path(folder))
    Path(answer).write_text(json.dumps({**found, "seconds": time.perf_counter() - started}), "utf-8")


if __name__ == "__main__":
    main()
