"""Segmentation masks as Pascal VOC and CVAT have them: images of classes, and of objects, beside the images.

``SegmentationClass/<name>.png`` has the class of each pixel, ``SegmentationObject/<name>.png`` the object, both as a
palette, as grey values or as colours; 0 and black are the background, 255 and (224, 224, 192) belong to nothing (the
VOC2012 development kit). ``labelmap.txt`` has a line ``name:red,green,blue::`` for each class (docs.cvat.ai, Pascal
VOC). Without an image of objects, each class of an image is one object.
"""

import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from framedex.annotations.boxes import Box
from framedex.annotations.folders import image_finder, is_folder, list_files_below, stem
from framedex.annotations.label_map import LABEL_MAP, class_colour, label_map
from framedex.annotations.masks import MOST_PIXELS, bounds_of_mask, mask_of_pixels, pixels_of
from framedex.annotations.output import SPLIT, AnnotatedImages, Files, boxes_by_image, column, omissions
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.progress import part
from framedex.annotations.shapes import ObjectShape
from framedex.annotations.tables import write_label_table
from framedex.annotations.voc import homes_of
from framedex.core.counts import counted
from framedex.core.left_out import MASK_FOLDERS, MASK_PATTERN
from framedex.core.progress import ShareProgress
from framedex.core.regular_files import has_file, open_text, read_bytes
from framedex.errors import InvalidInput

_CLASSES, _OBJECTS = MASK_FOLDERS
_IMAGES = ("JPEGImages", "images", "")
_SUFFIX = ".png"
_LARGEST = 2**28  # bytes of a file
_VOID = ((224, 224, 192), (255, 255, 255))
_CROSSINGS = 10**7  # edges × rows that are looked at together
_PALETTE = 255
_MOST_SIDE = 2**15  # pixels
Pixels = npt.NDArray[np.int32]
_OTHER_COLOURS = "masks with colours of no class"
_MOST_UNNAMED = 64  # classes of a mask without a list of names; more colours are those of an image
_NO_NAMES = "classes of masks without a name, which are called by their number"


def _homes(folder: Path) -> list[Path]:
    """Return the folders with masks: the folder, or parts of it, as ``VOCdevkit/VOC2012``."""
    return [home for home in (folder, *homes_of(folder)) if is_folder(home / _CLASSES)]


def has_masks(folder: Path) -> bool:
    """Return whether a folder has masks."""
    try:
        return any(next(list_files_below(os.fspath(home / _CLASSES), _SUFFIX), None) for home in _homes(folder))
    except OSError:
        return False


def find_files(folder: Path) -> list[str]:
    """Return what a folder has of masks."""
    return [f"masks in {(home / _CLASSES).relative_to(folder).as_posix()}" for home in _homes(folder)]


def label_file_finder(_folder: Path) -> Callable[[str], bool]:
    """Return a function that says whether a path is that of masks, of a list of their classes, or of their folder."""
    of_masks = re.compile(MASK_PATTERN)
    return lambda path: path.rpartition("/")[2] == LABEL_MAP or of_masks.search(path) is not None


# Reading


def read_boxes(folder: Path, problems: Problems) -> Iterator[Box]:
    """Yield an object with a mask for each object in each image, or for each class where no image of objects is there.

    Raises:
        InvalidInput: the folder has no masks, or cannot be read.
    """
    images_in, is_any = image_finder(os.fspath(folder)), False
    try:
        for home in _homes(folder):
            names = _read_names(home / LABEL_MAP, problems)
            for path in list_files_below(os.fspath(home / _CLASSES), _SUFFIX):
                is_any = True
                name = _image_of(home.relative_to(folder).as_posix(), path.removesuffix(_SUFFIX), images_in)
                yield from without_problems(_boxes(home, path, name, names), problems)
    except OSError as error:
        raise InvalidInput(f"cannot read the masks below {os.fspath(folder)!r}: {error}") from error
    if not is_any:
        raise InvalidInput(f"{os.fspath(folder)!r} holds no masks: {_CLASSES}/<name>{_SUFFIX}")


def _image_of(home: str, name: str, images_in: Callable[[str], Mapping[str, list[str]]]) -> str:
    """Return the name of the image of a mask."""
    below, base = os.path.split(name)
    for images in _IMAGES:
        place = os.path.normpath(os.path.join(home, images, below))  # noqa: PTH118
        if len(found := images_in("" if place == "." else place).get(base, [])) == 1:
            return os.path.normpath(os.path.join(place, found[0]))  # noqa: PTH118
    return os.path.normpath(os.path.join(home, name))  # noqa: PTH118


