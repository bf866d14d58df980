"""Pascal VOC files: one XML file with the boxes of each image.

Edges are pixels counted from 1, and the last pixel is included: ``x = xmin - 1`` and ``width = xmax - xmin + 1`` (the
VOC2012 development kit, annotation guidelines and ``VOCevaldet.m``). This holds for fractional numbers, too. Sums use
decimal numbers, so no digit is lost by rounding.
"""

import json as json_values
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

import pyarrow.compute as pc

from framedex.annotations import json_text as json
from framedex.annotations.attributes import OCCLUDED, attributes_of
from framedex.annotations.boxes import Box, finite_number, label_of
from framedex.annotations.cvat import FILE as CVAT_FILE
from framedex.annotations.cvat import is_cvat
from framedex.annotations.declared_sizes import Size, size_of
from framedex.annotations.folders import (
    image_finder,
    is_folder,
    list_files_below,
    replace_folder,
    stem,
    stems,
    subfolders,
)
from framedex.annotations.label_map import LABEL_MAP, label_map
from framedex.annotations.output import SPLIT, AnnotatedImages, Files, boxes_by_image, column, omissions
from framedex.annotations.parts import part_of
from framedex.annotations.problems import AnnotationProblem, Problems, problem, without_problems
from framedex.annotations.progress import part
from framedex.annotations.tables import write_label_table
from framedex.core.counts import counted
from framedex.core.name_forms import normal_name
from framedex.core.progress import ShareProgress
from framedex.core.regular_files import TooLarge, read_bytes, scan
from framedex.errors import InvalidInput

_SUFFIX = ".xml"
_DEVKIT = "VOCdevkit"
_IMAGE_FOLDERS = {"Annotations": "JPEGImages", "annotations": "images"}
"""Folders of images, by the names of the annotation folders beside them."""
_ANNOTATION_FOLDERS = {images: annotations for annotations, images in _IMAGE_FOLDERS.items()}
_MISNAMED = "VOC files that name another image than theirs"
_LARGEST = 2**24  # bytes of a file: some 40,000 objects
_EDGES = ("xmin", "ymin", "xmax", "ymax")
_FLAGS = ("truncated", "difficult", OCCLUDED)
_NO_POSE = "Unspecified"
_DIGITS = 700  # enough for the sum of any two float64 numbers
_WHOLE = 15  # digits; longer numbers may be beyond those of float64
_LINE_ENDS = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}  # XML parsers normalise these characters
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow (section 2.2)."""
_OCCLUDED = "\n\t\t<occluded>1</occluded>"
_REPLACEMENT = "\ufffd"


def is_voc(folder: Path) -> bool:
    """Return whether there are XML files in a folder, in one of its parts, or below its or their ``Annotations``.

    A part is a folder such as ``train``.
    """
    homes = (folder, *homes_of(folder))
    if any(_has_xml(each) for each in homes if each == folder or part_of(each.name) is not None):
        return True
    return any(_has_xml_below(each / name) for each in homes for name in _IMAGE_FOLDERS)


def homes_of(folder: Path) -> list[Path]:
    """Return the folders in a folder that may be of VOC: also those in ``VOCdevkit``, as ``VOCdevkit/VOC2012``."""
    found = subfolders(folder)
    return [*found, *(inner for each in found if each.name == _DEVKIT for inner in subfolders(each))]


def label_file_finder(_folder: Path) -> Callable[[str], bool]:
    """Return a function that says whether a path within a folder is that of a file of VOC: XML, or the class list."""
    return lambda path: path.endswith(_SUFFIX) or path.rpartition("/")[2] == LABEL_MAP


def _has_xml(folder: Path) -> bool:
    try:
        with scan(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(_SUFFIX)]
        return any(name != CVAT_FILE for name in names) or (bool(names) and not is_cvat(folder))
    except OSError:
        return False


def _has_xml_below(folder: Path) -> bool:
    try:
        return is_folder(folder) and next(list_files_below(os.fspath(folder), _SUFFIX), None) is not None
    except OSError:
        return False


# Reading


def read_boxes(folder: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of all VOC files below a folder, image by image. Each name is a path within the folder.

    An image lies beside its XML file, in ``JPEGImages`` beside ``Annotations``, or in ``images`` beside
    ``annotations``. It is the image with the XML file's stem; of several the one that is ``filename``, which counts
    alone if there is none. Malformed files and objects, and files that name another image, are problems.

    Args:
        folder: with the VOC files.
        problems: collects malformed files and objects.

    Raises:
        InvalidInput: the folder contains no VOC file, or cannot be read.
    """
    images_in, n_files = image_finder(os.fspath(folder)), 0
    try:
        for path in list_files_below(os.fspath(folder), _SUFFIX):
            if path == CVAT_FILE and is_cvat(folder):
                continue
            try:
                root = _read(folder / path)
            except InvalidInput as error:
                problems.add(problem(path, os.path.basename(path), str(error)))  # noqa: PTH119
                continue
            n_files += 1
            name, misnamed = _name(path, root, images_in)
            if misnamed is not None:
                problems.add(misnamed)
            if name is not None:
                yield from without_problems(_boxes(root, name, path), problems)
    except OSError as error:
        raise InvalidInput(f"cannot read the annotations below {os.fspath(folder)!r}: {error}") from error
    if not n_files:
        raise InvalidInput(f"{os.fspath(folder)!r} holds no Pascal VOC file: XML with <annotation> outermost")


