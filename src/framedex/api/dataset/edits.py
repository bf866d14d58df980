"""What people edit of a dataset: the part of :class:`framedex.Dataset` about tags, labels, captions and fields."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from framedex.api.view import View
from framedex.errors import InvalidInput
from framedex.operations import edits as editing
from framedex.operations import starting as operations
from framedex.operations.context import Context
from framedex.operations.edits import Selection
from framedex.records import Field, FieldResult, FieldValue, Tag
from framedex.tasks import Task

Selected = View | str | Sequence[str]
"""Media that an edit is about: those of a view, one by its id, or several by their ids."""
_NOT_GIVEN: Any = object()


class DatasetEdits:
    """Edits of a dataset. Each is one generation: readers see the state before or the state after it.

    None of them touches an embedding, whatever its size. Where one raises, nothing has changed.
    """

    _context: Context
    id: str
    task: Task | None

    def tags(self) -> list[Tag]:
        """Return the tags, oldest first, with how many media have each."""
        return editing.list_tags(self._context, self.id)

    def create_tag(self, name: str) -> Tag:
        """Make a tag that no media have yet, and return it.

        Args:
            name: 1 to 255 printable characters; unique in the dataset. ``untagged`` and what looks like an id are no
                names.

        Raises:
            InvalidInput: nothing can be named so.
            Conflict: the name is taken, or a task is under way.
        """
        return editing.create_tag(self._context, self.id, name)

    def rename_tag(self, tag: str, name: str) -> Tag:
        """Give a tag (by name or id) another name, and return it.

        Raises:
            NotFound: there is no such tag.
            InvalidInput: nothing can be named so.
            Conflict: another tag is named so, or a task is under way.
        """
        return editing.rename_tag(self._context, self.id, tag, name)

    def delete_tag(self, tag: str) -> None:
        """Delete a tag (by name or id), and take it off all media.

        Raises:
            NotFound: there is no such tag.
            Conflict: a task is under way.
        """
        editing.delete_tag(self._context, self.id, tag)

    def tag(self, selection: Selected, tag: str) -> Tag:
        """Put a tag on media, and return it. Those that have it already keep it with its date.

        Args:
            selection: a view of this dataset, a media id, or a sequence of media ids.
            tag: its name or id; a new name makes a tag.

        Raises:
            NotFound: a media item does not exist, or no tag of that id.
            InvalidInput: nothing can be named so, or the selection is none.
            Conflict: a task is under way.
        """
        return editing.tag(self._context, self.id, self._selection(selection), tag)

    def untag(self, selection: Selected, tag: str) -> Tag:
        """Take a tag (by name or id) off media, and return it; the tag itself stays.

        Raises:
            NotFound: a media item does not exist, or there is no such tag.
            InvalidInput: the selection is none.
            Conflict: a task is under way.
        """
        return editing.untag(self._context, self.id, self._selection(selection), tag)

    def set_labels(self, selection: Selected | Mapping[str, Any], labels: Any = _NOT_GIVEN) -> None:
        """Give media other labels: ``set_labels({media_id: [label, …]})``, or the same to all of a selection.

        Which labels look wrong, and which media are unlike the others of their label, is found anew at once.

        Args:
            selection: a view of this dataset, a media id, a sequence of media ids; or labels by media id.
            labels: a list of texts, or one text, for a selection; an empty list takes all labels away.

        Raises:
            NotFound: a media item does not exist.
            InvalidInput: these are no labels, or the selection is none.
            Conflict: a task is under way.
        """
        if isinstance(selection, Mapping):
            if labels is not _NOT_GIVEN:
                raise InvalidInput("set_labels takes labels by media id, or a selection and its labels; not both")
            editing.set_labels_of(self._context, self.id, selection)
            return
        if labels is _NOT_GIVEN:
            raise InvalidInput("set_labels needs the labels of the selection; an empty list takes all away")
        editing.set_labels(self._context, self.id, self._selection(selection), labels)

    def set_captions(self, captions: Mapping[str, str | None]) -> None:
        """Give media other captions, by their ids; None takes a caption away.

        Raises:
            NotFound: a media item does not exist.
            InvalidInput: a caption is neither text nor None.
            Conflict: a task is under way.
        """
        if not isinstance(captions, Mapping):
            raise InvalidInput(f"set_captions takes captions by media id, not {type(captions).__name__}")
        editing.set_captions(self._context, self.id, captions)

    def fields(self) -> list[Field]:
        """Return the custom fields, oldest first."""
        return editing.list_fields(self._context, self.id)

    def field_values(self, media_id: str) -> list[FieldValue]:
        """Return the values of custom fields that a media item has.

        Raises:
            NotFound: there is no such media item.
        """
        return editing.field_values(self._context, self.id, media_id)

    @overload
    def add_field(
        self,
        name: str,
        field_type: str,
        *,
        enum_options: Sequence[str] | None = None,
        is_multi: bool = False,
        values: Mapping[str, Any] | Sequence[Any] | None = None,
        wait: Literal[True] = True,
    ) -> FieldResult: ...

    @overload
    def add_field(
        self,
        name: str,
        field_type: str,
        *,
        enum_options: Sequence[str] | None = None,
        is_multi: bool = False,
        values: Mapping[str, Any] | Sequence[Any] | None = None,
        wait: bool,
    ) -> FieldResult | Task: ...

    def add_field(
        self,
        name: str,
        field_type: str,
        *,
        enum_options: Sequence[str] | None = None,
        is_multi: bool = False,
        values: Mapping[str, Any] | Sequence[Any] | None = None,
        wait: bool = True,
    ) -> FieldResult | Task:
        """Make a custom field, fill it, and return what became of the values. Values that are wrong fail alone.

        Args:
            name: 1 to 255 printable characters; unique in the dataset, and no column of :meth:`to_arrow`.
            field_type: ``string``; ``float`` (finite); ``datetime`` (ISO 8601 text or a datetime; UTC where it has no
                zone); ``enum`` (one of the options); ``link`` (a URI of http, https, file or s3).
            enum_options: for ``enum``: at least one, different, of 1 to 20 characters.
            is_multi: a media item has a list of values.
            values: by media id, or rows ``{"media_id": …, "value": …}``; None for a value clears it.
            wait: return when it is done, showing progress; else at once, with the task, whose result
                :meth:`field_result` has.

        Raises:
            InvalidInput: an argument cannot be used.
            Conflict: the name is taken, or a task is under way.
        """
        task = editing.start_adding_field(self._context, self.id, name, field_type, enum_options, is_multi, values)
        return self._filled(task, f"Adding field {name!r}", wait=wait)

    @overload
    def set_field(
        self, name: str, values: Mapping[str, Any] | Sequence[Any], *, wait: Literal[True] = True
    ) -> FieldResult: ...

    @overload
    def set_field(self, name: str, values: Mapping[str, Any] | Sequence[Any], *, wait: bool) -> FieldResult | Task: ...

    def set_field(
        self, name: str, values: Mapping[str, Any] | Sequence[Any], *, wait: bool = True
    ) -> FieldResult | Task:
        """Give values to a custom field, and return what became of them; see :meth:`add_field` for values and *wait*.

        Raises:
            NotFound: there is no such field.
            InvalidInput: the values are neither a mapping nor rows.
            Conflict: a task is under way.
        """
        task = editing.start_setting_field(self._context, self.id, name, values)
        return self._filled(task, f"Filling field {name!r}", wait=wait)

    def field_result(self, task_id: str) -> FieldResult:
        """Return how far a task of type CUSTOM_METADATA is, and what became of its rows.

        Raises:
            NotFound: there is no such task.
        """
        return editing.field_result(self._context, task_id)

    def rename_field(self, name: str, new_name: str) -> Field:
        """Give a custom field another name, and return it.

        Raises:
            NotFound: there is no such field.
            InvalidInput: nothing can be named so.
            Conflict: another field is named so, or a task is under way.
        """
        return editing.rename_field(self._context, self.id, name, new_name)

    def delete_field(self, name: str) -> None:
        """Delete a custom field with all its values.

        Raises:
            NotFound: there is no such field.
            Conflict: a task is under way.
        """
        editing.delete_field(self._context, self.id, name)

    def _filled(self, task: Task, title: str, *, wait: bool) -> FieldResult | Task:
        self.task = task
        if not wait:
            return task
        operations.wait_for(task, title)
        return editing.field_result(self._context, task.id)

    def _selection(self, selection: Selected) -> Selection:
        if isinstance(selection, View):
            return selection.chooser(self.id)
        if isinstance(selection, str):
            return [selection]
        if isinstance(selection, Mapping) or not isinstance(selection, Sequence):
            raise InvalidInput(
                f"a selection is a view, a media id or a sequence of media ids, not {type(selection).__name__}"
            )
        return selection
