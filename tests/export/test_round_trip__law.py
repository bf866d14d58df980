"""A dataset that passes through formats has what each of them can hold, and what is lost is counted."""

import json
import math
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Dataset, vql
from framedex.annotations.boxes import Box
from framedex.annotations.labels import parse_labels
from framedex.annotations.shapes import NO_SHAPE, ObjectShape, bounds_of_shape
from framedex.core.counts import counted
from framedex.storage.classes import classes_of
from framedex.storage.objects import objects_of
from tests.export.held import (
    ANY_ID,
    HELD,
    ON_REQUEST,
    SOURCES,
    Annotated,
    Content,
    behind,
    kind_of,
    left_out,
    pixels,
    segmentation,
)
from tests.gallery import SETTINGS, Averages
from tests.image_files import encode, flat
from tests.inside import stored_media
from tests.laws import examples, law_folder
from tests.prepared import new_workspace
from tests.problems import unusable

HOSTILE = [
    "a, b", 'say "cheese"', "two\nlines", "carriage\r\nreturn\rhere", " leading", "trailing ", "=cmd|' /C calc'!A0",
    "+1", "[a]", '["a", "b"]', "[", "{}", "null", "0", "-", "- a", "a: b", "# no comment", "'", "it's", "\\", "\\n",
    "\t", "%s", "\x01\x7f\x85", "\u2028\u2029", "\ufeff", "猫 🐈", "e\u0301", "\x00", "images", "x" * 200_000,
]  # fmt: skip
CLASSES = ["cat", "traffic light", "<b>&amp;", "a,b", '"', "ünder 猫", "two\nlines", "1", "# a", "a:1,2,3::"]
ODD_NAMES = [
    "a", "b", "a,b", 'q"', "new\nline", " space ", "=cmd", "back\\slash", "猫", "images", "labels", "x" * 240,
    "data.yaml", "a.b", "-rf", "[1]", "tab\t", "%20#?",
]  # fmt: skip
PARTS = ("train", "val")
_PLAIN = re.compile(r"[\w,\[\]-]+/[\w,\[\]-]+\.\w+", re.ASCII)  # names that no format changes
VALUES = st.sampled_from(["", "a, b", "1", "true", "<&>", "猫", 7, -2.5, True, False])
ATTRIBUTES = st.builds(
    lambda further, known: json.dumps(further | known),
    st.dictionaries(st.sampled_from(["color", "pose", "a b", "ü", "description", "size"]), VALUES, max_size=3),
    st.fixed_dictionaries({}, optional={"occluded": st.just(True), "track_id": st.integers(0, 99)}),
).filter(lambda text: text != "{}")
"""Attributes of objects."""
SIZES = [(48, 36), (36, 48), (7, 3), (101, 1)]
"""Sizes of images in pixels."""


@st.composite
def objects(draw: st.DrawFn, size: tuple[int, int], classes: list[str]) -> Box:
    """Objects within an image, often along its edges."""
    sides = []
    for length in size:
        start = draw(st.just(0.0) | st.integers(0, length - 1).map(float) | st.floats(0, length - 1))
        longest = length - start
        sides.append((start, draw(st.just(longest) | st.floats(1, longest))))
    (x, width), (y, height) = sides
    right, lower, middle = x + width, y + height, x + width * draw(st.floats(0, 1))
    # Corners with few digits are the same behind fractions and percents, so that masks have the same pixels.
    left, upper, right, lower, middle = (round(each * 256) / 256 for each in (x, y, x + width, y + height, middle))
    triangle = [left, upper, right, upper, middle, lower]
    drawn = draw(st.sampled_from(["box", "outline", "outlines", "mask", "keypoints", "turned"]))
    shape, points = None, None
    if drawn == "outline":
        shape = json.dumps([triangle])
    elif drawn == "outlines":
        shape = json.dumps([triangle, [left, upper, middle, lower, left, lower]])
    elif drawn == "turned":
        corners = turned(draw, x, y, width, height)
        shape = json.dumps([corners])
        x, y, width, height = bounds_of_shape(ObjectShape(shape)) or (x, y, width, height)
    elif drawn == "mask":
        start, end = sorted(draw(st.lists(st.integers(0, size[0] * size[1]), min_size=2, max_size=2, unique=True)))
        shape = json.dumps({"size": size[::-1], "counts": [start, end - start, size[0] * size[1] - end]})
    elif drawn == "keypoints":
        points = json.dumps([middle, y, 2, x, lower, 1, 0, 0, 0])
    return Box(
        "", x, y, width, height, draw(st.sampled_from(classes)), draw(st.none() | st.floats(0, 1)),
        draw(st.none() | st.integers(0, 10**12).map(str) | st.sampled_from(["x", "01", "-5"])),
        iscrowd=draw(st.booleans()), truncated=draw(st.booleans()), difficult=draw(st.booleans()),
        attributes=draw(st.none() | ATTRIBUTES), shape=ObjectShape(shape, points),
    )  # fmt: skip


