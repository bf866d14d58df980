"""Sources of annotations: found in a folder by their names, or named by the user, and read into indices."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.boxes import Box
from framedex.annotations.formats import AnnotationFormat, annotation_formats
from framedex.annotations.label_index import Annotations
from framedex.annotations.problems import Problems, problem
from framedex.annotations.relative_boxes import RelativeBox
from framedex.errors import InvalidInput
from framedex.settings import user_path


@dataclass(frozen=True)
class BoxSource:
    """A file, or a folder of small files, with boxes.

    Attributes:
        path: the file or the folder.
        format: the format, which reads boxes.
        loose: whether it lies elsewhere than the images, so that paths in it may differ from theirs.
    """

    path: Path
    format: AnnotationFormat
    loose: bool = False


def read_annotations(folder: str) -> Annotations:
    """Return the labels and captions in the annotation files of a folder; none where there are no such files.

    Raises:
        InvalidInput: a file is there and cannot be understood; the message names it and what would be right.
    """
    annotations = Annotations()
    for each in annotation_formats():
        if (path := each.labels_in(Path(folder))) is None or each.read_labels is None:
            continue
        try:
            for row in each.read_labels(path):
                annotations.add(row)
        except InvalidInput:
            raise
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidInput(f"cannot read the annotations {path}: {error}") from error
    return annotations


def find_boxes(folder: str | os.PathLike[str], *, loose: bool = False) -> list[BoxSource]:
    """Return the sources of boxes in a folder, which each format recognises by their names."""
    root = Path(folder)
    places = ((each, each.boxes_in(root)) for each in annotation_formats())
    return [BoxSource(path, each, loose) for each, path in places if path is not None]


def given_boxes(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[BoxSource]:
    """Return the sources of boxes that a user names: a file, a folder of VOC or YOLO files, or several of these.

    Raises:
        InvalidInput: one is not there, or is of no known kind.
    """
    several = [given] if isinstance(given, str | os.PathLike) else given
    if not isinstance(several, Sequence) or not several:
        raise InvalidInput(f"boxes are given as the path of a file or a folder, or a list of these, not {given!r}")
    return [each for path in several for each in _given(path)]


def _given(given: str | os.PathLike[str]) -> list[BoxSource]:
    if not isinstance(given, str | os.PathLike):
        raise InvalidInput(f"boxes are given as the path of a file or a folder, not {given!r}")
    path = Path(os.path.abspath(user_path(given)))  # noqa: PTH100 - keeps links, unlike resolve
    if path.is_file() and (matching := [each for each in annotation_formats() if each.reads_boxes_of(path)]):
        return [BoxSource(path, matching[0], loose=True)]
    if path.is_dir() and (found := find_boxes(path, loose=True)):
        return found
    if not path.exists():
        raise InvalidInput(f"there is no file of boxes {os.fspath(path)!r}")
    *others, last = (each.shown for each in annotation_formats() if each.read_boxes is not None)
    raise InvalidInput(f"{os.fspath(path)!r} has no boxes that can be read: give {', '.join(others)} or {last}")


def read_boxes(sources: Sequence[BoxSource], tell: Callable[[int], None] = lambda _count: None) -> BoxIndex:
    """Return all boxes of some sources. What cannot be used is in the index's ``problems``.

    A folder that was found by itself and turns out to have none is a problem, too; one that was named is an error.

    Args:
        sources: what is read.
        tell: called now and then with the number of boxes so far; raises to stop.

    Raises:
        InvalidInput: a file, or a folder that was named, cannot be read.
    """
    problems = Problems()
    index = BoxIndex(problems, loose=any(each.loose for each in sources))
    for source in _each_once(sources):
        try:
            index.add_all(_counted(source, problems, index, tell))
        except InvalidInput as error:
            if source.loose or source.path.is_file():
                raise
            problems.add(problem(os.fspath(source.path), source.path.name, str(error)))
    return index


def _each_once(sources: Sequence[BoxSource]) -> list[BoxSource]:
    """Return each source once, however often it was named or found."""
    return list({(os.path.realpath(each.path), each.format.name): each for each in reversed(sources)}.values())[::-1]


def _counted(
    source: BoxSource, problems: Problems, index: BoxIndex, tell: Callable[[int], None]
) -> Iterator[Box | RelativeBox]:
    assert source.format.read_boxes is not None, "it has boxes"
    for box in source.format.read_boxes(source.path, problems):
        if len(index) % 4096 == 0:
            tell(len(index))
        yield box
