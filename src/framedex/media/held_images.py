"""Images that a program holds: datasets of Hugging Face and torchvision, Parquet with bytes, Pillow images, arrays.

Each becomes a file in memory with a row of metadata as in ``metadata.jsonl`` of Hugging Face, see
:mod:`framedex.annotations.huggingface`.
"""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow as pa

from framedex.annotations.parts import part_of
from framedex.core.allowed_folders import AllowedFolders, each_within, within
from framedex.core.regular_files import engine_file, scan
from framedex.core.skipped import Skipped
from framedex.core.suffixes import is_media
from framedex.errors import InvalidInput
from framedex.media.held_targets import kinds_of, row_of_target
from framedex.media.row_images import png
from framedex.settings import user_path

METADATA = "metadata.jsonl"
"""The file for the metadata of images."""
_ROWS = 64
_LOOKS = 20  # items of a dataset of which one must be an image
_NO_IMAGE = "rows without an image"
_UNUSABLE = "images that cannot be stored"
_OTHER_VALUES = "values that no field can hold"
_SUFFIXES = ((b"\x89PNG", ".png"), (b"\xff\xd8", ".jpg"), (b"GIF8", ".gif"), (b"BM", ".bmp"), (b"II*\0", ".tif"),
             (b"MM\0*", ".tif"))  # fmt: skip
_ARRAYS = "an array of an image has the type uint8 or uint16 and the shape (H, W), (H, W, 3) or (H, W, 4)"


_Row = tuple[str, Any, Mapping[str, Any], str]
"""The name of an image, the image, its metadata, and its part; without them, empty texts and None.

An image that cannot be read is the error.
"""


@dataclass(frozen=True)
class HeldImage:
    """An image that is held by a program.

    Attributes:
        name: of the file to make, a relative path with slashes; its first folder may be a part, such as ``train``.
        content: of the file.
        row: the metadata: ``label``, ``text``, ``objects`` and further values.
    """

    name: str
    content: bytes
    row: Mapping[str, Any]


@dataclass
class HeldImages:
    """Images that a program holds, in their order.

    Attributes:
        shown: what they are, for messages.
        count: the number of rows; None if it is unknown.
        skipped: what the last iteration left out.
    """

    shown: str
    count: int | None
    _rows: Callable[[Skipped], Iterator[_Row]]
    skipped: Skipped = field(default_factory=Skipped)

    def __iter__(self) -> Iterator[HeldImage]:
        """Yield the images with names of which no two are equal."""
        self.skipped = Skipped()
        taken: set[str] = set()
        for number, (name, image, row, part) in enumerate(self._rows(self.skipped)):
            try:
                content = image_file(image)
            except InvalidInput as error:
                self.skipped.note(_UNUSABLE, f"row {number}: {error}")
                continue
            if content is None:
                self.skipped.note(_NO_IMAGE, f"row {number}")
                continue
            path = _free(_file_name(name, number, content), part, number, taken)
            taken.add(path)
            yield HeldImage(path, content, row)


def held_images(source: Any, allowed: AllowedFolders | None) -> HeldImages | None:
    """Return the images that a source holds in memory or in Parquet files; None for a source of another kind.

    Args:
        source: a ``datasets.Dataset`` or ``DatasetDict`` with a column of images; a Parquet file, or a folder of such,
            with a column of images; a dataset with pairs (image, target), as those of torchvision; or a list of
            Pillow images, arrays, encoded files, pairs (image, target), or pairs (name, image).
        allowed: the folders from which files may be read; None for any.

    Raises:
        InvalidInput: a dataset has no column of images.
        Forbidden: a path is in no allowed folder.
    """
    if path_pairs(source) is not None:
        return None
    if isinstance(source, str | os.PathLike):
        return None if "://" in os.fspath(source) else _of_parquet(user_path(source), allowed)
    if type(source).__module__.partition(".")[0] == "datasets":
        return _of_hugging_face(source)
    if isinstance(source, np.ndarray) and source.ndim == 4:
        return _of_items(source, len(source))
    if isinstance(source, list | tuple):
        return _of_items(source, len(source)) if source and _is_held(source[0]) else None
    if hasattr(source, "__getitem__") and hasattr(source, "__len__") and not hasattr(source, "__arrow_c_stream__"):
        if not len(source) or isinstance(source, bytes | bytearray | Mapping | pa.Table | np.ndarray):
            return None
        looks = range(min(len(source), _LOOKS))
        return _of_items(source, len(source)) if any(_is_held(_item(source, number)) for number in looks) else None
    return None