def turned(draw: st.DrawFn, x: float, y: float, width: float, height: float) -> list[float]:
    """Return the corners of a turned box within bounds: first the upper left one, then clockwise."""
    angle, across, down = math.radians(draw(st.integers(1, 89))), *(draw(st.floats(0.5, 1)) for _ in range(2))
    cos, sin = math.cos(angle), math.sin(angle)
    scale = 0.999 / 2 * min(width / (across * cos + down * sin), height / (across * sin + down * cos))
    corners = ((-across, -down), (across, -down), (across, down), (-across, down))
    return [
        each
        for a, b in corners
        for each in (x + width / 2 + (a * cos - b * sin) * scale, y + height / 2 + (a * sin + b * cos) * scale)
    ]


def turned_sides(box: Box) -> tuple[float, float, float, float, float] | None:
    """Return the upper left corner, the width, the height and the angle in degrees of a turned box; None for others."""
    if kind_of(box) != "outline" or len(segmentation(box)[0]) != 8:
        return None
    x, y, right, upper, _, _, left, lower = segmentation(box)[0]
    return x, y, math.dist((x, y), (right, upper)), math.dist((x, y), (left, lower)), math.degrees(
        math.atan2(upper - y, right - x)
    )  # fmt: skip


def declared(image: Annotated, width: str = "width", height: str = "height") -> dict[str, int]:
    """Return the size that a source declares of an image, or nothing."""
    return dict(zip((width, height), image.size, strict=True)) if image.is_sized else {}


def texts(odd: list[str], *, plain: bool, most: int = 12) -> st.SearchStrategy[str]:
    """Texts, odd ones among them; plain ones have no character that XML refuses."""
    letters = st.characters(exclude_categories=["Cs", "Cc", "Cn"] if plain else ["Cs"], exclude_characters="/\0")
    return st.sampled_from([each for each in odd if each.isprintable() or not plain]) | st.text(letters, max_size=most)


def _is_name(text: str) -> bool:
    last = text.replace("\\", "/").rpartition("/")[2]
    return bool(text) and not last.startswith(".")


@st.composite
def contents(draw: st.DrawFn, *, plain: bool) -> Content:
    """Datasets of images with odd names and sizes, with all that COCO can say."""
    classes = draw(st.lists(st.sampled_from(CLASSES), min_size=1, max_size=4, unique=True))
    names = texts(ODD_NAMES, plain=plain, most=8).filter(_is_name)
    words = texts(HOSTILE, plain=plain)
    images = {}
    for number, (folder, name) in enumerate(
        draw(st.lists(st.tuples(names, names), min_size=4, unique=True, max_size=8))
    ):
        size = draw(st.sampled_from(SIZES))
        caption = draw(st.none() | words)
        whole = [Box("", 0, 0, size[0], size[1], classes[0])]  # in the first image
        images[number] = Annotated(
            f"{folder}_/{name}{draw(st.sampled_from(['.png', '.PNG', '.bmp']))}",
            size,
            parse_labels(draw(st.lists(words, max_size=3))),
            caption if caption and caption.strip() else None,
            PARTS[number] if number < 2 else draw(st.sampled_from(PARTS)),
            str(draw(st.integers(0, 10**6)) * 10 + number),
            (*whole[number:], *draw(st.lists(objects(size, classes), max_size=4))),
            is_sized=draw(st.booleans()),
        )
    return Content(images, tuple(classes))