def _read_names(path: Path, problems: Problems) -> dict[tuple[int, int, int], str]:
    """Return the names of classes by colour; an empty dict without a list."""
    names: dict[tuple[int, int, int], str] = {}
    if not has_file(path):
        return names
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, 1):
                name, _, rest = line.strip().rpartition("::")[0].rpartition(":") if "::" in line else ("", "", "")
                colour = rest.split(",")
                if not name or len(colour) != 3 or not all(re.fullmatch(r" *[0-9]{1,9} *", each) for each in colour):
                    if not line.strip() or line.startswith("#"):
                        continue
                    problems.add(problem(f"{LABEL_MAP}: line {number}", line, "must be name:red,green,blue::"))
                    continue
                red, green, blue = (min(int(each), 255) for each in colour)
                names[red, green, blue] = name
    except (OSError, UnicodeDecodeError) as error:
        problems.add(problem(LABEL_MAP, LABEL_MAP, f"cannot be read: {error}"))
    return names


def _decode(path: Path) -> tuple[Pixels, dict[int, tuple[int, int, int]]]:
    """Return the values of an image of masks, shape (H, W), and the colour of each; 0 is the background, −1 nothing.

    Raises:
        ValueError: it cannot be decoded.
    """
    from PIL import Image

    try:
        content = read_bytes(path, _LARGEST)
        with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
            image.verify()  # decoding checks no checksum of pixels, and wrong ones are other classes
        with Image.open(io.BytesIO(content), formats=("PNG",)) as image:
            if image.width * image.height > MOST_PIXELS:
                raise ValueError(f"has more than {MOST_PIXELS:,} pixels")
            palette = np.array(image.getpalette() or (), np.int64).reshape(-1, 3) if image.mode == "P" else None
            is_single = image.mode in ("1", "L", "P", "I", "I;16")
            read = np.asarray(image if is_single else image.convert("RGB"))
    except FileNotFoundError:
        raise
    except (OSError, SyntaxError, MemoryError, Image.DecompressionBombError) as error:
        raise ValueError(str(error) or "there is not enough memory to decode it") from error
    values = (read[..., 0] if read.ndim == 3 else read).astype(np.int32)
    if read.ndim == 3:
        for channel in (1, 2):
            values = values << 8 | read[..., channel]
        colours = {each: (each >> 16, each >> 8 & 255, each & 255) for each in np.unique(values).tolist()}
    elif palette is not None:
        colours = {each: tuple(palette[each].tolist()) for each in np.unique(values).tolist() if each < len(palette)}
    else:
        colours = {each: (each, each, each) for each in np.unique(values).tolist()}
    nothing = [each for each, colour in colours.items() if colour in _VOID or (is_single and each == _PALETTE)]
    black = [each for each, colour in colours.items() if colour == (0, 0, 0)]
    if len(nothing) + len(black) < len(colours) or len(nothing) > 1:  # else white is what the mask is of
        values[np.isin(values, nothing)] = -1
    values[np.isin(values, black)] = 0
    return values, colours


def _boxes(
    home: Path, path: str, name: str, names: dict[tuple[int, int, int], str]
) -> Iterator[Box | AnnotationProblem]:
    place = f"{_CLASSES}/{path}"
    try:
        classes, colours = _decode(home / _CLASSES / path)
    except (OSError, ValueError) as error:
        yield problem(place, os.path.basename(path), str(error))  # noqa: PTH119
        return
    objects: Pixels | None = None
    try:
        objects, _ = _decode(home / _OBJECTS / path)
        if objects.shape != classes.shape:
            raise ValueError(f"has {objects.shape[::-1]} pixels, the classes {classes.shape[::-1]}")
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        objects = None
        yield problem(f"{_OBJECTS}/{path}", os.path.basename(path), str(error))  # noqa: PTH119
    values = np.unique(classes[classes > 0]).tolist()
    labels = {value: names.get(colours.get(value, (-1, -1, -1)), "") for value in values}
    unnamed = [value for value, label in labels.items() if not label]
    if len(unnamed) > (0 if names else _MOST_UNNAMED):
        reason = f"are not in {LABEL_MAP}, and belong to nothing; smoothed edges and images have such"
        yield AnnotationProblem(place, counted(len(unnamed), "colours"), reason, _OTHER_COLOURS)
        labels = {value: label for value, label in labels.items() if label}
    for value in labels.keys() & set(unnamed):
        labels[value] = str(value)
        yield AnnotationProblem(place, str(value), f"there is no {LABEL_MAP} with names of classes", _NO_NAMES)
    size = (classes.shape[1], classes.shape[0])
    for value, label in labels.items():
        of_class = classes == value
        numbers = [0] if objects is None else np.unique(objects[of_class]).tolist()
        for number in numbers:
            pixels = of_class if objects is None else of_class & (objects == number)
            yield _box(name, label, pixels, size, place)


def _box(name: str, label: str, pixels: npt.NDArray[np.bool_], size: tuple[int, int], place: str) -> Box:
    mask = mask_of_pixels(pixels)
    bounds = bounds_of_mask(mask)
    assert bounds is not None, "it has pixels"
    shape = ObjectShape(json.dumps(mask, separators=(",", ":")), area=float(pixels.sum()))
    return Box(name, *bounds, label, source="masks", shape=shape, image_size=size, location=place)


# Writing


