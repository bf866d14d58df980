"""The evaluation of a dataset's detections, and of its annotated boxes by them."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.formats import annotation_formats
from framedex.api.evaluation import CONFUSION_COLUMNS, QUALITY_COLUMNS, BoxKind, Evaluation
from framedex.api.object_issues import ObjectIssues, object_issue_table
from framedex.api.view import View
from framedex.browse.detection_quality import EvaluatedBoxes, evaluate_boxes, find_object_faults
from framedex.core.arrays import RowIds
from framedex.core.checks import is_number
from framedex.errors import InvalidInput
from framedex.operations.context import Context, open_entities
from framedex.operations.pinned_rows import PinnedRows
from framedex.render.progress import progress_bar
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import is_empty_object_view

ANNOTATED, DETECTED = "annotated", "detected"
"""Names of the objects of annotation files that have no confidence, and of all others."""


class DatasetEvaluation:
    """The evaluation of detections."""

    _context: Context
    id: str

    def evaluate(self, truth: Any = ANNOTATED, predictions: Any = DETECTED, iou: float = 0.5) -> Evaluation[View]:
        """Return the quality of predicted boxes against true ones: precision, recall, average precision, confusions.

        Boxes are matched as COCO does: in each image and for each label, predictions by falling confidence, each with
        the true box of the largest IoU that is free. Predictions in a crowd (``iscrowd``) do not count. There is no
        limit of boxes an image. Predictions without a confidence have 1. All images with boxes count, also those
        without true ones: where only some images were annotated, give views of the objects in these.

        Args:
            truth: the true boxes: ``annotated`` for the objects of annotation files that have no confidence,
                ``detected`` for all others, those of models; a source, as ``coco`` or the id of a model; a filter of
                objects; or a view of objects of this dataset.
            predictions: the predictions, likewise.
            iou: the smallest IoU of a match, above 0, at most 1.

        Raises:
            InvalidInput: an argument cannot be used, a source does not exist, or a box is both true and a prediction.
            Conflict: the dataset has nothing to show yet.

        Examples:
            >>> ds.evaluate("annotated", "detected", iou=0.5)
            <framedex.Evaluation: precision 0.750, recall 0.600, mean average precision 0.668 of 2 labels at IoU
              0.5>
        """
        if not is_number(iou) or not 0 < iou <= 1:
            raise InvalidInput(f"iou must be a number above 0, at most 1, not {iou!r:.80}")
        media = open_entities(self._context, self.id, objects=True)
        sets = self._sets(truth, predictions, media)
        key = "evaluation", media.generation.id, *map(_digest, sets), float(iou)
        found: EvaluatedBoxes | None = self._context.selections.get(key)
        if found is None:
            with progress_bar("Evaluating", late=True) as bar:
                show = bar or (lambda _stage, _share: None)
                found = evaluate_boxes(media, *sets, iou=iou, progress=lambda share: show("matching boxes", share))
            self._context.selections.put(key, found, weight=found.nbytes)
        rows: dict[BoxKind, RowIds] = {
            "missing": found.missing,
            "extra": found.extra,
            "confused": found.confused[0],
            "confused_predictions": found.confused[1],
        }

        def select(kind: BoxKind) -> View:
            step = PinnedRows(media, rows[kind], f"{kind} {key}")
            return View(self._context, self.id, (step,), objects=True)

        return Evaluation(_qualities(found), _confusions(found), float(iou), select)

    def object_issues(self, truth: Any = ANNOTATED, predictions: Any = DETECTED) -> ObjectIssues[View]:
        """Return the faults of annotated boxes by what a detector predicts, one row a fault, the surest first.

        A fault is a missing box, a box of nothing, another class, a box in the wrong place, or a box that was drawn
        twice. Predictions of low confidence help, so detect with a low limit: what even they lack is probably not
        there. All images with boxes count: where only some were annotated, give views of the objects in these.

        Args:
            truth: the boxes; see :meth:`evaluate`. Crowds have no faults.
            predictions: the predictions, likewise.

        Raises:
            InvalidInput: an argument cannot be used, a source does not exist, a box is both, or there are no
                predictions.
            Conflict: the dataset has nothing to show yet.

        Examples:
            >>> ds.object_issues()
            <framedex.ObjectIssues: 2 faults of boxes: 1 spurious, 1 wrong_class>
        """
        media = open_entities(self._context, self.id, objects=True)
        sets = self._sets(truth, predictions, media)
        if not len(sets[1]):
            raise InvalidInput(
                "faults of boxes are found by predictions, and there are none; detect objects by ds.enrich(…), or add "
                "predictions with confidences by ds.add_objects(…)"
            )
        key = "object issues", media.generation.id, *map(_digest, sets)
        table: pa.Table | None = self._context.selections.get(key)
        if table is None:
            with progress_bar("Comparing boxes", late=True) as bar:
                show = bar or (lambda _stage, _share: None)
                faults = find_object_faults(media, *sets, progress=lambda share: show("matching boxes", share))
            table = object_issue_table(media, *sets, faults)
            self._context.selections.put(key, table, weight=1024 + table.nbytes)
        return ObjectIssues(table, View(self._context, self.id, objects=True))

    def _sets(self, truth: Any, predictions: Any, media: Media) -> tuple[RowIds, RowIds]:
        """Return the rows of true boxes and of predictions, which have none in common."""
        sets = self._boxes("truth", truth, media), self._boxes("predictions", predictions, media)
        if len(np.intersect1d(sets[0], sets[1])):
            raise InvalidInput("truth and predictions have boxes in common; choose them apart, for example by source")
        return sets

    def _boxes(self, name: str, chosen: Any, media: Media) -> RowIds:
        """Return the rows of the objects that an argument selects, ascending."""
        if is_empty_object_view(media):
            if isinstance(chosen, str) and chosen not in (ANNOTATED, DETECTED):
                raise InvalidInput(f"no objects are of the source {chosen!r:.80}, which {name} names; there are none")
            return np.empty(0, np.uint64)
        if isinstance(chosen, str):
            return _named(media, name, chosen)
        if isinstance(chosen, View):
            if chosen._dataset_id != self.id or not chosen._objects:
                raise InvalidInput(f"{name} must be a view of objects of this dataset, as ds.objects.where(…)")
        elif isinstance(chosen, Sequence):
            chosen = View(self._context, self.id, objects=True).where(chosen)
        else:
            raise InvalidInput(f"{name} is a source, a filter or a view of objects, not {chosen!r:.80}")
        return np.sort(chosen._selection(media).row_ids())


def _digest(rows: RowIds) -> str:
    return hashlib.blake2b(rows.tobytes(), digest_size=16).hexdigest()


def _named(media: Media, name: str, chosen: str) -> RowIds:
    if chosen in (ANNOTATED, DETECTED):
        ids, confidence = media.values(EVERYTHING, "confidence")
        formats = pa.array([each.name for each in annotation_formats()], pa.string())
        is_of_file = pc.is_in(media.values(EVERYTHING, "source")[1], value_set=formats)
        is_annotated = np.asarray(pc.and_(is_of_file, confidence.is_null())).astype(np.bool_)
        return np.asarray(ids[is_annotated if chosen == ANNOTATED else ~is_annotated])
    ids, sources = media.values(EVERYTHING, "source")
    known = sorted(sources.unique().drop_null().to_pylist())
    if chosen not in known:
        listed = ", ".join([ANNOTATED, DETECTED, *known])
        raise InvalidInput(f"no objects are of the source {chosen!r:.80}, which {name} names; there are: {listed}")
    return np.asarray(ids[np.asarray(pc.fill_null(pc.equal(sources, chosen), False)).astype(np.bool_)])


def _qualities(found: EvaluatedBoxes) -> pa.Table:
    each = found.qualities
    columns = (
        each.n_truth, each.n_predictions, each.n_right, each.precision, each.recall, each.average_precision
    )  # fmt: skip
    table = pa.table([pa.array(found.labels, pa.string()), *map(pa.array, columns)], schema=QUALITY_COLUMNS)
    return table.filter(pa.array((each.n_truth > 0) | (each.n_predictions > 0)))


def _confusions(found: EvaluatedBoxes) -> pa.Table:
    pairs, counts = found.confusions
    names = [pa.array([found.labels[number] for number in pairs[:, end].tolist()], pa.string()) for end in (0, 1)]
    return pa.table([*names, pa.array(counts, pa.int64())], schema=CONFUSION_COLUMNS)