def path_pairs(source: Any) -> pa.Table | None:
    """Return the paths and the labels of a dataset of torchvision that knows its files, as ImageFolder; else None.

    A ``Subset`` of PyTorch knows those of its dataset.
    """
    if "Subset" in kinds_of(source):
        pairs = path_pairs(source.dataset)
        return None if pairs is None else pairs.take(list(source.indices))
    samples, classes = getattr(source, "samples", None), getattr(source, "classes", None)
    if not isinstance(samples, list) or not isinstance(classes, list) or not samples:
        return None
    if not all(isinstance(path, str) and isinstance(target, int) for path, target in samples):
        return None
    return pa.table({"path": [path for path, _ in samples], "label": [str(classes[target]) for _, target in samples]})


# Items: images, encoded files, pairs


def _is_image(item: Any) -> bool:
    return isinstance(item, np.ndarray | bytes) or hasattr(item, "detach") or _is_pillow(item)


def _is_pillow(item: Any) -> bool:
    return type(item).__module__.partition(".")[0] == "PIL" and hasattr(item, "save")


def _is_held(item: Any) -> bool:
    if isinstance(item, tuple) and len(item) == 2:
        return _is_image(item[0]) or (isinstance(item[0], str) and _is_image(item[1]))
    return _is_image(item)


def _item(source: Any, number: int) -> Any:
    """Return an item of a dataset; the error if it cannot be read."""
    try:
        return source[number]
    except Exception as error:  # datasets decode files, and raise errors of every kind
        return error


def _of_items(source: Any, count: int) -> HeldImages:
    def rows(skipped: Skipped) -> Iterator[_Row]:
        for number in range(count):
            item = _item(source, number)
            name, image, target = "", item, None
            if isinstance(item, tuple) and len(item) == 2:
                named = isinstance(item[0], str)
                name, image, target = (item[0], item[1], None) if named else ("", *item)
            held = image if _is_image(image) or isinstance(image, Exception) else None
            yield name, held, row_of_target(target, source, number, skipped.note), ""

    return HeldImages(f"a {type(source).__name__} of images", count, rows)


def image_file(image: Any) -> bytes | None:
    """Return an image as a file: as it is, if it is one; else a PNG file, which loses nothing.

    Raises:
        InvalidInput: no file holds it.
    """
    if image is None or (isinstance(image, bytes) and not image):
        return None
    if isinstance(image, bytes):
        return image
    if isinstance(image, Path):
        try:
            return image.read_bytes()
        except OSError as error:
            raise InvalidInput(f"cannot read {os.fspath(image)!r}: {error.strerror}") from None
    if isinstance(image, Exception):
        raise InvalidInput(f"{type(image).__name__}: {image}")
    if _is_pillow(image):
        return _of_pillow(image)
    try:
        array = image.detach().cpu().numpy() if hasattr(image, "detach") else image
    except (TypeError, RuntimeError) as error:  # NumPy lacks some types
        raise InvalidInput(f"{_ARRAYS}: {error}") from None
    if not isinstance(array, np.ndarray):
        raise InvalidInput(f"{_ARRAYS}, not {type(array).__name__}")
    if hasattr(image, "detach") and array.ndim == 3 and array.shape[0] in (1, 3, 4):
        array = np.moveaxis(array, 0, 2)
        if array.dtype.kind == "f" and array.size and array.min() >= 0 and array.max() <= 1:  # as ToTensor makes it
            array = np.round(array * 255).astype(np.uint8)
    return _of_array(array)


def _of_pillow(image: Any) -> bytes:
    if image.mode == "F":
        raise InvalidInput(f"{_ARRAYS}, not an image of floats: no file holds them as they are")
    buffer = io.BytesIO()
    try:
        (image if image.mode in ("1", "L", "LA", "I;16", "I", "P", "RGB", "RGBA") else image.convert("RGB")).save(
            buffer, "PNG", compress_level=1
        )
    except (OSError, ValueError, SyntaxError) as error:
        raise InvalidInput(f"the image cannot be written: {error}") from None
    return buffer.getvalue()