def write(files: Files, images: AnnotatedImages, progress: ShareProgress) -> list[str]:
    """Write an image of classes and one of objects for each image; return sentences about what they cannot hold.

    An outline has the pixels whose middle is inside. Where objects overlap, the later one covers the earlier one.
    """
    counts = {"plain": 0, "sizes": 0, "covered": 0}
    labels = images.classes()["name"].to_pylist()
    columns = ["file_name", "width", "height", "objects"]
    for block in images.blocks(columns, part(progress, 0.0, 0.9)) if images.with_boxes else ():
        for name, size, boxes in boxes_by_image(block):
            shaped = [box for box in boxes if box.shape.segmentation]
            counts["plain"] += len(boxes) - len(shaped)
            if size is None or max(size) >= _MOST_SIDE:
                counts["sizes"] += len(shaped)
                continue
            classes, objects = np.zeros((2, size[1], size[0]), np.int32)
            areas = []
            for number, box in enumerate(shaped, 1):
                pixels = _filled(box, size)
                classes[pixels], objects[pixels] = labels.index(box.label) + 1, number
                areas.append(int(pixels.sum()))
            left = np.bincount(objects.ravel(), minlength=len(shaped) + 1)[1:]
            counts["covered"] += int(np.count_nonzero(left < areas))
            for folder, values, most in ((_CLASSES, classes, len(labels)), (_OBJECTS, objects, len(shaped))):
                if shaped:
                    files.add(f"{folder}/{stem(name)}{_SUFFIX}", _png(values, most))
    files.add(LABEL_MAP, label_map(labels))
    _write_lists(files, images)
    write_label_table(files, images, part(progress, 0.9, 1.0))
    notes = omissions(
        images, ("original_id", "confidence", "iscrowd", "truncated", "difficult", "attributes", "keypoints"), "mask"
    ) if images.with_boxes else []  # fmt: skip
    reasons = {"plain": "they have no outline or mask", "sizes": "the size of the image is not known, or too large"}
    notes += [
        f"{counted(counts[each], 'boxes', 'are')} left out: {why}" for each, why in reasons.items() if counts[each]
    ]
    if counts["covered"]:
        notes.append(f"{counted(counts['covered'], 'objects', 'are')} partly covered by others")
    return notes


def _write_lists(files: Files, images: AnnotatedImages) -> None:
    """Write the image names of each part without suffixes, as ``ImageSets/Segmentation`` has them."""
    for split in images.splits:
        with files.member(f"ImageSets/Segmentation/{split}.txt", compressed=True) as member:
            for block in images.blocks(["file_name", "media_id", SPLIT], lambda _share: None):
                names = column(block, "file_name").filter(pc.equal(column(block, SPLIT), split)).to_pylist()
                member.write("".join(f"{stem(name)}\n" for name in names).encode())


def _filled(box: Box, size: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Return the pixels of an object: bool, shape (H, W)."""
    outline = json.loads(box.shape.segmentation or "[]")
    pixels = np.zeros((size[1], size[0]), np.uint8)
    if isinstance(outline, dict):
        read = pixels_of(outline)[: size[1], : size[0]]
        pixels[: read.shape[0], : read.shape[1]] = read
    else:
        for polygon in outline:
            pixels |= _inside(np.array(polygon, np.float64).reshape(-1, 2), size)
    return pixels.astype(bool)


def _inside(corners: npt.NDArray[np.float64], size: tuple[int, int]) -> npt.NDArray[np.bool_]:
    """Return the pixels whose middle is inside of a polygon (even-odd rule): bool, shape (H, W).

    Each edge changes, in each row that it crosses, all pixels to its right.
    """
    width, height = size
    middles = np.arange(height) + 0.5
    changes = np.zeros((height, width + 1), np.int32)
    ends = np.roll(corners, -1, axis=0)
    at_once = max(1, _CROSSINGS // height)
    for start in range(0, len(corners), at_once):
        (x, y), (x_end, y_end) = (each[start : start + at_once].T[:, :, None] for each in (corners, ends))
        edges, rows = np.nonzero((y <= middles) != (y_end <= middles))
        x, y, x_end, y_end = (each[edges, 0] for each in (x, y, x_end, y_end))
        crossing = x + (middles[rows] - y) * (x_end - x) / (y_end - y)
        np.add.at(changes, (rows, np.clip(np.ceil(crossing - 0.5), 0, width).astype(np.int64)), 1)
    return np.asarray(changes.cumsum(axis=1)[:, :width] % 2 == 1)


def _png(values: Pixels, most: int) -> bytes:
    """Return an image of masks: with the palette of VOC, or in its colours where there are more numbers."""
    from PIL import Image

    if most < _PALETTE:
        image = Image.fromarray(values.astype(np.uint8))
        image.putpalette([channel for number in range(256) for channel in class_colour(number)])
    else:
        table = np.array([class_colour(number) for number in range(most + 1)], np.uint8)
        image = Image.fromarray(table[values])
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()
