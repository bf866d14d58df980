"""Wrong uses of the library: each is an error of ours, in one line that names the value and what would be right."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framedex
from framedex import Client, Error, vql
from tests.gallery import Gallery

_LONGEST = 800  # characters of a message; lists of columns are long
# An expression, and two parts of its message: what was wrong, and what would be right.
USES: list[tuple[str, str, str]] = [
    # Datasets and tasks.
    ("ws.dataset('galery')", "'galery'", "'gallery'"),
    ("ws.create_dataset('gallery', folder)", "'gallery'", "choose another name"),
    ("ws.create_dataset('n', '/nope')", "'/nope'", "a source is a folder"),
    ("ws.create_dataset('n', '')", "''", "a source is the path"),
    ("ws.create_dataset('n', '   ')", "'   '", "a source is the path"),
    ("ws.create_dataset('n', 7)", "int", "a source is"),
    ("ws.create_dataset('n', [])", "empty", "needs rows"),
    ("ws.create_dataset(7, folder)", "not 7", "text that is not empty"),
    ("ws.create_dataset('', folder)", "not ''", "text that is not empty"),
    ("ws.create_dataset('n', folder, 'gst')", "'gst'", "gist"),
    ("ws.create_dataset('n', folder, 'onnx:/nope.onnx')", "/nope.onnx", "no model file"),
    ("ws.create_dataset('n', folder, thresholds=(0.1, 0.2))", "(0.1, 0.2)", "five ascending"),
    ("ws.create_dataset('n', folder, boxes='/nope.json')", "'/nope.json'", "no file of boxes"),
    ("ws.task('nope')", "'nope'", "no task"),
    ("ws.tasks(status='RUNING')", "'RUNING'", "RUNNING"),
    ("ws.tasks(page=0)", "not 0", "from 1"),
    ("ws.delete_dataset('x')", "'x'", "'gallery'"),
    ("ws.vacuum(older_than_s='a')", "'a'", "number of seconds"),
    ("ws.in_namespace(7)", "not 7", "text"),
    ("framedex.Workspace(__file__)", "is a file", "a folder"),
    ("framedex.Workspace(7)", "not 7", "a path is text"),
    ("Client('nope')", "'nope'", "http://127.0.0.1:8765"),
    # Issues, duplicates, clusters.
    ("ds.issues('blury')", "'blury'", "blur"),
    ("ds.issues(['blur'])", "['blur']", "there are"),
    ("ds.issues(limit=-1)", "not -1", "from 0"),
    ("ds.duplicates(0.5)", "not 0.5", "0.96"),
    ("ds.duplicates(95)", "not 95", "0.96 to 1"),
    ("ds.duplicates('exact')", "'exact'", "a number"),
    ("ds.not_duplicates([ids[0]])", "two or more", "media ids"),
    ("ds.not_duplicates(['a', 'b'])", "'a'", "no media"),
    ("ds.explore(level=9)", "not 9", "0 to 4"),
    ("ds.explore(level=0.5)", "not 0.5", "0 to 4"),
    ("ds.explore(page_number=-1)", "not -1", "from 0"),
    ("ds.explore('VIDEO')", "'VIDEO'", "VIDEOS"),
    ("ds.explore(labels=7)", "not 7", "list of texts"),
    ("ds.cluster('x')", "'x'", "no cluster"),
    ("ds.histogram('blr')", "'blr'", "blur"),
    ("ds.histogram('blur', bins=0)", "not 0", "from 1"),
    ("ds.set_limits(blr=1)", "'blr'", "blur"),
    ("ds.set_limits(blur='x')", "'x'", "from 0 to 1"),
    ("ds.reset_limits('blr')", "'blr'", "blur"),
    ("ds.copies_of('x')", "'x'", "No such file"),
    ("ds.copies_of('00000000-0000-0000-0000-000000000000')", "00000000", "no media"),
    # Filters.
    ("ds.where({'labels': 1})", "{'labels': 1}", "an array"),
    ("ds.where('labels=cat')", "not", "a filter is JSON"),
    ("ds.where(7)", "not 7", "an array"),
    ("ds.where([{}])", "[]", "one key of"),
    ("ds.where([{'lables': {'op': 'is', 'value': 'x'}}])", "'lables'", "did you mean 'labels'"),
    ("ds.where([{'labels': {'op': 'equals', 'value': 'x'}}])", "'equals'", "'one_of'"),
    ("ds.where([{'labels': {'op': 'is'}}])", "$[0].labels.value", "required"),
    ("ds.where([{'labels': {'op': 'is', 'value': 'x', 'extra': 1}}])", "'extra'", "one of op, value"),
    ("ds.where(vql.labels == 'cat')", "False", "an array"),
    ("ds.where(vql.labels('a') and 7)", "neither true nor false", "by &, | and ~"),
    ("ds.where(vql.field('price', 'gt', 3)).count()", "'price'", "no custom field"),
    ("ds.where(vql.size('gt', '5MB'))", "'5MB'", "integer"),
    ("ds.where(vql.size('gt', 5, of='depth'))", "'depth'", "'width'"),
    ("ds.where(vql.issues('blury'))", "'blury'", "there are: blur"),
    ("ds.where(vql.uniqueness(7))", "found 7", "equal to 1"),
    ("ds.where(vql.duplicates(0.5))", "found 0.5", "0.96"),
    ("ds.where(vql.batch('x'))", "'x'", "integer"),
    ("ds.where(vql.date_added('gt', 'yesterday'))", "'yesterday'", "ISO 8601"),
    ("ds.where(vql.media('picture'))", "'picture'", "'image'"),
    ("ds.where(vql.file_name('like', 'x'))", "'like'", "'contains'"),
    # Views.
    ("view.sort_by('blr')", "'blr'", "blur"),
    ("view.sort_by(['blur'])", "['blur']", "there are"),
    ("view.limit(-1)", "not -1", "from 0"),
    ("view.limit(2.5)", "not 2.5", "whole number"),
    ("view.sample('a')", "'a'", "whole number"),
    ("view.diverse('a')", "'a'", "whole number"),
    ("view.split({'train': 0.8})", "{'train': 0.8}", "1 together"),
    ("view.split({'train': 0.8, 'val': 0.8})", "0.8", "at most 1"),
    ("view.split(0.8)", "not 0.8", "such as {'train': 0.8"),
    ("view.split({'train': 0.8, 'val': 0.2}, stratify='label')", "'label'", "'labels'"),
    ("view.select('x')", "'x'", "a sequence of ids"),
    ("view.select(['x'])", "'x'", "no media"),
    ("view[1000]", "1000", "a view of"),
    ("view['a']", "'a'", "integers or slices"),
    ("list(view.rows(['blr']))", "['blr']", "there are"),
    ("view.to_arrow('blur')", "'blur'", "as ['blur']"),
    ("view.first(-1)", "not -1", "from 0"),
    ("view.overlap(7)", "not 7", "a view of media"),
    ("view.overlap(view, similarity=0.5)", "not 0.5", "0.96"),
    ("view.to_torch(target='labl')", "'labl'", "label"),
    # Searches.
    ("ds.search('')", "''", "at least one word"),
    ("ds.search(7)", "not 7", "a text"),
    ("ds.search('x', by='word')", "'word'", "words"),
    ("ds.search('x', by='meaning')", "'gist'", "FRAMEDEX_TEXT_ENCODER"),
    ("ds.similar('/nope.jpg')", "'/nope.jpg'", "No such file"),
    ("ds.similar('00000000-0000-0000-0000-000000000000')", "00000000", "no media"),
    ("ds.similar(__file__)", "test_wrong_uses.py", "it is a text file"),
    ("ds.similar(np.zeros((5, 5, 3)))", "float64", "uint8"),
    ("ds.similar(7)", "int", "a media id, a path"),
    ("ds.similar(ids[0], bounding_box=(0, 0, 0, 0)).count()", "(0, 0, 0, 0)", "no pixel"),
    ("ds.similar(ids[0], bounding_box=(1, 2))", "(1, 2)", "x, y, width and height"),
    # Exports, files, pages.
    ("ds.export(tmp / 'x.zip', format='COCO')", "'COCO'", "coco"),
    ("ds.export(tmp / 'nope' / 'x.zip')", "No such file", "cannot write"),
    ("ds.export(tmp)", "a folder", "cannot write"),
    ("ds.export(tmp / 'x.txt')", "'x.txt'", "'x.zip'"),
    ("ds.export(tmp / 'x.json', format='csv')", "'x.json'", "'x.zip'"),
    ("ds.export(7)", "not 7", "a path is text"),
    ("ds.export(tmp / 'x.zip', format='yolo', split={'train': 2})", "{'train': 2}", "at most 1"),
    ("ds.export(tmp / 'x.zip', format='yolo', split=['train'])", "['train']", "such as"),
    ("ds.export(tmp / 'x.zip', format='json', split={'train': 0.8, 'val': 0.2})", "'json'", "yolo"),
    ("ds.read('x')", "'x'", "no media"),
    ("ds.read(ids)", "no media", "in this dataset"),
    ("ds.thumbnail(ids[0], size=0)", "not 0", "from 16"),
    ("ds.media_item('x')", "'x'", "no media"),
    ("ds.media_id('/nope')", "'/nope'", "no media at"),
    ("ds.report(tmp)", "a folder", "cannot write"),
    ("ds.report(tmp / 'x.html', level=7)", "not 7", "0 to 4"),
    # Edits.
    ("ds.tag('keep', ids[:1])", "'keep'", "nothing was changed"),
    ("ds.tag(ids[:1], '')", "not ''", "text that is not empty"),
    ("ds.tag(ids[:1], 7)", "not 7", "text"),
    ("ds.untag(ids[:1], 'nope')", "'nope'", "there are"),
    ("ds.set_labels({'x': ['a']})", "'x'", "nothing was changed"),
    ("ds.set_labels(ids[:1])", "set_labels", "None removes"),
    ("ds.set_captions(['a'])", "list", "by media id"),
    ("ds.set_captions({ids[0]: 7})", "not 7", "text or None"),
    ("ds.add_field('x', 'strng')", "'strng'", "string"),
    ("ds.add_field('width', 'string')", "'width'", "reserved"),
    ("ds.add_field('e', 'enum')", "not None", "at least one option"),
    ("ds.set_field('nope', {ids[0]: 1})", "'nope'", "there are"),
    ("ds.set_value('nope', ids[:1], 'x')", "'nope'", "labels"),
    ("ds.add_media()", "given: none", "Exactly one media source"),
    ("ds.add_media('')", "''", "a source is the path"),
    ("ds.add_media('/nope')", "'/nope'", "a source is"),
    ("ds.add_media(files='a.jpg')", "str", "a list of paths"),
    ("ds.add_media(archive='/nope.zip')", "'/nope.zip'", "No such file"),
    ("ds.add_objects('/nope.json')", "'/nope.json'", "no file of boxes"),
    ("ds.add_objects(__file__)", "test_wrong_uses.py", "give a COCO file"),
    ("ds.delete_media('x')", "'x'", "no media"),
    ("ds.undo(99)", "99", "journal"),
    ("ds.withdraw_decision('x')", "'x'", "no decision"),
    # Clean-up and life cycle.
    ("ds.plan_cleanup()", "name what to remove", "issues"),
    ("ds.plan_cleanup(duplicates='0.9')", "'0.9'", "0.96 to 1"),
    ("ds.plan_cleanup(issues=['blury'])", "'blury'", "blur"),
    ("ds.plan_cleanup(duplicates=0.96, keep='bst')", "'bst'", "best"),
    ("ds.snapshot('')", "not ''", "text that is not empty"),
    ("ds.restore('nope')", "'nope'", "there are"),
    ("ds.clone('nope')", "'nope'", "there are"),
    ("ds.compare('nope')", "'nope'", "there are"),
    ("ds.delete_snapshot('nope')", "'nope'", "there are"),
    ("ds.enrich('x')", "'x'", "IMAGE_TAGGING"),
    ("ds.enrich({'TAG': 'x'})", "'TAG'", "IMAGE_TAGGING"),
    ("ds.enrich({'IMAGE_TAGGING': 'nope'})", "'nope'", "models.toml"),
    ("ds.reindex()", "READY", "nothing to do"),
    ("ds.reindex(thresholds=(0.5, 0.4, 0.3, 0.2, 0.1))", "0.5", "five ascending"),
    ("ds.rename('')", "not ''", "text that is not empty"),
    ("ds.evaluate(iou=2)", "not 2", "at most 1"),
    ("ds.evaluate('annotated', 'detcted')", "'detcted'", "there are"),
    ("ds.object_issues('annotated', 'detcted')", "'detcted'", "there are"),
    ("ds.suggest_labels('x')", "'x'", "'labels'"),
    ("ds.merge('gallery', 'x')", "'gallery'", "a dataset of the same workspace"),
    ("ds.merge(ds, 'x')", "with itself", "clone()"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "wrong", "right"), USES, ids=[use for use, _, _ in USES])
def test_wrong_use(gallery: Gallery, tmp_path: Path, use: str, wrong: str, right: str) -> None:
    """The message is one line, names the value, and says what would be right; nothing is changed."""
    dataset = gallery.dataset
    names: dict[str, Any] = {
        "framedex": framedex, "Client": Client, "vql": vql, "np": np, "__file__": __file__, "tmp": tmp_path,
        "ws": gallery.workspace, "folder": gallery.folder, "ds": dataset, "view": dataset.view,
        "ids": dataset.view.media_ids(),
    }  # fmt: skip
    before = dataset.generation, len(gallery.workspace.datasets())
    with pytest.raises(Error) as raised:
        eval(use, names)
    message = str(raised.value)
    assert wrong in message
    assert right in message
    assert "\n" not in message
    assert len(message) <= _LONGEST
    assert (dataset.generation, len(gallery.workspace.datasets())) == before
    assert list(tmp_path.iterdir()) == []