# Sources: plain writers of what others write


def write_coco(folder: Path, content: Content) -> None:
    """Write a COCO file."""
    notes = [
        {"image_id": int(image.id or 0), "category_id": content.classes.index(box.label), "iscrowd": int(box.iscrowd)}
        | {"bbox": [box.x, box.y, box.width, box.height]}
        | ({} if box.original_id is None else {"id": box.original_id})
        | ({} if box.confidence is None else {"score": box.confidence})
        | ({"segmentation": segmentation(box)} if box.shape.segmentation else {})
        | ({"attributes": all_attributes(box)} if all_attributes(box) else {})
        | ({"keypoints": json.loads(box.shape.keypoints)} if box.shape.keypoints else {})
        for image in content.images.values()
        for box in image.boxes
    ]
    images = [
        {"id": int(image.id or 0), "file_name": image.name, "labels": image.labels, **declared(image)}
        for image in content.images.values()
    ]
    categories = [{"id": number, "name": name} for number, name in enumerate(content.classes)]
    (folder / "annotations.json").write_text(
        json.dumps({"images": images, "annotations": notes, "categories": categories})
    )
    captions = [
        {"id": number, "image_id": int(image.id or 0), "caption": image.caption}
        for number, image in content.images.items()
        if image.caption is not None
    ]
    (folder / "captions.json").write_text(json.dumps({"images": images, "annotations": captions}))


def all_attributes(box: Box) -> dict[str, Any]:
    """Return the attributes of an object with its flags."""
    flags = {name: True for name in ("truncated", "difficult") if getattr(box, name)}
    return {**json.loads(box.attributes or "{}"), **flags}


def write_cvat(folder: Path, content: Content) -> None:
    """Write ``annotations.xml`` of CVAT for images."""
    lines = []
    for number, image in content.images.items():
        size = " ".join(f"{name}='{value}'" for name, value in declared(image).items())
        sides = f"{size} subset='{image.part}'"
        lines.append(f"<image id='{number}' name={quoteattr(image.name)} {sides}>")
        lines += [f"<tag label={quoteattr(label)}/>" for label in image.labels]
        for box in image.boxes:
            corners = {"xtl": box.x, "ytl": box.y, "xbr": box.x + box.width, "ybr": box.y + box.height}
            kind, own = "box", " ".join(f"{name}='{value!r}'" for name, value in corners.items())
            if (found := turned_sides(box)) is not None:
                middle, (_, _, across, down, angle) = segmentation(box)[0], found
                x, y = (middle[0] + middle[4]) / 2, (middle[1] + middle[5]) / 2
                edges = zip(corners, (x - across / 2, y - down / 2, x + across / 2, y + down / 2), strict=True)
                own = " ".join(f"{name}='{value!r}'" for name, value in edges) + f" rotation='{angle!r}'"
            elif kind_of(box) == "outline":
                (polygon,) = segmentation(box)
                points = ";".join(f"{x!r},{y!r}" for x, y in zip(polygon[::2], polygon[1::2], strict=True))
                kind, own = "polygon", f"points='{points}'"
            further = all_attributes(box)
            own += " occluded='1'" if further.pop("occluded", False) else ""
            texts = {name: each if isinstance(each, str) else json.dumps(each) for name, each in further.items()}
            inner = [f"<attribute name={quoteattr(name)}>{escape(each)}</attribute>" for name, each in texts.items()]
            lines.append(f"<{kind} label={quoteattr(box.label)} {own}>{''.join(inner)}</{kind}>")
        lines.append("</image>")
    (folder / "annotations.xml").write_text(f"<annotations>{''.join(lines)}</annotations>")


