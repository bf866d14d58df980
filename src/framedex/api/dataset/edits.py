"""Editing methods of :class:`framedex.Dataset`: tags, labels, captions, custom fields, limits of issues, decisions."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np
import pyarrow as pa

from framedex.api.record_list import RecordList
from framedex.api.view import Basket, View
from framedex.errors import InvalidInput
from framedex.operations import edits as editing
from framedex.operations import journal as steps
from framedex.operations import limits as limit_edits
from framedex.operations.basket import change_keepers, check_basket, keeper_ids
from framedex.operations.context import Context
from framedex.operations.decisions import decide_labels_right, label_decisions
from framedex.operations.edits import Selection
from framedex.operations.starting import wait_for
from framedex.records import Field, FieldResult, FieldValue, IssueLimit, JournalStep, LabelDecision, Tag
from framedex.tasks import Task
from framedex.vql import BASKET, tags

Selected = View | str | Sequence[str]
"""Media to edit: a view, a media id, or several media ids."""
_NOT_GIVEN: Any = object()


class DatasetEdits:
    """Edits of a dataset. Each edit is one generation: readers see the state before it or after it.

    Edits do not rewrite embeddings, so their cost does not depend on the embeddings' size. If an edit raises, the
    dataset has not changed.
    """

    _context: Context
    id: str
    task: Task | None

    def journal(self, limit: int | None = 100) -> list[JournalStep]:
        """Return the steps by which the dataset was edited, the last first.

        The journal keeps the values before and after each step, for ``journal_days`` and up to ``journal_bytes`` of the
        settings. It belongs to the dataset, not to its states: a restore takes none back, and clones have their own.

        Args:
            limit: the number of steps; None for all.

        Examples:
            >>> tag = ds.tag(ds.where(vql.labels("bird")), "flies")
            >>> ds.journal(1)
            [JournalStep(step=3, operation='tag', n_media=8, created_by='ann@example.org', created_at='...')]
        """
        return RecordList(steps.list_journal(self._context, self.id, limit=limit))

    def journal_values(self, step: int) -> pa.Table:
        """Return the values that a step of the journal keeps, as a table with a row for each media item.

        Its columns are ``media_id``, and names behind ``before`` and ``after``, as ``before labels``. A step
        ``replace_media`` lists images whose files have changed: what they have from before the change (labels, caption,
        tags, fields, the numbers of bounding boxes and of decisions) and the hashes of both contents.

        Args:
            step: its number.

        Raises:
            NotFound: the journal has no such step.
            Conflict: the step keeps no values.

        Examples:
            >>> ds.set_labels(ds.media_id("dog-8.jpg"), "puppy")
            >>> ds.journal_values(ds.journal(1)[0].step).column_names
            ['media_id', 'before labels', 'after labels']
        """
        return steps.values_of_step(self._context, self.id, step)

    def undo(self, step: int | None = None) -> JournalStep:
        """Undo a step of the journal, and return it.

        Args:
            step: its number; by default the last step that is not undone.

        Raises:
            NotFound: the journal has no such step.
            Conflict: there is nothing to undo; the step is undone, or cannot be undone; a later edit changed the same
                values of the same media, or a task is running. The message says which.

        Examples:
            >>> ds.set_labels(ds.media_id("dog-8.jpg"), "dog")
            >>> ds.undo().operation
            'set_labels'
        """
        return steps.undo(self._context, self.id, step)

    def redo(self, step: int | None = None) -> JournalStep:
        """Do a step again that was undone, by default the one that was undone last, and return it.

        Raises:
            NotFound: the journal has no such step.
            Conflict: there is nothing to redo, or what the step changed has changed since; or a task is running.

        Examples:
            >>> ds.set_labels(ds.media_id("dog-8.jpg"), "dog")
            >>> undone = ds.undo()
            >>> ds.redo().operation
            'set_labels'
        """
        return steps.redo(self._context, self.id, step)

    @property
    def basket(self) -> Basket:
        """The media in the basket, a view with the methods ``add``, ``remove`` and ``clear``.

        Raises:
            Conflict: a tag of an older version of the program has the reserved name ``basket``.

        Examples:
            >>> ds.basket.add(ds.where(vql.labels("cat")))
            >>> ds.basket.count()
            9
        """
        check_basket(self._context, self.id)
        return Basket(self._context, self.id).where(tags(BASKET))

    def keep(self, selection: Selected) -> None:
        """Choose media to keep: no clean-up plan removes them, whatever its rules, until :meth:`unkeep`.

        A group of duplicates then keeps them instead of the best member. They leave the basket. :meth:`delete_media`
        deletes them all the same.

        Args:
            selection: a view of this dataset, a media id, or a sequence of media ids.

        Raises:
            NotFound: a media item does not exist.
            InvalidInput: the selection is invalid.
            Conflict: a task is running.

        Examples:
            >>> ds.keep(ds.media_id("cat-1-copy.jpg"))
            >>> ds.plan_cleanup(duplicates="exact").to_arrow().select(["path", "reason"]).to_pylist()
            [{'path': 'cat-1-copy.jpg', 'reason': 'kept: a person chose it'}, {'path': 'cat-1.jpg', 'reason': 'same
              content as cat-1-copy.jpg'}]
        """
        change_keepers(self._context, self.id, self._selection(selection), keep=True)

    def unkeep(self, selection: Selected) -> None:
        """Let clean-ups remove media again that :meth:`keep` chose, or that stayed as the last of their copies.

        Arguments and errors are those of :meth:`keep`.

        Examples:
            >>> ds.keep(ds.media_id("cat-1-copy.jpg"))
            >>> ds.unkeep(ds.kept_ids())
            >>> ds.kept_ids()
            []
        """
        change_keepers(self._context, self.id, self._selection(selection), keep=False)

    def kept_ids(self) -> list[str]:
        """Return the ids of the media that people chose to keep, in row order.

        Examples:
            >>> ds.keep(ds.media_id("cat-1-copy.jpg"))
            >>> ds.kept_ids() == [ds.media_id("cat-1-copy.jpg")]
            True
        """
        return keeper_ids(self._context, self.id)

    def tags(self) -> list[Tag]:
        """Return the tags, oldest first, each with its number of media.

        Examples:
            >>> [(each.name, each.count) for each in ds.tags()]
            [('reviewed', 3)]
        """
        return RecordList(editing.list_tags(self._context, self.id))

    def create_tag(self, name: str) -> Tag:
        """Create a tag without media, and return it.

        Args:
            name: 1 to 255 printable characters; unique in the dataset; not ``untagged`` or ``basket``, and not in the
                form of an id.

        Raises:
            InvalidInput: the name is invalid.
            Conflict: the name is taken, or a task is running.

        Examples:
            >>> ds.create_tag("to print").count
            0
        """
        return editing.create_tag(self._context, self.id, name)

    def rename_tag(self, tag: str, name: str) -> Tag:
        """Rename a tag (by name or id), and return it.

        Raises:
            NotFound: the tag does not exist.
            InvalidInput: the name is invalid.
            Conflict: the name is taken, or a task is running.

        Examples:
            >>> ds.rename_tag("reviewed", "done").name
            'done'
        """
        return editing.rename_tag(self._context, self.id, tag, name)

    def delete_tag(self, tag: str) -> None:
        """Delete a tag (by name or id), and remove it from all media.

        Raises:
            NotFound: the tag does not exist.
            Conflict: a task is running.

        Examples:
            >>> ds.delete_tag("reviewed")
            >>> ds.tags()
            []
        """
        editing.delete_tag(self._context, self.id, tag)

    def tag(self, selection: Selected, tag: str) -> Tag:
        """Tag media, and return the tag. Media that already have the tag keep its date.

        Args:
            selection: a view of this dataset, a media id, or a sequence of media ids.
            tag: the name or id of a tag; a new name creates a tag.

        Raises:
            NotFound: a media item or the tag id does not exist.
            InvalidInput: the name or the selection is invalid.
            Conflict: a task is running.

        Examples:
            >>> ds.tag(ds.where(vql.labels("bird")), "flies").count
            8
        """
        return editing.tag(self._context, self.id, self._selection(selection), tag)

    def untag(self, selection: Selected, tag: str) -> Tag:
        """Remove a tag (by name or id) from media, and return it; the tag itself is not deleted.

        Raises:
            NotFound: a media item or the tag does not exist.
            InvalidInput: the selection is invalid.
            Conflict: a task is running.

        Examples:
            >>> ds.untag(ds.media_id("cat-1.jpg"), "reviewed").count
            2
        """
        return editing.untag(self._context, self.id, self._selection(selection), tag)

    def set_labels(self, selection: Selected | Mapping[str, Any], labels: Any = _NOT_GIVEN) -> None:
        """Replace the labels of media: ``set_labels({media_id: [label, …]})``, or the same labels for a selection.

        The issues about labels are updated at once: labels that look wrong, and media unlike others with their label.

        Args:
            selection: a view of this dataset, a media id, a sequence of media ids; or labels by media id.
            labels: a list of texts, or one text, for a selection; an empty list removes all labels.

        Raises:
            NotFound: a media item does not exist.
            InvalidInput: the labels or the selection are invalid.
            Conflict: a task is running.

        Examples:
            >>> ds.set_labels(ds.media_id("dog-8.jpg"), "dog")
            >>> ds.set_labels({ds.media_id("cat-1.jpg"): ["cat", "tabby"]})
            >>> ds.labels()
            [LabelCount(name='bird', count=8),
             LabelCount(name='cat', count=8),
             LabelCount(name='dog', count=8),
             LabelCount(name='tabby', count=1)]
        """
        self._set_value("labels", selection, labels, "set_labels")

    def label_is_right(self, selection: Selected) -> LabelDecision:
        """Record the decision that the present labels of media are right.

        The media leave the issues ``mislabels`` and ``label_outlier`` at once, and stay out of them after additions,
        deletions and reindexing. They still vote on the labels of others. The decision is about a media item and its
        labels at that time: it holds as long as the media item has these labels, in any order.

        Args:
            selection: a view of this dataset, a media id, or a sequence of media ids; not objects.

        Raises:
            InvalidInput: the selection is invalid or empty, or a media item has no labels.
            NotFound: a media item does not exist.
            Conflict: a task is running.

        Examples:
            >>> before = len(ds.issues("mislabels"))
            >>> decision = ds.label_is_right(ds.media_id("dog-8.jpg"))
            >>> before, len(ds.issues("mislabels"))
            (1, 0)
        """
        return decide_labels_right(self._context, self.id, self._selection(selection))

    def label_decisions(self) -> list[LabelDecision]:
        """Return the decisions made by :meth:`label_is_right`, oldest first.

        Examples:
            >>> decision = ds.label_is_right(ds.media_id("dog-8.jpg"))
            >>> [(each.labels, each.decided_by) for each in ds.label_decisions()]
            [([['cat']], 'ann@example.org')]
        """
        return RecordList(label_decisions(self._context, self.id))

    def set_captions(self, captions: Mapping[str, str | None]) -> None:
        """Replace the captions of media, by media id; None removes a caption.

        Raises:
            NotFound: a media item does not exist.
            InvalidInput: a caption is neither text nor None.
            Conflict: a task is running.

        Examples:
            >>> cat = ds.media_id("cat-1.jpg")
            >>> ds.set_captions({cat: "a cat asleep"})
            >>> ds.media_item(cat).caption
            'a cat asleep'
        """
        if not isinstance(captions, Mapping):
            raise InvalidInput(f"set_captions takes captions by media id, not {type(captions).__name__}")
        self._set_value("caption", captions, _NOT_GIVEN, "set_captions")

    def set_value(self, name: str, selection: Selected | Mapping[str, Any], value: Any = _NOT_GIVEN) -> None:
        """Replace an editable value of media: ``set_value(name, {media_id: value, …})``, or one value for a selection.

        Args:
            name: ``caption`` or ``labels``; other values are custom fields (:meth:`set_field`).
            selection: a view of this dataset, a media id, a sequence of media ids; or values by media id.
            value: the value of a selection; None removes it.

        Raises:
            NotFound: a media item does not exist.
            InvalidInput: the name, a value or the selection is invalid.
            Conflict: a task is running.

        Examples:
            >>> ds.set_value("caption", ds.where(vql.labels("bird")), "a bird")
            >>> ds.search('"a bird"').count()
            8
        """
        self._set_value(name, selection, value, "set_value")

    @property
    def limits(self) -> dict[str, IssueLimit]:
        """The limit of each issue type with a value, by name, with its default.

        Limits hold for media and objects alike. The default of ``outliers`` depends on the data: here it is that of the
        media.

        Examples:
            >>> ds.limits["dark"].limit, ds.limits["dark"].meaning
            (0.32, 'brightness of the brightest pixels, 0 to 1')
        """
        return limit_edits.dataset_limits(self._context, self.id)

    def set_limits(self, **limits: float | np.floating[Any] | None) -> None:
        """Set limits of issue types: ``set_limits(blur=0.4, dark=None)``; None returns to the default.

        The issues of all media and objects change at once, without a reindex. Additions and reindexes use the limits;
        snapshots and clones keep them. The other limits stay.

        Args:
            limits: by issue type, in the unit of its value. The limit of ``duplicates`` is one of the similarities of
                :meth:`duplicates`.

        Raises:
            InvalidInput: a type is unknown or has no limit, or a limit is outside of the values of its type.
            Conflict: a task is running.

        Examples:
            >>> before = len(ds.issues("blur"))
            >>> ds.set_limits(blur=0.9)
            >>> before, len(ds.issues("blur"))
            (0, 32)
        """
        limit_edits.set_limits(self._context, self.id, limits)

    def reset_limits(self, *issue_types: str) -> None:
        """Return limits to their defaults: those of the given issue types, or all.

        Raises:
            InvalidInput: a type is unknown or has no limit.
            Conflict: a task is running.

        Examples:
            >>> ds.set_limits(blur=0.9)
            >>> ds.reset_limits("blur")
            >>> ds.limits["blur"].limit
            0.37
        """
        limit_edits.reset_limits(self._context, self.id, issue_types)

    def fields(self) -> list[Field]:
        """Return the custom fields, oldest first.

        Examples:
            >>> [(each.field_name, str(each.field_type)) for each in ds.fields()]
            [('rating', 'float')]
        """
        return RecordList(editing.list_fields(self._context, self.id))

    def field_values(self, media_id: str) -> list[FieldValue]:
        """Return the custom field values of a media item.

        Raises:
            NotFound: the media item does not exist.

        Examples:
            >>> ds.field_values(ds.media_id("cat-1.jpg"))
            [FieldValue(field_name='rating', field_type='float', value=4.5)]
        """
        return RecordList(editing.field_values(self._context, self.id, media_id))

    @overload
    def add_field(
        self,
        name: str,
        field_type: str,
        *,
        enum_options: Sequence[str] | None = None,
        is_multi: bool = False,
        values: Mapping[str, Any] | Sequence[Any] | None = None,
        task_id: str | None = None,
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
        task_id: str | None = None,
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
        task_id: str | None = None,
        wait: bool = True,
    ) -> FieldResult | Task:
        """Create a custom field, set its values, and return the result. Invalid values do not affect the others.

        Args:
            name: 1 to 255 printable characters; unique in the dataset, and no column of :meth:`to_arrow`.
            field_type: ``string``; ``float`` (finite); ``datetime`` (ISO 8601 text or a datetime; UTC by default);
                ``enum`` (one of the options); ``link`` (a URI of http, https, file or s3).
            enum_options: for ``enum``: one or more distinct texts of 1 to 20 characters.
            is_multi: whether each media item has a list of values.
            values: values by media id, or rows ``{"media_id": …, "value": …}``; None clears a value.
            task_id: the id of the task, so that a repeated call starts no second one; None for a new id.
            wait: return when the task is done, showing progress; else return the task at once; :meth:`field_result` has
                its result.

        Raises:
            InvalidInput: an argument cannot be used.
            Conflict: the name is taken, a task is running, or a task has the id already.

        Examples:
            >>> cat, dog = ds.media_id("cat-1.jpg"), ds.media_id("dog-1.jpg")
            >>> result = ds.add_field("owner", "string", values={cat: "Ann", dog: 7})
            >>> result.inserted_rows, result.sample_errors
            (1, [FieldError(reason='a string is text, not 7', row_index=1)])
        """
        task = editing.start_adding_field(
            self._context, self.id, name, field_type, enum_options, is_multi, values, task_id
        )
        return self._filled(task, f"Adding field {name!r}", wait=wait)

    def check_field(
        self, name: str, field_type: str, *, enum_options: Sequence[str] | None = None, is_multi: bool = False
    ) -> None:
        """Check that :meth:`add_field` would accept a custom field now; arguments and errors are the same.

        Examples:
            >>> ds.check_field("rating", "float")
            Traceback (most recent call last):
                ...
            framedex.errors.Conflict: a field named 'rating' exists already; choose another name or delete it first
        """
        editing.check_new_field(self._context, self.id, name, field_type, enum_options, is_multi)

    @overload
    def set_field(
        self, name: str, values: Mapping[str, Any] | Sequence[Any], *, wait: Literal[True] = True
    ) -> FieldResult: ...

    @overload
    def set_field(self, name: str, values: Mapping[str, Any] | Sequence[Any], *, wait: bool) -> FieldResult | Task: ...

    def set_field(
        self, name: str, values: Mapping[str, Any] | Sequence[Any], *, wait: bool = True
    ) -> FieldResult | Task:
        """Set values of a custom field, and return the result; see :meth:`add_field` for *values* and *wait*.

        Raises:
            NotFound: the field does not exist.
            InvalidInput: the values are neither a mapping nor rows.
            Conflict: a task is running.

        Examples:
            >>> ds.set_field("rating", {ds.media_id("dog-1.jpg"): 4}).inserted_rows
            1
            >>> ds.where(vql.field("rating", "ge", 4)).count()
            2
        """
        task = editing.start_setting_field(self._context, self.id, name, values)
        return self._filled(task, f"Filling field {name!r}", wait=wait)

    def field_result(self, task_id: str) -> FieldResult:
        """Return the progress of a task of type CUSTOM_METADATA, and the results of its rows.

        Raises:
            NotFound: the task does not exist.

        Examples:
            >>> task = ds.set_field("rating", {ds.media_id("dog-1.jpg"): 4}, wait=False)
            >>> print(task.wait().status)
            COMPLETED
            >>> ds.field_result(task.id).inserted_rows
            1
        """
        return editing.field_result(self._context, task_id)

    def rename_field(self, name: str, new_name: str) -> Field:
        """Rename a custom field, and return it.

        Raises:
            NotFound: the field does not exist.
            InvalidInput: the name is invalid.
            Conflict: the name is taken, or a task is running.

        Examples:
            >>> ds.rename_field("rating", "stars").field_name
            'stars'
        """
        return editing.rename_field(self._context, self.id, name, new_name)

    def delete_field(self, name: str) -> None:
        """Delete a custom field with all its values.

        Raises:
            NotFound: the field does not exist.
            Conflict: a task is running.

        Examples:
            >>> ds.delete_field("rating")
            >>> ds.fields()
            []
        """
        editing.delete_field(self._context, self.id, name)

    def _set_value(self, name: str, selection: Selected | Mapping[str, Any], value: Any, operation: str) -> None:
        by_id = isinstance(selection, Mapping)
        if by_id and value is not _NOT_GIVEN:
            raise InvalidInput(f"{operation} takes either values by media id, or a selection and its value, not both")
        if not by_id and value is _NOT_GIVEN:
            raise InvalidInput(f"{operation} needs the value of the selection; None removes the value")
        selected = selection if isinstance(selection, Mapping) else self._selection(selection)
        editing.set_value(self._context, self.id, name, selected, value, operation)

    def _filled(self, task: Task, title: str, *, wait: bool) -> FieldResult | Task:
        self.task = task
        if not wait:
            return task
        wait_for(task, title)
        return editing.field_result(self._context, task.id)

    def _selection(self, selection: Selected) -> Selection:
        return selection._chooser(self.id) if isinstance(selection, View) else editing.as_selection(selection)