def _of_array(array: Any) -> bytes:
    array = array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array
    if (
        array.dtype not in (np.uint8, np.uint16)
        or not array.size
        or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (3, 4)))
    ):
        raise InvalidInput(f"{_ARRAYS}, not {array.dtype} and {array.shape}")
    if array.ndim == 3 and array.shape[2] == 3 and array.dtype == np.uint8:
        return png(np.ascontiguousarray(array))
    if array.ndim == 3:
        array = cv2.cvtColor(array, cv2.COLOR_RGBA2BGRA if array.shape[2] == 4 else cv2.COLOR_RGB2BGR)
    is_encoded, data = cv2.imencode(".png", np.ascontiguousarray(array), [cv2.IMWRITE_PNG_COMPRESSION, 1])
    assert is_encoded, "an array of this type is a PNG"
    return bytes(data.tobytes())


def _file_name(name: str, number: int, content: bytes) -> str:
    """Return the last part of a name, with the suffix of an image; a number if there is no name."""
    last = name.replace("\\", "/").rpartition("/")[2].strip()
    last = "".join(letter for letter in last if letter.isprintable()) if last not in (".", "..") else ""
    if last and is_media(last):
        return last
    suffix = next((each for magic, each in _SUFFIXES if content.startswith(magic)), None)
    suffix = suffix or (".webp" if content[8:12] == b"WEBP" else ".avif" if content[4:8] == b"ftyp" else ".png")
    return (last or f"{number:06}") + suffix


def _free(name: str, part: str, number: int, taken: set[str]) -> str:
    path = f"{part}/{name}" if part else name
    stem, suffix = os.path.splitext(path)  # noqa: PTH122
    while path in taken:
        path, number = f"{stem}-{number}{suffix}", number + 1
    return path


# Arrow: datasets of Hugging Face, and Parquet files as they write them


def _of_hugging_face(source: Any) -> HeldImages | None:
    parts = dict(source) if isinstance(source, dict) else {"": source}
    opened = [(part_of(name) or "", each) for name, each in parts.items() if hasattr(each, "with_format")]
    if not opened:
        return None
    features = getattr(opened[0][1], "features", None)
    features = {} if features is None else features.to_dict()
    if not _image_columns(features):
        raise InvalidInput(f"the dataset has no column of images; its columns are {', '.join(features) or 'unknown'}")

    def tables() -> Iterator[tuple[str, pa.Table]]:
        for part, each in opened:
            yield from ((part, table) for table in each.with_format("arrow").iter(batch_size=_ROWS))

    counts = [each.num_rows for _, each in opened if isinstance(getattr(each, "num_rows", None), int)]
    count = sum(counts) if len(counts) == len(opened) else None

    def rows(skipped: Skipped) -> Iterator[_Row]:
        return _arrow(tables(), features, skipped, has_files=True)

    return HeldImages(f"a {type(source).__name__} of Hugging Face", count, rows)


def _of_parquet(path: Path, allowed: AllowedFolders | None) -> HeldImages | None:
    import pyarrow.parquet as pq

    files = _parquet_files(path, allowed)
    if not files:
        return None
    try:
        with within(allowed), engine_file(files[0]) as opened:
            schema = pq.read_schema(opened)
        stored = _stored_features(schema)
        features = {name: stored.get(name) or _feature(schema.field(name).type) for name in schema.names}
    except (
        OSError,
        ValueError,
        KeyError,
        pa.ArrowException,
    ):  # invalid UTF-8 is a ValueError, an equal name a KeyError
        return None
    if not _image_columns(features):
        return None

    def tables(file: Path) -> Iterator[tuple[str, pa.Table]]:
        part = part_of(file.name.partition(".")[0].partition("-")[0]) or part_of(file.parent.name) or ""
        with engine_file(file) as opened, pq.ParquetFile(opened) as reader:
            for batch in reader.iter_batches(_ROWS):
                yield part, pa.Table.from_batches([batch])

    def rows(skipped: Skipped) -> Iterator[_Row]:
        for file in files:
            try:
                of_file = each_within(allowed, partial(tables, file))
                yield from _arrow(of_file, features, skipped, has_files=False)
            except (OSError, ValueError, KeyError, pa.ArrowException) as error:  # invalid UTF-8 is a ValueError
                skipped.note("Parquet files that cannot be read to their end", f"{file.name}: {error}")

    return HeldImages(f"{os.fspath(path)!r}", None, rows)