def _fractions(numbers: list[float], image: Annotated, whole: float) -> list[float]:
    return [each / image.size[place % 2] * whole for place, each in enumerate(numbers)]


def region_result(own: str, name: str, value: Any) -> dict[str, Any]:
    """Return the result of Label Studio for an attribute of a shape."""
    result = {"id": own, "from_name": name}
    if isinstance(value, bool):
        return {**result, "type": "choices", "value": {"choices": [json.dumps(value)]}}
    if isinstance(value, str):
        return {**result, "type": "textarea", "value": {"text": [value]}}
    return {**result, "type": "number", "value": {"number": value}}


def write_label_studio(folder: Path, content: Content) -> None:
    """Write tasks of Label Studio."""
    tasks = []
    for image in content.images.values():
        found: list[dict[str, Any]] = [{"type": "choices", "value": {"choices": image.labels}}]
        found += [{"type": "textarea", "value": {"text": [image.caption]}}] if image.caption else []
        for box in image.boxes:
            sides = _fractions([box.x, box.y, box.width, box.height], image, 100)
            kind, value = "rectanglelabels", dict[str, Any](zip(("x", "y", "width", "height"), sides, strict=True))
            size = declared(image, "original_width", "original_height")
            if (turned_ := turned_sides(box)) is not None:
                sides = _fractions(list(turned_[:4]), image, 100)
                value = {**dict(zip(("x", "y", "width", "height"), sides, strict=True)), "rotation": turned_[4]}
                size = dict(zip(("original_width", "original_height"), image.size, strict=True))  # it needs one
            elif kind_of(box) == "outline":
                points = _fractions(segmentation(box)[0], image, 100)
                kind, value = "polygonlabels", {"points": list(zip(points[::2], points[1::2], strict=True))}
            result: dict[str, Any] = {**size, "type": kind, "value": {**value, kind: [box.label]}}
            result |= {"id": box.original_id} if box.original_id is not None else {}
            found.append(result | ({} if box.confidence is None else {"score": box.confidence}))
            if [each.original_id for each in image.boxes].count(box.original_id) == 1 and box.original_id is not None:
                found += [region_result(box.original_id, *each) for each in all_attributes(box).items()]
        tasks.append({"data": {"image": f"/data/upload/1/{quote(image.name)}"}, "annotations": [{"result": found}]})
    (folder / "export.json").write_text(json.dumps(tasks))


def write_fiftyone(folder: Path, content: Content) -> None:
    """Write a FiftyOne dataset."""
    samples = []
    for image in content.images.values():
        boxes, lines = [], []
        for box in image.boxes:
            track = json.loads(box.attributes or "{}").get("track_id")
            further = {name: each for name, each in all_attributes(box).items() if name != "track_id"}
            item = (
                further
                | {"label": box.label, "index": track}
                | ({} if box.confidence is None else {"confidence": box.confidence})
            )
            if kind_of(box) == "outline":
                points = _fractions(segmentation(box)[0], image, 1)
                lines.append(item | {"points": [list(zip(points[::2], points[1::2], strict=True))], "closed": True})
            else:
                boxes.append(item | {"bounding_box": _fractions([box.x, box.y, box.width, box.height], image, 1)})
        labels = [{"label": label} for label in image.labels]
        samples.append({
            "filepath": image.name, "tags": [image.part],
            "kinds": {"_cls": "Classifications", "classifications": labels},
            "objects": {"_cls": "Detections", "detections": boxes},
            "outlines": {"_cls": "Polylines", "polylines": lines},
        })  # fmt: skip
    (folder / "samples.json").write_text(json.dumps({"samples": samples}))
    (folder / "metadata.json").write_text("{}")


