"""Generated data sets of images with bounding boxes, in the layouts of several formats.

Numbers are those of COCO 2017: 118,000 images with 860,000 boxes of 80 classes, in proportion for fewer images. Images
are hard links to a few small JPEG files. Annotation files are written with the standard library, or pyarrow, so that
none of the compared tools makes them.
"""

import csv
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

CLASSES = tuple(f"class {number:02d}" for number in range(80))
WIDTH, HEIGHT = 160, 120
_IMAGES, _BOXES = 118_000, 860_000
_LINKS = 30_000  # names of one file; some file systems allow 65,000
_EDGES = ("xtl", "ytl", "xbr", "ybr")


class Box(NamedTuple):
    """A bounding box in whole pixels, and the number of its class."""

    x: int
    y: int
    width: int
    height: int
    kind: int

    @property
    def fractions(self) -> tuple[float, float, float, float]:
        """Left and upper edge, width and height as fractions of the image's sides."""
        return self.x / WIDTH, self.y / HEIGHT, self.width / WIDTH, self.height / HEIGHT


def box_count(images: int) -> int:
    """Return the number of boxes of a data set with a number of images."""
    return images * _BOXES // _IMAGES


def annotated(images: int) -> Iterator[tuple[str, list[Box]]]:
    """Yield the stem and the seven or eight boxes of each image, the same in each call."""
    rng = random.Random(1)
    for number in range(images):
        yield f"{number:012d}", [_box(rng) for _ in range(box_count(number + 1) - box_count(number))]