def _stored_features(schema: pa.Schema) -> Mapping[str, Any]:
    """Return the features that Hugging Face wrote into a schema; none if they are damaged."""
    try:
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return features if isinstance(features, dict) else {}


def _parquet_files(path: Path, allowed: AllowedFolders | None) -> list[Path]:
    """Return a Parquet file, or those of a folder and of the folders in it, if it has no image."""
    if path.suffix.lower() == ".parquet":
        return [path] if os.path.isfile(path) else []  # noqa: PTH113 - a name may be too long
    if not os.path.isdir(path):  # noqa: PTH112
        return []
    found, folders = list[Path](), [path]
    try:
        with within(allowed):
            for folder in folders:
                names = []
                with scan(folder) as entries:
                    for entry in entries:
                        if entry.name.startswith("."):
                            continue
                        if is_media(entry.name):
                            return []
                        if folder is path and entry.is_dir():
                            folders.append(folder / entry.name)
                        elif entry.name.endswith(".parquet"):
                            names.append(entry.name)
                folders[1:] = sorted(folders[1:])
                found += [folder / name for name in sorted(names) if name != "metadata.parquet"]
    except OSError:
        return []
    return found


def _feature(kind: pa.DataType) -> Any:
    """Return the feature that a column without one has: an image, if it has bytes and a path."""
    if pa.types.is_struct(kind) and {"bytes", "path"} <= {kind.field(n).name for n in range(kind.num_fields)}:
        return {"_type": "Image"}
    return {"_type": "Value"}


def _image_columns(features: Mapping[str, Any]) -> list[str]:
    return [name for name, each in features.items() if isinstance(each, dict) and each.get("_type") == "Image"]


# A file that a dataset names is read if the program holds the dataset; a Parquet file may come from a stranger.
def _arrow(
    tables: Iterator[tuple[str, pa.Table]], features: Mapping[str, Any], skipped: Skipped, *, has_files: bool
) -> Iterator[_Row]:
    image_column, *others = _image_columns(features)
    for part, table in tables:
        names = [name for name in table.schema.names if name != image_column and name not in others]
        if others and not skipped["further columns of images"]:
            skipped.count("further columns of images", len(others), others)
        for image, *values in zip(*(table[name].to_pylist() for name in (image_column, *names)), strict=True):
            row = {name: _value(value, features.get(name)) for name, value in zip(names, values, strict=True)}
            stored = {name: value for name, value in row.items() if _is_json(value)}
            for name in row.keys() - stored.keys():
                skipped.note(_OTHER_VALUES, f"column {name!r}")
            cell = image if isinstance(image, dict) else {"bytes": image}
            said = cell.get("path")
            path = said if isinstance(said, str) else ""
            name = path or (row["file_name"] if isinstance(row.get("file_name"), str) else "")
            yield name, cell.get("bytes") or (Path(path) if path and has_files else None), stored, part


def _value(value: Any, feature: Any) -> Any:
    """Return a value with names of classes in the place of their numbers."""
    if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
        names = feature.get("names")
        if isinstance(names, list) and isinstance(value, int) and 0 <= value < len(names):
            return names[value]
        return None
    known = feature if isinstance(feature, dict) else {}
    if isinstance(value, list):
        return [_value(each, known.get("feature")) for each in value]
    if isinstance(value, dict):
        is_list = "_type" in known and isinstance(known.get("feature"), dict)  # stored as a struct of lists
        inner = known["feature"] if is_list else known
        return {
            name: _value(each, {"feature": inner.get(name)} if is_list else inner.get(name))
            for name, each in value.items()
        }
    return value.isoformat() if hasattr(value, "isoformat") else value


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True