WRITERS = {
    "coco": write_coco, "cvat": write_cvat, "label-studio": write_label_studio, "fiftyone": write_fiftyone
}  # fmt: skip


def image_of(number: int, size: tuple[int, int]) -> bytes:
    """Return an image that encodes its number, with any suffix."""
    return encode(flat((number * 9, 255 - number * 9, 128), width=size[0], height=size[1]))


def content_of(dataset: Dataset) -> Content:
    """Return the content of a dataset."""
    media = stored_media(dataset)
    columns = ["media_id", "width", "height", "labels", "caption", "tags", "image_filename"]
    ids = {}
    if "source_id" in media.table.schema.names:
        rows = media.table.scan(["media_id", "source_id"]).read_all()
        ids = dict(zip(*(rows[name].to_pylist() for name in ("media_id", "source_id")), strict=True))
    boxes: dict[str, list[Box]] = {}
    if (objects_ := objects_of(media)) is not None:
        names = [name for name in objects_.table.schema.names if name != "embedding"]
        for row in objects_.table.scan(names).read_all().to_pylist():
            edges = (row["box_x"], row["box_y"], row["box_width"], row["box_height"])
            flags = {name: row[name] for name in ("iscrowd", "truncated", "difficult", "attributes")}
            shape = ObjectShape(row.get("segmentation"), row.get("keypoints"))
            (label,) = row["labels"]
            box = Box("", *edges, label, row["confidence"], row["original_id"], **flags, shape=shape)
            boxes.setdefault(row["parent_id"], []).append(box)
    images = {}
    for row in dataset.to_arrow(columns).to_pylist():
        key = row["media_id"]
        number = int(dataset.read(key)[0, 0, 0]) // 9
        parts = [each for each in PARTS if each in (row["tags"] or ())]
        images[number] = Annotated(
            row["image_filename"], (row["width"], row["height"]), tuple(row["labels"]), row["caption"],
            "+".join(parts) or None, ids.get(key), tuple(boxes.get(key, ())),
        )  # fmt: skip
    classes = classes_of(media)
    return Content(images, tuple(classes.filter(classes["of_boxes"])["name"].to_pylist()))


def same(found: Content, expected: Content, *, exact: bool) -> None:
    """Check that a dataset has a content, with new names of images and new ids where a format made them.

    Args:
        found: the content of the dataset.
        expected: what it must be.
        exact: whether lengths are equal to the last bit; else to a millionth of a pixel.
    """
    assert found.classes == expected.classes
    assert found.images.keys() == expected.images.keys()
    near: Callable[[Any], Any] = (lambda each: each) if exact else (lambda each: pytest.approx(each, abs=1e-6))
    ids = Counter(box.original_id for box in found.boxes)
    stems = Counter(Path(image.name).stem.lower() for image in expected.images.values())
    for number, image in expected.images.items():
        again = found.images[number]
        if _PLAIN.fullmatch(image.name) and stems[Path(image.name).stem.lower()] == 1:
            assert f"/{again.name}".endswith(f"/{image.name}")
        own = again.id if image.id == ANY_ID else image.id
        assert replace(again, boxes=(), name="") == replace(image, boxes=(), name="", id=own)
        assert len(again.boxes) == len(image.boxes)
        for one, box in zip(again.boxes, image.boxes, strict=True):
            own = one.original_id if box.original_id == ANY_ID and ids[one.original_id] == 1 else box.original_id
            plain = [replace(each, x=0, y=0, width=0, height=0, shape=NO_SHAPE, attributes=None) for each in (one, box)]
            assert json.loads(one.attributes or "{}") == json.loads(box.attributes or "{}")
            assert plain[0] == replace(plain[1], original_id=own)
            assert [one.x, one.y, one.width, one.height] == near([box.x, box.y, box.width, box.height])
            assert json.loads(one.shape.keypoints or "[]") == near(json.loads(box.shape.keypoints or "[]"))
            assert kind_of(one) == kind_of(box)
            if kind_of(box) == "mask":
                assert segmentation(one)["size"] == [*image.size[::-1]]
                assert (pixels(one, image.size) == pixels(box, image.size)).all()
            else:
                for polygon, wanted in zip(segmentation(one), segmentation(box), strict=True):
                    assert polygon == near(wanted)


