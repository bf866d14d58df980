"""Labels and captions of images in a COCO file, read item by item, so that memory does not grow with its boxes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from framedex.errors import InvalidInput
from framedex.media.json_items import read_items
from framedex.media.labels import parse_labels

_ARRAYS = ("images", "categories", "annotations")
_ID = "an 'id', a number or a text that no other has"


Row = tuple[str, tuple[str, ...], str | None, bool]
"""Name of the image, labels, caption, and whether these are all its labels."""


def read_coco(path: Path) -> Iterator[Row]:
    """Yield a row an image, and a row an annotation with its category, or its caption.

    An image that has ``labels``, names in a list, has these, whatever categories its annotations have. Else the
    categories of boxes are labels of their image, too. A box whose image or category is not there says nothing here:
    what reads boxes says what is wrong with it.

    Raises:
        InvalidInput: it is no COCO file, or an image, a category or an annotation without a box cannot be understood.
    """
    names = _Names(path)
    yield from (
        (name, names.listed.get(number, ()), None, number in names.listed) for number, name in names.images.items()
    )
    for key, place, item in read_items(path):
        if key == "annotations" and place is not None:
            row = _row(path, place, item, names.images, names.categories)
            if row is not None:
                name, labels, caption = row
                yield name, () if item["image_id"] in names.listed else labels, caption, False


class _Names:
    """The names of images and of categories by id.

    Attributes:
        images, categories: the names.
        listed: labels of images that have a list of them.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.images: dict[Any, str] = {}
        self.categories: dict[Any, str] = {}
        self.listed: dict[Any, tuple[str, ...]] = {}
        arrays = set()
        for key, place, item in read_items(path):
            if key not in _ARRAYS:
                continue
            if place is not None:
                self._add(key, place, item)
                continue
            if item is not None and item != []:
                raise InvalidInput(f"{path}: {key!r} must be an array, not {type(item).__name__}")
            arrays.add(key if item is not None else "")
            if key == "annotations" and arrays >= set(_ARRAYS):
                break  # most files have the long array last; it need not be read twice
        if "images" not in arrays:
            raise InvalidInput(f"{path} is not in COCO format: an object with {', '.join(map(repr, _ARRAYS))}")

    def _add(self, array: str, place: int, item: Any) -> None:
        if array == "annotations":
            return
        names, key = (self.images, "file_name") if array == "images" else (self.categories, "name")
        identifier, name = (item.get("id"), item.get(key)) if isinstance(item, dict) else (None, None)
        if not _is_id(identifier) or name is None:
            raise InvalidInput(f"{self._path}: {array}[{place}] needs {_ID}, and {key!r}")
        if names.setdefault(identifier, str(name)) != str(name):
            other = names[identifier]
            raise InvalidInput(f"{self._path}: {array}[{place}] has the id {identifier!r} of {other!r}; it needs {_ID}")
        if array == "images" and isinstance(item.get("labels"), list):
            self.listed[identifier] = parse_labels(item["labels"])


def _row(
    path: Path, place: int, item: Any, images: Mapping[Any, str], categories: Mapping[Any, str]
) -> tuple[str, tuple[str, ...], str | None] | None:
    parts = item if isinstance(item, dict) else {}
    image, category, caption = (parts.get(key) for key in ("image_id", "category_id", "caption"))
    is_known = _is_id(category) and category in categories
    if not _is_id(image) or image not in images:
        if parts.get("bbox"):
            return None
        raise InvalidInput(f"{path}: annotations[{place}] names no image of 'images'")
    if category is not None and not is_known:
        if parts.get("bbox"):
            return None
        raise InvalidInput(f"{path}: annotations[{place}] has category_id {category!r}, which 'categories' lacks")
    return images[image], (categories[category],) if is_known else (), None if caption is None else str(caption)


def _is_id(value: Any) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)
