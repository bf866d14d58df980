"""Pascal VOC files: an XML file with the boxes of each image.

Edges are pixels counted from 1, the last one included: ``x = xmin - 1`` and ``width = xmax - xmin + 1`` (the VOC2012
development kit, annotation guidelines and ``VOCevaldet.m``). Files do so whether their numbers are whole or not. Sums
are made of the decimal numbers, so nothing is rounded on the way.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, localcontext
from pathlib import Path
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat
from xml.sax.saxutils import escape

from framedex.annotations.boxes import Box, label_of, number
from framedex.annotations.folders import files_below, is_folder, pictures_beside, stem, subfolders, swapped
from framedex.annotations.problems import Problem, Problems, problem, without_problems
from framedex.annotations.progress import part
from framedex.annotations.tables import write_labels
from framedex.annotations.written import AnnotatedImages, Files, boxes_by_image, left_out
from framedex.errors import InvalidInput
from framedex.progress import ShareProgress
from framedex.regular_files import TooLarge, read_bytes

_SUFFIX = ".xml"
_PICTURES = {"Annotations": "JPEGImages", "annotations": "images"}
"""Names of the folders of pictures, by those of the folders of annotations beside them."""
_ANNOTATIONS = {pictures: annotations for annotations, pictures in _PICTURES.items()}
_LARGEST = 2**24  # bytes of a file: some 40,000 objects
_EDGES = ("xmin", "ymin", "xmax", "ymax")
_DIGITS = 700  # of a sum of any two numbers of 64 bits
_LINE_ENDS = {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"}  # which parsers would change
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no place for (section 2.2)."""
_REPLACEMENT = "\ufffd"


def is_voc(folder: Path) -> bool:
    """Return whether there are XML files in a folder, or below ``Annotations`` in it or in a folder in it."""
    parts = (folder, *subfolders(folder))
    return _has_xml(folder) or any(_has_xml_below(each / name) for each in parts for name in _PICTURES)


def _has_xml(folder: Path) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.endswith(_SUFFIX) for entry in entries)
    except OSError:
        return False


def _has_xml_below(folder: Path) -> bool:
    try:
        return is_folder(folder) and next(files_below(os.fspath(folder), _SUFFIX), None) is not None
    except OSError:
        return False


# Reading


def read_boxes(folder: Path, problems: Problems) -> Iterator[Box]:
    """Yield the boxes of all VOC files below a folder, picture by picture; each name is a path within the folder.

    Pictures are beside their files, or in ``JPEGImages`` beside ``Annotations``, or in ``images`` beside
    ``annotations``. A picture is that which ``filename`` names, if it is there; else that with the name of the XML
    file; and if neither is, what ``filename`` says. Files that cannot be understood are problems, as are objects.

    Args:
        folder: of the files.
        problems: what is wrong is added; the rest is yielded.

    Raises:
        InvalidInput: there is no VOC file, or a folder cannot be read.
    """
    beside, found = pictures_beside(os.fspath(folder)), 0
    try:
        for path in files_below(os.fspath(folder), _SUFFIX):
            try:
                root = _read(folder / path)
            except InvalidInput as error:
                problems.add(problem(path, os.path.basename(path), str(error)))  # noqa: PTH119
                continue
            found += 1
            yield from without_problems(_boxes(root, _name(path, root, beside), path), problems)
    except OSError as error:
        raise InvalidInput(f"cannot read the annotations below {os.fspath(folder)!r}: {error}") from error
    if not found:
        raise InvalidInput(f"{os.fspath(folder)!r} holds no Pascal VOC file: XML with <annotation> outermost")


def _read(path: Path) -> Element:
    try:
        content = read_bytes(path, _LARGEST)
    except TooLarge:
        raise InvalidInput(
            f"{os.fspath(path)!r} has more than {_LARGEST:,} bytes; a Pascal VOC file is of one picture"
        ) from None
    except OSError as error:
        raise InvalidInput(f"cannot read {os.fspath(path)!r}: {error.strerror or error}") from error
    builder, parser = TreeBuilder(), expat.ParserCreate()

    def refuse(name: str, *_: object) -> None:
        raise InvalidInput(f"{os.fspath(path)!r} declares the entity {name!r}; Pascal VOC files have none")

    # Entities can stand for each other, and so for text of any length. Without a handler no other file is fetched.
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # also of encodings that are unknown
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{os.fspath(path)!r} is no XML: {error}") from error
    root = builder.close()
    if root.tag != "annotation":
        raise InvalidInput(
            f"{os.fspath(path)!r} is no Pascal VOC file: <annotation> must be outermost, not <{root.tag}>"
        )
    return root


