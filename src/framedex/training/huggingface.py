"""The rows of a view as a dataset of the library ``datasets`` of Hugging Face."""

import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex.errors import MissingDependency
from framedex.media.row_images import png
from framedex.training.rows import classes_in
from framedex.training.stored_images import Images

_IMAGE = pa.struct([pa.field("bytes", pa.binary()), pa.field("path", pa.string())])
_ROWS = 256  # in a batch: images that are no file are in memory that long


def check_huggingface() -> None:
    """Check that the library is installed.

    Raises:
        MissingDependency: it is not.
    """
    try:
        import datasets  # noqa: F401 - only to raise a clear error if it is missing
    except ImportError:
        raise MissingDependency("to_huggingface needs datasets: pip install 'framedex[datasets]'") from None


def huggingface_dataset(images: Images, rows: pa.Table) -> Any:
    """Return a :class:`datasets.Dataset` of images and of columns about them.

    Image files are named by their paths and read when they are asked for. Frames, crops and objects in buckets are in
    the dataset, without a loss. The rows are in a temporary file that is removed with the dataset or at the exit.

    Args:
        images: the images.
        rows: columns about them, in the same order, with the class list of their dataset. Columns whose field has the
            metadata ``classes`` hold labels.

    Raises:
        ImportError: ``datasets`` is not installed.
        NotFound: a file whose content is needed is gone.
    """
    import datasets

    classes = classes_in(rows)
    features = {"image": datasets.Image(), **{each.name: _feature(each, classes) for each in rows.schema}}
    schema = datasets.Features(features).arrow_schema
    folder = Path(tempfile.mkdtemp(prefix="framedex-"))
    try:
        with pa.OSFile(str(folder / "rows.arrow"), "wb") as sink, pa.ipc.new_stream(sink, schema) as stream:
            for batch in _batches(images, rows, classes, schema):
                stream.write_batch(batch)
        dataset = datasets.Dataset.from_file(str(folder / "rows.arrow"))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(dataset, shutil.rmtree, folder, ignore_errors=True)
    return dataset


def class_field(name: str, kind: pa.DataType) -> pa.Field:
    """Return a field whose texts are labels."""
    return pa.field(name, kind, metadata={b"classes": b"1"})


def _feature(field: pa.Field, classes: Sequence[str]) -> Any:
    """Return the feature of a column; labels become numbers of classes."""
    import datasets

    is_class = b"classes" in (field.metadata or {})
    kind = field.type
    if pa.types.is_struct(kind):
        return {each.name: _feature(each, classes) for each in kind}
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        length = kind.list_size if pa.types.is_fixed_size_list(kind) else -1
        inner = pa.field("item", kind.value_type, metadata=field.metadata)
        return datasets.List(_feature(inner, classes), length=length)
    if is_class:
        return datasets.ClassLabel(names=list(classes))
    return datasets.Features.from_arrow_schema(pa.schema([field]))[field.name]


def _batches(images: Images, rows: pa.Table, classes: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    names = pa.array(classes, pa.string())
    for start in range(0, len(rows), _ROWS):
        block = rows.slice(start, _ROWS).combine_chunks()
        places = range(start, start + len(block))
        columns = [pa.array([_stored(images, place) for place in places], _IMAGE)]
        columns += [
            _numbered(block[field.name].combine_chunks(), field, names).cast(schema.field(field.name).type)
            for field in rows.schema
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _stored(images: Images, place: int) -> dict[str, Any]:
    """Return the path of a local image file, or the content of another image."""
    if not images.is_whole_file(place):
        return {"bytes": png(images.read(place)), "path": None}
    path = images.local_path(place)
    return {"bytes": images.data(place) if path is None else None, "path": path}


def _numbered(values: pa.Array, field: pa.Field, classes: pa.Array) -> pa.Array:
    """Return a column in which labels are the numbers of their classes."""
    kind, is_class = values.type, b"classes" in (field.metadata or {})
    if pa.types.is_struct(kind):
        children = [_numbered(values.field(number), each, classes) for number, each in enumerate(kind)]
        names = [each.name for each in kind]
        return pa.StructArray.from_arrays(children, names)
    if pa.types.is_list(kind) and is_class:
        return pa.ListArray.from_arrays(values.offsets, pc.index_in(values.values, value_set=classes).cast(pa.int64()))
    return pc.index_in(values, value_set=classes).cast(pa.int64()) if is_class else values