VARIANTS: list[tuple[str, dict[str, bool]]] = [(name, {}) for name in HELD if name not in SOURCES]
VARIANTS += [("yolo", {option: True}) for option in ON_REQUEST]
STEPS = st.tuples(st.sampled_from(VARIANTS), st.booleans())
STARTS = st.sampled_from(sorted(WRITERS)).flatmap(lambda name: st.tuples(st.just(name), contents(plain=name != "coco")))


@pytest.mark.slow
@examples(35)
@given(start=STARTS, chain=st.lists(STEPS, min_size=1, max_size=3))
def test_chain__law(start: tuple[str, Content], chain: list[tuple[tuple[str, dict[str, bool]], bool]]) -> None:
    """A dataset that passes through formats has what each of them can hold, and messages count what is left out."""
    home = law_folder("chain")
    try:
        pass_through(home, *start, chain)
    finally:
        shutil.rmtree(home)


def pass_through(
    home: Path, source: str, content: Content, chain: list[tuple[tuple[str, dict[str, bool]], bool]]
) -> None:
    """Check a dataset at its source, and behind each step: a format with its options, and whether with parts."""
    for number, image in content.images.items():
        path = home / "0" / image.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(image_of(number, image.size))
    WRITERS[source](home / "0", content)
    if source == "coco":
        content = replace(content, images={key: replace(each, part=None) for key, each in content.images.items()})
    else:
        content = behind(content, source, {}, with_parts=True)
    is_exact = source == "coco"
    with new_workspace(home / "workspace", SETTINGS) as workspace:
        dataset = workspace.create_dataset("0", home / "0", Averages())
        same(content_of(dataset), content, exact=is_exact)
        for number, ((format_, options), with_parts) in enumerate(chain, 1):
            chosen: dict[str, Any] = dict(options)
            if with_parts and "parts" in HELD[format_]:
                content = divided(dataset, content)
                chosen["split"] = {part: vql.tags(part) for part in PARTS}
            message = dataset.export(home / "out.zip", format_, include_images=True, **chosen).message
            for count, nouns in left_out(content, format_, options, with_parts="split" in chosen):
                assert f"{counted(count, nouns, 'are')} left out" in message, message
            with zipfile.ZipFile(home / "out.zip") as archive:
                assert len(set(archive.namelist())) == len(archive.namelist())
                if format_ == "yolo" and content.classes:
                    files = [name for name in archive.namelist() if "labels/" in name and name.endswith(".txt")]
                    assert len(files) == len(content.images)
                archive.extractall(home / str(number))
            dataset = workspace.create_dataset(str(number), home / str(number), Averages())
            assert unusable(dataset) == []
            content = behind(content, format_, options, with_parts="split" in chosen)
            is_exact = is_exact and format_ not in ("yolo", "labelme")
            same(content_of(dataset), content, exact=is_exact)


def divided(dataset: Dataset, content: Content) -> Content:
    """Return a content whose images are all in one part, by the tags that are added to the dataset."""
    images = {
        number: replace(image, part=image.part if image.part in PARTS else PARTS[number % 2])
        for number, image in content.images.items()
    }
    ids = {int(dataset.read(key)[0, 0, 0]) // 9: key for key in dataset.view.media_ids()}
    for part in PARTS:
        if any(image.part not in (None, *PARTS) for image in content.images.values()):
            dataset.untag(dataset.view, part)
        if own := [ids[number] for number, image in images.items() if image.part == part]:
            dataset.tag(own, part)
    return replace(content, images=images)
