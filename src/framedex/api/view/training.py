"""Methods that make datasets of other libraries of a view: of PyTorch, and of Hugging Face."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex.api.view.reading import Reading
from framedex.core.arrays import RowIds
from framedex.core.counts import counted
from framedex.errors import InvalidInput
from framedex.export.object_columns import BBOX, FLAGS, LABEL
from framedex.export.objects import ObjectsByMedia, objects_field, objects_in
from framedex.export.user_edits import custom_fields
from framedex.media.row_images import range_of
from framedex.operations.steps import SelectedRows
from framedex.storage.classes import classes_of
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX, VIDEO
from framedex.storage.objects import is_empty_object_view, objects_of
from framedex.training.huggingface import check_huggingface, class_field, huggingface_dataset
from framedex.training.rows import torch_images, with_classes
from framedex.training.stored_images import Location, StoredImages

if TYPE_CHECKING:
    from framedex.training.torch_dataset import TorchImages

_BLOCK_ROWS = 4096
_OBJECTS = objects_field(pa.schema([LABEL, BBOX, *FLAGS]))


class Training(Reading):
    """Methods for training. Each reads the state of the dataset when it is called; what it returns keeps that state."""

    def to_torch(self, transform: Callable[[Any], Any] | None = None, target: str | None = "label") -> "TorchImages":
        """Return the images of the view as a :class:`torch.utils.data.Dataset`, for a ``DataLoader``.

        Each item is (image, target). Images have the pixels of :meth:`framedex.Dataset.read`: upright, also frames of
        videos and uploads. In a view of objects each is the crop of an object. The dataset holds arrays of paths and
        targets alone, so workers may be forked or spawned; only they open the files. Rows that could not be decoded
        when they were read are left out; ``n_left_out`` is their number.

        Args:
            transform: called with each image as a Pillow image, as the transforms of torchvision expect; it must pickle
                if workers are spawned. By default an image is a tensor, uint8 of shape (3, H, W).
            target: ``label``, the number of the one class of an image; ``labels``, all its classes as float32 of shape
                (number of classes,); ``boxes``, its objects in the form of torchvision's detection models, with classes
                from 0; ``embedding``; the name of another column of :meth:`to_arrow`, as ``caption`` or a custom field;
                or None for images alone. Numbers of classes are positions in ``classes``, the class list of the whole
                dataset, so views of one dataset agree.

        Raises:
            InvalidInput: an image has no label or several and the target is ``label``; the target is no column, or of a
                type that is no target; or images are on no machine that can be reached from here.
            MissingDependency: the extra ``torch`` is not installed.

        Examples:
            >>> images = ds.where(vql.labels(["cat", "dog"])).to_torch()
            >>> pixels, target = images[0]
            >>> len(images), images.classes, tuple(pixels.shape)
            (16, ['bird', 'cat', 'dog'], (3, 120, 160))
        """
        make = torch_images(transform)
        selection, table = self._training_rows(target)
        return make(StoredImages(_locations(selection), self._context.settings), table, target)

    def to_huggingface(self) -> Any:
        """Return the images of the view as a :class:`datasets.Dataset` of Hugging Face.

        Its columns are ``image``, ``media_id``, ``file_name`` (the path within the source), ``label`` (if no image has
        several), ``labels``, ``caption``, ``tags`` and, if the dataset has objects, ``objects`` with ``bbox`` (x, y,
        width, height in pixels) and ``categories``; the custom fields follow. Labels and categories are class labels
        with the class list of the dataset. In a view of objects each row is a crop. Image files stay where they are and
        are read from there; frames of videos, crops and objects in buckets are in the dataset. Rows that could not be
        decoded when they were read are left out.

        Raises:
            InvalidInput: images are on no machine that can be reached from here.
            MissingDependency: the extra ``datasets`` is not installed.

        Examples:
            >>> ds.where(vql.labels("cat")).to_huggingface()[0]["caption"]
            'a cat on a sofa'
        """
        check_huggingface()
        selection, table = self._described_rows()
        return huggingface_dataset(StoredImages(_locations(selection), self._context.settings), table)

    def training_table(self, target: str | None) -> pa.Table:
        """Return what :meth:`to_torch` needs beside the images; see :class:`framedex.training.rows.TrainingRows`.

        Raises:
            InvalidInput: as there.

        Examples:
            >>> ds.where(vql.labels(["cat", "dog"])).training_table("label").column_names
            ['media_id', 'target']
        """
        return self._training_rows(target)[1]

    def described_table(self) -> pa.Table:
        """Return what :meth:`to_huggingface` needs beside the images.

        Examples:
            >>> ds.where(vql.labels("cat")).described_table().column_names
            ['media_id', 'file_name', 'label', 'labels', 'caption', 'tags', 'rating', 'objects']
        """
        return self._described_rows()[1]

    def _training_rows(self, target: str | None) -> tuple[SelectedRows, pa.Table]:
        selection, n_left_out = self._readable()
        classes = self._classes(selection.media, of_boxes=target == "boxes")
        columns = [self._values(selection, ["media_id"])["media_id"]]
        if (values := self._target_values(selection, target)) is not None:
            columns.append(values)
        table = pa.table(columns, names=["media_id", "target"][: len(columns)])
        return selection, with_classes(table, classes, n_left_out)

    def _described_rows(self) -> tuple[SelectedRows, pa.Table]:
        selection, n_left_out = self._readable()
        return selection, with_classes(self._described(selection), self._classes(selection.media), n_left_out)

    def _readable(self) -> tuple[SelectedRows, int]:
        """Return the rows that could be decoded when they were read, and the number of the others."""
        selection = self._selection(self._media())
        media, rows = selection.media, selection.row_ids()
        if is_empty_object_view(media) or not len(rows):
            return SelectedRows(media, rows[:0]), 0
        names = [name for name in ("error", "kind") if name in media.table.schema.names]
        keep = pc.is_null(media.values_at(rows, names[0]))
        if "kind" in names:  # a video without frames
            keep = pc.and_(keep, pc.not_equal(pc.fill_null(media.values_at(rows, "kind"), ""), VIDEO))
        chosen: RowIds = rows[keep.to_numpy(zero_copy_only=False)]
        return SelectedRows(media, chosen), len(rows) - len(chosen)

    def _values(self, selection: SelectedRows, columns: list[str]) -> pa.Table:
        if not len(selection.row_ids()):
            return self._schema(selection, columns).empty_table()
        return pa.concat_tables(self._batches(selection, columns))

    def _classes(self, media: Media, *, of_boxes: bool = False) -> list[str]:
        """Return the names of the classes of the dataset: all, or those of objects."""
        classes = classes_of(media)
        of_boxes = of_boxes or media.parents is not None
        names: list[str] = (classes.filter(classes["of_boxes"]) if of_boxes else classes)["name"].to_pylist()
        return names

    def _target_values(self, selection: SelectedRows, target: str | None) -> pa.Array | None:
        """Return the values from which targets are made; None for none."""
        if target is None:
            return None
        if not isinstance(target, str):
            raise InvalidInput(f"target must be 'label', 'labels', 'boxes', the name of a column or None: {target!r}")
        if target == "boxes":
            if selection.media.parents is not None:
                raise InvalidInput("target='boxes' is for a view of media; the objects of this view are crops")
            return _objects_of(selection)
        name = "labels" if target == "label" else target
        return self._values(selection, [name])[name].combine_chunks()

    def _described(self, selection: SelectedRows) -> pa.Table:
        """Return the columns of a dataset of Hugging Face beside the image."""
        media = selection.media
        fields = [] if media.parents is not None else [each.name for each in custom_fields(media)]
        names = ["media_id", "path", "labels", "caption", "tags", *fields]
        rows = self._values(selection, names).rename_columns([{"path": "file_name"}.get(name, name) for name in names])
        position = rows.schema.get_field_index("labels")
        labels = rows["labels"].combine_chunks()
        rows = rows.set_column(position, class_field("labels", pa.list_(pa.string())), labels)
        counts = pc.fill_null(pc.list_value_length(labels), 0)
        if pc.all(pc.less_equal(counts, 1), min_count=0).as_py():
            one = [each[0] if each else None for each in labels.to_pylist()]
            rows = rows.add_column(position, class_field("label", pa.string()), pa.array(one, pa.string()))
        if media.parents is None and objects_of(media) is not None:
            lists = _objects_of(selection)
            rows = rows.append_column(_OBJECTS_FIELD, _as_columns(lists))
        return rows


_OBJECTS_FIELD = pa.field(
    "objects",
    pa.struct(
        [pa.field("bbox", pa.list_(pa.list_(pa.float64(), 4))), class_field("categories", pa.list_(pa.string()))]
    ),
)


def _as_columns(lists: pa.ListArray) -> pa.StructArray:
    """Return lists of objects as structs of lists."""
    objects = lists.flatten()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    ends = pa.array([0, *lengths.cumsum().tolist()], pa.int32())
    boxes = pa.ListArray.from_arrays(ends, objects.field("bbox").cast(pa.list_(pa.float64(), 4)))
    labels = pa.ListArray.from_arrays(ends, objects.field("label"))
    return pa.StructArray.from_arrays([boxes, labels], fields=list(_OBJECTS_FIELD.type))


def _objects_of(selection: SelectedRows) -> pa.ListArray:
    """Return the objects in each of some media, as lists of structs."""
    media, rows = selection.media, selection.row_ids()
    objects = objects_of(media)
    if objects is None or not len(rows):
        return pa.array([[]] * len(rows), _OBJECTS.type)
    by_media = ObjectsByMedia(objects, objects_in(objects, rows))
    blocks = (
        media.take(rows[start : start + _BLOCK_ROWS].tolist(), ["media_id"])
        for start in range(0, len(rows), _BLOCK_ROWS)
    )
    added = by_media.added_to(blocks, pa.schema([pa.field("media_id", pa.string()), _OBJECTS]))
    return pa.concat_tables(added)["objects"].combine_chunks()


def _locations(selection: SelectedRows) -> list[Location]:
    """Return the places of the images of some rows.

    Raises:
        InvalidInput: some are neither files of this machine nor objects in a bucket.
    """
    media, rows, found, elsewhere = selection.media, selection.row_ids(), [], list[str]()
    for start in range(0, len(rows), _BLOCK_ROWS):
        for row in media.take(rows[start : start + _BLOCK_ROWS].tolist(), list(media.location)).to_pylist():
            if (path := media.location_of(row)) is None:
                elsewhere.append(row["path"])
                continue
            frame = None if row.get("frame_number") is None else (row["frame_number"], row["frame_time_s"])
            box = None if row.get(BOX[0]) is None else (row[BOX[0]], row[BOX[1]], row[BOX[2]], row[BOX[3]])
            found.append(Location(path, media.role_of(row), frame, box, range_of(row)))
    if elsewhere:
        raise InvalidInput(
            f"{counted(len(elsewhere), 'images', 'are')} neither files of this machine nor objects in a bucket, the "
            f"first is {elsewhere[0]!r}"
        )
    return found