def _read(path: Path) -> Element:
    try:
        content = read_bytes(path, _LARGEST)
    except TooLarge:
        raise InvalidInput(
            f"{os.fspath(path)!r} has more than {_LARGEST:,} bytes; a Pascal VOC file is of one image"
        ) from None
    except OSError as error:
        raise InvalidInput(f"cannot read {os.fspath(path)!r}: {error.strerror or error}") from error
    builder, parser = TreeBuilder(), expat.ParserCreate()

    def refuse(name: str, *_: object) -> None:
        raise InvalidInput(f"{os.fspath(path)!r} declares the entity {name!r}; Pascal VOC files have none")

    # Entities can expand to text of any length. Without a handler, the parser fetches no other file.
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # LookupError: an unknown encoding
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{os.fspath(path)!r} is no XML: {error}") from error
    root = builder.close()
    if root.tag != "annotation":
        raise InvalidInput(
            f"{os.fspath(path)!r} is no Pascal VOC file: <annotation> must be outermost, not <{root.tag}>"
        )
    return root


def _name(
    path: str, root: Element, images_in: Callable[[str], Mapping[str, list[str]]]
) -> tuple[str | None, AnnotationProblem | None]:
    """Return the name of the image of a file, and a problem if the file has another or could have several."""
    folder, base_name = os.path.split(path.removesuffix(_SUFFIX))
    image_folder = replace_folder(folder, _IMAGE_FOLDERS)
    if image_folder is None or not images_in(image_folder):
        image_folder = folder
    written, names = (root.findtext("filename") or "").strip(), images_in(image_folder).get(base_name, [])
    if written and written not in names:
        written = os.path.basename(normal_name(written))  # noqa: PTH119
    if not names or written in names:
        return os.path.join(image_folder, written or base_name), None  # noqa: PTH118 - names may be any bytes
    if len(names) > 1:
        shown = " and ".join(map(repr, names))
        return None, problem(path, written, f"<filename> must be one of the images of its name, {shown}")
    misnamed = None
    if written and os.path.splitext(written)[0] != base_name:  # noqa: PTH122
        misnamed = problem(path, written, f"<filename> should be {names[0]!r}, whose objects these are", _MISNAMED)
    return os.path.join(image_folder, names[0]), misnamed  # noqa: PTH118


