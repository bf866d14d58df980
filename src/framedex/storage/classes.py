"""The class list of a dataset: the classes of its labels and objects, with fixed ids, as a table beside the media.

A class keeps its id as long as the dataset exists, also if no image and no object has it any more. So exports of
different selections and of later states have the same ids. Clones and snapshots share the table.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.source_lists import SourceClass, merged_classes
from framedex.storage import tables
from framedex.storage.media import Media
from framedex.storage.objects import OBJECTS, objects_path
from framedex.storage.table_names import MEDIA
from framedex.storage.table_versions import Table, small_table

CLASSES = "classes"
"""Name of the table."""
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("supercategory", pa.string()),
        pa.field("details", pa.string()),
        pa.field("of_boxes", pa.bool_(), nullable=False),
    ]
)
"""Columns of a class list; the order of the rows is the order of the classes.

``supercategory`` and ``details`` are those of :class:`framedex.annotations.source_lists.SourceClass`. ``of_boxes`` is
true for classes of objects, and for classes that the annotation files of the source list; it never becomes false.
"""
_LARGEST, _MOST = 2**53, 2**63 - 1  # larger ids than the first are not exact in many readers, so no new one is above it
_FIRST = 1  # id of the first class if no source has ids


def classes_of(media: Media) -> pa.Table:
    """Return the class list of the media's generation, with the columns :data:`SCHEMA`.

    It contains all labels of the dataset. Labels that the stored list lacks, as in datasets of older versions, follow
    in alphabetical order.
    """
    versions, path = media.generation.tables, media.table.path
    media = media if media.parents is None else media.parents
    return _completed(_stored(media.table.path, media.generation.tables), path, versions)


def write_classes(
    path: Path,
    before: Mapping[str, int],
    after: Mapping[str, int],
    declared: Sequence[SourceClass] = (),
    *,
    new_labels: pa.Array | None = None,
) -> dict[str, int]:
    """Add new classes to the class list of a dataset; return the versions of a generation's tables with the list.

    Existing classes keep their ids and their order. New ones of a source keep the ids of the source that are free. All
    others get the ids above the highest one, in alphabetical order.

    Args:
        path: folder of the media table.
        before: versions of the tables of the previous generation, by name; empty for a new dataset.
        after: versions of the tables of the new generation.
        declared: classes in the lists of new annotation files.
        new_labels: the labels that media got since the previous generation; by default all labels are read.
    """
    stored = _stored(path, before)
    if CLASSES in before and new_labels is not None:
        completed = _with_labels(stored, new_labels)
    else:
        known = stored if CLASSES in before else _completed(stored, path, before)
        completed = _completed(_with_declared(known, declared), path, after)
    kept = {name: version for name, version in after.items() if name != CLASSES}
    if completed.equals(stored):
        return kept | ({CLASSES: before[CLASSES]} if CLASSES in before else {})
    version = tables.replace(_path(path), completed.to_batches(), SCHEMA)
    tables.sync(_path(path))
    return kept | {CLASSES: version}


def _path(media: Path) -> Path:
    return media.with_name(f"{CLASSES}.lance")


def _stored(path: Path, versions: Mapping[str, int]) -> pa.Table:
    if CLASSES not in versions:
        return SCHEMA.empty_table()
    return small_table(_path(path), versions[CLASSES], SCHEMA.names).cast(SCHEMA)


def _with_declared(classes: pa.Table, declared: Sequence[SourceClass]) -> pa.Table:
    """Return a class list with the classes of a source behind the existing ones."""
    numbers: list[int] = classes["id"].to_pylist() if declared else []
    used, known, listed = set(numbers), set(classes["name"].to_pylist()) if declared else set(), set[str]()
    rows, last = [], _highest(numbers)
    merged = merged_classes(declared)
    last = max(each for each in (last, *(each.id or 0 for each in merged)) if each < _LARGEST)
    for each in merged:
        listed.add(each.name)
        if each.name in known:
            continue
        number = each.id
        if number is None or number in used or number > _MOST or number < -_MOST:
            number = last = last + 1
        used.add(number)
        rows.append((number, each.name, each.supercategory, each.details, True))
    classes = _marked(_with_details(classes, merged), pa.array(sorted(listed & known), pa.string()))
    if not rows:
        return classes
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    return pa.concat_tables([classes, pa.table(columns, schema=SCHEMA)])


def _highest(numbers: Iterable[int]) -> int:
    return max((each for each in numbers if each < _LARGEST), default=_FIRST - 1)


def _with_details(classes: pa.Table, declared: Sequence[SourceClass]) -> pa.Table:
    """Return a class list in which classes have the superior class and the details of a source, if they had none."""
    found = {each.name: each for each in declared if each.supercategory or each.details}
    new = [found.get(name) for name in classes["name"].to_pylist()] if found else []
    if not any(new):
        return classes
    for name in ("supercategory", "details"):
        values = pa.array([each and getattr(each, name) for each in new], pa.string())
        position = SCHEMA.get_field_index(name)
        classes = classes.set_column(position, SCHEMA.field(position), pc.coalesce(classes[name], values))
    return classes


def _completed(classes: pa.Table, path: Path, versions: Mapping[str, int]) -> pa.Table:
    """Return a class list with the labels of the tables that it lacks, in alphabetical order behind the others."""
    of_boxes = _labels(objects_path(path), versions.get(OBJECTS))
    classes = _marked(classes, of_boxes)
    names = pc.unique(pa.concat_arrays([of_boxes, _labels(path, versions.get(MEDIA))]))
    return _with_labels(classes, names, of_boxes)


def _with_labels(classes: pa.Table, names: pa.Array, of_boxes: pa.Array | None = None) -> pa.Table:
    """Return a class list with those of some distinct labels that it lacks, in alphabetical order behind the others."""
    new = names.filter(pc.invert(pc.is_in(names, value_set=classes["name"].combine_chunks())))
    if not len(new):
        return classes
    new = new.take(pc.sort_indices(new))
    first = _highest(classes["id"].to_pylist()) + 1
    empty = pa.nulls(len(new), pa.string())
    are_of_boxes = pc.is_in(new, value_set=pa.array([], pa.string()) if of_boxes is None else of_boxes)
    columns = [pa.array(np.arange(first, first + len(new))), new, empty, empty, are_of_boxes]
    return pa.concat_tables([classes, pa.table(columns, schema=SCHEMA)])


def _marked(classes: pa.Table, of_boxes: pa.Array) -> pa.Table:
    """Return a class list in which some classes are those of boxes. They move to the end if they were not before."""
    moved = pc.and_(pc.is_in(classes["name"], value_set=of_boxes), pc.invert(classes["of_boxes"]))
    if not pc.any(moved, min_count=0).as_py():
        return classes
    last = classes.filter(moved)
    position = SCHEMA.get_field_index("of_boxes")
    last = last.set_column(position, SCHEMA.field(position), pa.repeat(pa.scalar(value=True), len(last)))
    return pa.concat_tables([classes.filter(pc.invert(moved)), last])


def _labels(path: Path, version: int | None) -> pa.Array:
    """Return the distinct labels of a table of media or objects."""
    labels = pa.array([], pa.string())
    if version is None:
        return labels
    for each in _label_batches(Table(path, version)):
        labels = pc.unique(pa.concat_arrays([labels, pc.unique(each)]))
    return labels.drop_null()


def _label_batches(table: Table) -> Iterator[pa.Array]:
    return (batch.column(0).flatten() for batch in table.scan(["labels"]))