def _box(rng: random.Random) -> Box:
    width, height = rng.randint(4, WIDTH // 2), rng.randint(4, HEIGHT // 2)
    return Box(rng.randint(0, WIDTH - width), rng.randint(0, HEIGHT - height), width, height, rng.randrange(80))


def _link_images(folder: Path, images: int) -> None:
    """Fill a folder with the images."""
    import cv2
    import numpy as np

    folder.mkdir(parents=True)
    coarse = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    data = cv2.imencode(".jpg", cv2.resize(coarse, (WIDTH, HEIGHT)), (cv2.IMWRITE_JPEG_QUALITY, 40))[1].tobytes()
    for number in range(images):
        path = folder / f"{number:012d}.jpg"
        if number % _LINKS == 0:
            path.write_bytes(data)
            first = path
        else:
            path.hardlink_to(first)


def coco(folder: Path, images: int) -> None:
    """Write the layout of COCO 2017: ``annotations/instances_train.json``, and images in ``images/train``."""
    _link_images(folder / "images/train", images)
    (folder / "annotations").mkdir()
    rows = list(annotated(images))
    listed = [
        {"id": number + 1, "file_name": f"{stem}.jpg", "width": WIDTH, "height": HEIGHT}
        for number, (stem, _) in enumerate(rows)
    ]
    boxes = ((number, box) for number, (_, found) in enumerate(rows) for box in found)
    annotations = [
        {
            "id": place + 1,
            "image_id": number + 1,
            "category_id": box.kind + 1,
            "bbox": box[:4],
            "area": box.width * box.height,
            "iscrowd": 0,
            "segmentation": [],
        }
        for place, (number, box) in enumerate(boxes)
    ]
    categories = [{"id": number + 1, "name": name, "supercategory": ""} for number, name in enumerate(CLASSES)]
    content = {"info": {}, "licenses": [], "images": listed, "categories": categories, "annotations": annotations}
    (folder / "annotations/instances_train.json").write_text(json.dumps(content), "utf-8")


def yolo(folder: Path, images: int) -> None:
    """Write the layout of Ultralytics: ``data.yaml``, ``images/train`` and ``labels/train``."""
    _link_images(folder / "images/train", images)
    names = "".join(f"  {number}: {name}\n" for number, name in enumerate(CLASSES))
    (folder / "data.yaml").write_text(f"path: .\ntrain: images/train\nval: images/train\nnames:\n{names}", "utf-8")
    labels = folder / "labels/train"
    labels.mkdir(parents=True)
    for stem, boxes in annotated(images):
        lines = []
        for box in boxes:
            x, y, width, height = box.fractions
            lines.append(f"{box.kind} {x + width / 2:.6f} {y + height / 2:.6f} {width:.6f} {height:.6f}\n")
        (labels / f"{stem}.txt").write_text("".join(lines), "utf-8")


def voc(folder: Path, images: int) -> None:
    """Write the layout of Pascal VOC: ``Annotations``, ``JPEGImages`` and ``ImageSets/Main/train.txt``."""
    _link_images(folder / "JPEGImages", images)
    (folder / "Annotations").mkdir()
    (folder / "ImageSets/Main").mkdir(parents=True)
    stems = []
    for stem, boxes in annotated(images):
        stems.append(stem)
        objects = "".join(
            f"<object><name>{CLASSES[box.kind]}</name><pose>Unspecified</pose><truncated>0</truncated>"
            f"<difficult>0</difficult><bndbox><xmin>{box.x + 1}</xmin><ymin>{box.y + 1}</ymin>"
            f"<xmax>{box.x + box.width}</xmax><ymax>{box.y + box.height}</ymax></bndbox></object>\n"
            for box in boxes
        )
        text = (
            f"<annotation><folder>JPEGImages</folder><filename>{stem}.jpg</filename>\n<size><width>{WIDTH}</width>"
            f"<height>{HEIGHT}</height><depth>3</depth></size><segmented>0</segmented>\n{objects}</annotation>\n"
        )
        (folder / f"Annotations/{stem}.xml").write_text(text, "utf-8")
    (folder / "ImageSets/Main/train.txt").write_text("\n".join(stems) + "\n", "utf-8")
    (folder / "labelmap.txt").write_text("".join(f"{name}:::\n" for name in CLASSES), "utf-8")  # for datumaro


def cvat(folder: Path, images: int) -> None:
    """Write CVAT for images 1.1: ``annotations.xml``, and images in ``images``."""
    _link_images(folder / "images", images)
    with (folder / "annotations.xml").open("w", encoding="utf-8") as file:
        labels = "".join(f"<label><name>{name}</name><attributes/></label>" for name in CLASSES)
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<annotations>\n<version>1.1</version>\n')
        file.write(f"<meta><task><id>1</id><name>bench</name><size>{images}</size><mode>annotation</mode>")
        file.write(f"<labels>{labels}</labels></task></meta>\n")
        for number, (stem, boxes) in enumerate(annotated(images)):
            file.write(f'<image id="{number}" name="{stem}.jpg" width="{WIDTH}" height="{HEIGHT}">\n')
            for box in boxes:
                sides = (box.x, box.y, box.x + box.width, box.y + box.height)
                edges = " ".join(f'{edge}="{side}.00"' for edge, side in zip(_EDGES, sides, strict=True))
                file.write(f'<box label="{CLASSES[box.kind]}" source="manual" occluded="0" {edges} z_order="0"/>\n')
            file.write("</image>\n")
        file.write("</annotations>\n")


def label_studio(folder: Path, images: int) -> None:
    """Write a JSON export of Label Studio, and images in ``images``."""
    _link_images(folder / "images", images)
    tasks = [
        {
            "id": number,
            "data": {"image": f"/data/upload/1/{stem}.jpg"},
            "annotations": [{"id": number, "result": [_result(box) for box in boxes]}],
        }
        for number, (stem, boxes) in enumerate(annotated(images))
    ]
    (folder / "export.json").write_text(json.dumps(tasks), "utf-8")


def _result(box: Box) -> dict[str, Any]:
    sides = {name: 100 * side for name, side in zip(("x", "y", "width", "height"), box.fractions, strict=True)}
    return {
        "type": "rectanglelabels",
        "from_name": "label",
        "to_name": "image",
        "original_width": WIDTH,
        "original_height": HEIGHT,
        "image_rotation": 0,
        "value": {**sides, "rotation": 0, "rectanglelabels": [CLASSES[box.kind]]},
    }


def labelme(folder: Path, images: int) -> None:
    """Write a labelme file beside each image."""
    _link_images(folder, images)
    for stem, boxes in annotated(images):
        shapes: list[dict[str, Any]] = [
            {
                "label": CLASSES[box.kind],
                "points": [[box.x, box.y], [box.x + box.width, box.y + box.height]],
                "group_id": None,
                "shape_type": "rectangle",
                "flags": {},
            }
            for box in boxes
        ]
        content: dict[str, Any] = {
            "version": "5.5.0", "flags": {}, "shapes": shapes, "imagePath": f"{stem}.jpg", "imageData": None,
            "imageHeight": HEIGHT, "imageWidth": WIDTH,
        }  # fmt: skip
        (folder / f"{stem}.json").write_text(json.dumps(content, indent=1), "utf-8")


def fiftyone(folder: Path, images: int) -> None:
    """Write the type FiftyOneDataset of FiftyOne 1.22, without a schema: ``samples.json``, and images in ``data``."""
    _link_images(folder / "data", images)
    samples = [
        {
            "filepath": f"data/{stem}.jpg",
            "tags": [],
            "metadata": {"_cls": "ImageMetadata", "width": WIDTH, "height": HEIGHT, "num_channels": 3},
            "ground_truth": {
                "_cls": "Detections",
                "detections": [
                    {"_cls": "Detection", "tags": [], "label": CLASSES[box.kind], "bounding_box": box.fractions}
                    for box in boxes
                ],
            },
        }
        for stem, boxes in annotated(images)
    ]
    (folder / "samples.json").write_text(json.dumps({"samples": samples}), "utf-8")
    (folder / "metadata.json").write_text(json.dumps({"name": "bench", "media_type": "image", "info": {}}), "utf-8")


def tables(folder: Path, images: int) -> None:
    """Write ``object_annotations.csv``, and images in ``images``."""
    _link_images(folder / "images", images)
    with (folder / "object_annotations.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("filename", "col_x", "row_y", "width", "height", "label"))
        for stem, boxes in annotated(images):
            writer.writerows((f"images/{stem}.jpg", *box[:4], CLASSES[box.kind]) for box in boxes)


def parquet(folder: Path, images: int) -> None:
    """Write ``object_annotations.parquet``, and images in ``images``."""
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet as arrow_parquet

    tables(folder, images)
    path = folder / "object_annotations.csv"
    arrow_parquet.write_table(arrow_csv.read_csv(path), path.with_suffix(".parquet"))
    path.unlink()


FORMATS: dict[str, Callable[[Path, int], None]] = {
    "coco": coco,
    "yolo": yolo,
    "voc": voc,
    "cvat": cvat,
    "label_studio": label_studio,
    "labelme": labelme,
    "fiftyone": fiftyone,
    "csv": tables,
    "parquet": parquet,
}