def _boxes(root: Element, name: str, path: str) -> Iterator[Box | AnnotationProblem]:
    size = size_of(root.findtext("size/width"), root.findtext("size/height"))
    for position, item in enumerate(root.iter("object"), 1):
        yield _box(item, name, size, f"{path}: object {position}")


def _box(item: Element, name: str, size: Size | None, location: str) -> Box | AnnotationProblem:
    label = label_of(item.findtext("name"))
    if not label:
        return problem(location, item.findtext("name"), "needs a <name>")
    found: dict[str, str | None] = {}
    for edge in (edge for box in item if box.tag == "bndbox" for edge in box):
        found.setdefault(edge.tag, edge.text)
    texts = {edge: (found.get(edge) or "").strip() for edge in _EDGES}
    sides = _sides_of(*texts.values())
    if sides is None:
        return problem(location, texts, "<bndbox> must have finite numbers of pixels as xmin, ymin, xmax and ymax")
    return Box(
        name, *sides, label, source="voc",
        **attributes_of(_attributes(item)).of_box, image_size=size, location=location,
    )  # fmt: skip


def _attributes(item: Element) -> dict[str, str]:
    """Return the flags and the pose of an object, and its attributes, as CVAT writes them."""
    found = {name: text.strip() for name in _FLAGS if (text := item.findtext(name))}
    if (pose := (item.findtext("pose") or "").strip()) not in ("", _NO_POSE):
        found["pose"] = pose
    listed = item.iterfind("attributes/attribute")
    return found | {name: each.findtext("value") or "" for each in listed if (name := each.findtext("name"))}


def _sides_of(*texts: str) -> tuple[float, float, float, float] | None:
    """Return x, y, width and height of the box with some edges; None if one is no finite number."""
    if all(each.isascii() and each.isdigit() and len(each) < _WHOLE for each in texts):  # the usual case
        left, top, right, bottom = map(int, texts)
        return float(left - 1), float(top - 1), float(right - left + 1), float(bottom - top + 1)
    edges = [each for each in map(_decimal, texts) if each is not None]
    if len(edges) != len(texts):
        return None
    with localcontext(prec=_DIGITS):
        xmin, ymin, xmax, ymax = edges
        return float(xmin - 1), float(ymin - 1), float(xmax - xmin + 1), float(ymax - ymin + 1)


def _decimal(text: str) -> Decimal | None:
    """Return a finite number with all its digits, or None for any other text."""
    try:
        return None if finite_number(text) is None else Decimal(text.strip())
    except ArithmeticError:  # an exponent beyond the limits of Decimal
        return None


# Writing


def write(files: Files, images: AnnotatedImages, progress: ShareProgress) -> list[str]:
    """Write a file for each image with boxes, and return sentences about the data that the files cannot hold.

    The files lie in ``annotations`` beside ``images``. In exports without image files, they lie beside the images'
    paths in the source. A table beside them has the labels and captions of whole images, a list the classes. Control
    characters in labels become U+FFFD. If the images are divided, lists name those of each part, and images without
    boxes have a file, too: readers open one for each name.
    """
    fractional = 0
    if images.with_boxes:
        for block in images.blocks(["file_name", "width", "height", "objects"], part(progress, 0.0, 0.9)):
            for name, size, boxes in boxes_by_image(block, every=bool(images.splits)):
                path = f"annotations/{stem(name)}{_SUFFIX}" if images.folder else _path(name)
                files.add(path, _file_text(name, boxes, size or (0, 0)).encode())
                fractional += sum(not all(map(float.is_integer, _sides(box))) for box in boxes)
    write_label_table(files, images, part(progress, 0.9, 1.0))
    files.add(LABEL_MAP, label_map(images.classes()["name"].to_pylist()))
    _write_lists(files, images)
    if not images.with_boxes:
        return []
    notes = omissions(images, ("original_id", "confidence", "iscrowd", "segmentation", "keypoints"), "VOC")
    if fractional:
        notes.append(
            f"{counted(fractional, 'boxes', 'have')} fractions of pixels, which some readers of VOC files refuse"
        )
    return notes