def _name(path: str, root: Element, beside: Callable[[str], Mapping[str, str]]) -> str:
    """Return the name of a file's picture."""
    folder, bare = os.path.split(path.removesuffix(_SUFFIX))
    where = swapped(folder, _PICTURES)
    if where is None or not beside(where):
        where = folder
    told = os.path.basename((root.findtext("filename") or "").strip().replace("\\", "/"))  # noqa: PTH119
    pictures = beside(where)
    if pictures.get(os.path.splitext(told)[0]) != told:  # noqa: PTH122
        told = pictures.get(bare) or told or bare
    return os.path.join(where, told)  # noqa: PTH118 - names may be any bytes


def _boxes(root: Element, name: str, path: str) -> Iterator[Box | Problem]:
    for place, item in enumerate(root.iter("object"), 1):
        yield _box(item, name, f"{path}: object {place}")


def _box(item: Element, name: str, place: str) -> Box | Problem:
    label = label_of(item.findtext("name"))
    if not label:
        return problem(place, item.findtext("name"), "needs a <name>")
    texts = {edge: (item.findtext(f"bndbox/{edge}") or "").strip() for edge in _EDGES}
    left, top, right, bottom = map(_decimal, texts.values())
    if left is None or top is None or right is None or bottom is None:
        return problem(place, texts, "<bndbox> must have finite numbers of pixels as xmin, ymin, xmax and ymax")
    with localcontext(prec=_DIGITS):
        x, y, width, height = map(float, (left - 1, top - 1, right - left + 1, bottom - top + 1))
    truncated, difficult = ((item.findtext(flag) or "").strip() == "1" for flag in ("truncated", "difficult"))
    return Box(
        name, x, y, width, height, label, source="voc", truncated=truncated, difficult=difficult, place=place
    )  # fmt: skip


def _decimal(text: str) -> Decimal | None:
    """Return a finite number with all its digits; None for any other text."""
    try:
        return None if number(text) is None else Decimal(text.strip())
    except ArithmeticError:  # of exponents that no computer holds
        return None


# Writing


def write(files: Files, images: AnnotatedImages, progress: ShareProgress) -> list[str]:
    """Write a file for each image that has boxes; return in words what they do not hold.

    Files are in ``annotations`` beside ``images``; without image files, beside the images' places in the source. Labels
    and captions of whole images are beside them as a table. Control characters in labels are replaced (U+FFFD).
    """
    if images.with_boxes:
        for block in images.blocks(["file_name", "width", "height", "objects"], part(progress, 0.0, 0.9)):
            for name, size, boxes in boxes_by_image(block):
                path = f"annotations/{stem(name)}{_SUFFIX}" if images.folder else _path(name)
                files.add(path, _file_text(name, boxes, size or (0, 0)).encode())
    write_labels(files, images, part(progress, 0.9, 1.0))
    return left_out(images, ("original_id", "confidence", "iscrowd"), "VOC") if images.with_boxes else []


def _path(name: str) -> str:
    """Return the path of the file of a picture."""
    folder, base = os.path.split(os.path.splitext(name)[0])  # noqa: PTH122
    return os.path.join(swapped(folder, _ANNOTATIONS) or folder, f"{base}{_SUFFIX}")  # noqa: PTH118


def _file_text(name: str, boxes: Iterable[Box], size: tuple[int, int]) -> str:
    """Return the content of the file of an image."""
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


def _object(box: Box) -> str:
    with localcontext(prec=_DIGITS):
        x, y, width, height = (Decimal(repr(each)) for each in (box.x, box.y, box.width, box.height))
        edges = zip(_EDGES, (x + 1, y + 1, x + width, y + height), strict=True)
        texts = "".join(f"\n\t\t\t<{edge}>{_plain(value)}</{edge}>" for edge, value in edges)
    return (
        f"\t<object>\n\t\t<name>{_text(box.label)}</name>\n\t\t<pose>Unspecified</pose>"
        f"\n\t\t<truncated>{int(box.truncated)}</truncated>\n\t\t<difficult>{int(box.difficult)}</difficult>"
        f"\n\t\t<bndbox>{texts}\n\t\t</bndbox>\n\t</object>"
    )


def _plain(value: Decimal) -> str:
    """Return a number without an exponent, and whole numbers without a point."""
    return format(value.quantize(Decimal(1)) if value == value.to_integral_value() else value, "f")


def _text(text: str) -> str:
    return escape(_NO_XML.sub(_REPLACEMENT, text), _LINE_ENDS)