def _write_lists(files: Files, images: AnnotatedImages) -> None:
    """Write the image names of each part without suffixes, as ``ImageSets/Main`` of the VOC data sets has them."""
    for split in images.splits:
        with files.member(f"ImageSets/Main/{split}.txt", compressed=True) as member:
            for block in images.blocks(["file_name", "media_id", SPLIT], lambda _share: None):
                names = column(block, "file_name").filter(pc.equal(column(block, SPLIT), split))
                member.write(json.join_rows(pc.binary_join_element_wise(stems(names), "\n", ""), end=""))


def _path(name: str) -> str:
    """Return the path of an image's annotation file."""
    folder, base = os.path.split(os.path.splitext(name)[0])  # noqa: PTH122
    return os.path.join(replace_folder(folder, _ANNOTATION_FOLDERS) or folder, f"{base}{_SUFFIX}")  # noqa: PTH118


def _file_text(name: str, boxes: Iterable[Box], size: tuple[int, int]) -> str:
    """Return the content of an image's annotation file."""
    folder, base = os.path.split(name)
    lines = [
        "<annotation>",
        f"\t<folder>{_text(os.path.basename(folder))}</folder>",  # noqa: PTH119
        f"\t<filename>{_text(base)}</filename>",
        f"\t<size>\n\t\t<width>{size[0]}</width>\n\t\t<height>{size[1]}</height>\n\t\t<depth>3</depth>\n\t</size>",
        "\t<segmented>0</segmented>",
        *map(_object, boxes),
        "</annotation>\n",
    ]
    return "\n".join(lines)


def _sides(box: Box) -> tuple[float, float, float, float]:
    return float(box.x), float(box.y), float(box.width), float(box.height)


def _object(box: Box) -> str:
    with localcontext(prec=_DIGITS):
        x, y, width, height = (Decimal(repr(each)) for each in (box.x, box.y, box.width, box.height))
        edges = zip(_EDGES, (x + 1, y + 1, x + width, y + height), strict=True)
        texts = "".join(f"\n\t\t\t<{edge}>{_plain(value)}</{edge}>" for edge, value in edges)
    further = {} if box.attributes is None else json_values.loads(box.attributes)
    occluded, pose = further.pop(OCCLUDED, None), further.get("pose")
    if isinstance(pose, str) and pose.strip() == pose and pose not in ("", _NO_POSE):
        del further["pose"]
    else:
        pose = _NO_POSE
    return (
        f"\t<object>\n\t\t<name>{_text(box.label)}</name>\n\t\t<pose>{_text(pose)}</pose>"
        f"\n\t\t<truncated>{int(box.truncated)}</truncated>\n\t\t<difficult>{int(box.difficult)}</difficult>"
        f"{_OCCLUDED if occluded is True else ''}{_further(further)}"
        f"\n\t\t<bndbox>{texts}\n\t\t</bndbox>\n\t</object>"
    )


def _further(attributes: Mapping[str, Any]) -> str:
    """Return the element of further attributes, whose values become texts; an empty text for none."""
    lines = "".join(
        f"\n\t\t\t<attribute><name>{_text(name)}</name><value>{_text(_value(value))}</value></attribute>"
        for name, value in attributes.items()
    )
    return f"\n\t\t<attributes>{lines}\n\t\t</attributes>" if lines else ""


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json_values.dumps(value)


def _plain(value: Decimal) -> str:
    """Return a number without an exponent; whole numbers have no decimal point."""
    return format(value.quantize(Decimal(1)) if value == value.to_integral_value() else value, "f")


def _text(text: str) -> str:
    return escape(_NO_XML.sub(_REPLACEMENT, text), _LINE_ENDS)
