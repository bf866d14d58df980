"""Sources of annotations: discovered in a folder or passed by the user, and read into indices."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from framedex.annotations.box_index import BoxIndex
from framedex.annotations.boxes import Box
from framedex.annotations.class_folders import find_class_folders
from framedex.annotations.formats import AnnotationFormat, annotation_formats
from framedex.annotations.label_index import Annotations
from framedex.annotations.labelme import JSON_FILES, is_labelme_file
from framedex.annotations.problems import AnnotationProblem, Problems, problem
from framedex.annotations.relative_boxes import RelativeBox
from framedex.annotations.voc_parts import XML_FILES
from framedex.core.allowed_folders import OUTSIDE, AllowedFolders, each_within, within
from framedex.core.regular_files import scan
from framedex.errors import InvalidInput
from framedex.settings import user_path

_UNREADABLE = (InvalidInput, OSError, ValueError, RecursionError)
"""Errors of a reader; those of Arrow are among them."""
_ANNOTATIONS = ("annotations", "Annotations")
_LIKE_ANNOTATIONS = (".json", ".jsonl", ".xml", ".csv", ".parquet", ".tsv")


@dataclass(frozen=True)
class BoxSource:
    """A file, or a folder of small files, with boxes.

    Attributes:
        path: the file or the folder.
        format: the format, which reads boxes.
        loose: whether the source lies in another folder than the images, so that its paths may differ from theirs.
        allowed: the folders from which it may be read; None for any.
        interpolate: whether boxes between key frames of tracks are read, too.
    """

    path: Path
    format: AnnotationFormat
    loose: bool = False
    allowed: AllowedFolders | None = None
    interpolate: bool = False


def read_annotations(
    folder: str,
    allowed: AllowedFolders | None = None,
    *,
    class_folders: bool | None = False,
) -> Annotations:
    """Return the labels, captions, tags and further values that the files and the names in a folder state.

    A file that cannot be read is one of the ``problems`` of the annotations.

    Args:
        folder: with the files.
        allowed: the folders from which files may be read; None for any.
        class_folders: whether its folders are classes; None to decide, see
            :func:`framedex.annotations.class_folders.find_class_folders`.

    Raises:
        InvalidInput: the folder has no folders that could be the classes that are asked for.
        Forbidden: a file is in no allowed folder.
    """
    with within(allowed):
        annotations = _read_annotations(folder)
        if class_folders or (class_folders is None and not annotations.sources):
            classes = find_class_folders(folder, is_asked=class_folders, doubts=annotations.ignored)
            if classes is not None:
                annotations.rules.append(classes)
                annotations.sources.append(str(classes))
        return annotations


def _read_annotations(folder: str) -> Annotations:
    annotations = Annotations(problems=Problems(folder))
    files = {name for each in annotation_formats() for name in each.files_in(Path(folder))}
    annotations.sources += sorted(files)
    annotations.ignored += ignored_files(folder, files)
    for each in annotation_formats():
        if (path := each.labels_in(Path(folder))) is None or each.read_labels is None:
            continue
        annotations.begin_file()
        try:
            for row in each.read_labels(path):
                if isinstance(row, AnnotationProblem):
                    annotations.problems.add(row)
                else:
                    annotations.add(row)
            if each.labels_file is not None and each.read_lists is not None:
                annotations.lists.add_all(each.read_lists(path))
        except _UNREADABLE as error:
            annotations.problems.add(_unreadable(path, each, _sentence(path, error)))
    return annotations


def ignored_files(folder: str, files: Collection[str]) -> list[str]:
    """Return the files at the top of a folder, and in ``annotations``, that look like annotations but are not read."""
    found, suffixes = [], tuple(each for each in _LIKE_ANNOTATIONS if each != ".xml" or XML_FILES not in files)
    for part in ("", *_ANNOTATIONS):
        try:
            with scan(os.path.join(folder, part)) as entries:  # noqa: PTH118
                names = [entry.name for entry in entries if entry.name.lower().endswith(suffixes)]
        except OSError:
            continue
        found += [f"{part}/{name}" if part else name for name in names if not name.startswith(".")]
    is_known = partial(_is_of_labelme, folder) if JSON_FILES in files else set[str]().__contains__
    return sorted(name for name in set(found) - set(files) if not is_known(name))


def _is_of_labelme(folder: str, name: str) -> bool:
    try:
        return name.lower().endswith(".json") and is_labelme_file(Path(folder, name))
    except OSError:
        return False


def find_box_sources(
    folder: str | os.PathLike[str], *, loose: bool = False, allowed: AllowedFolders | None = None
) -> list[BoxSource]:
    """Return the sources of boxes in a folder. Each format recognises its own by their names.

    Raises:
        Forbidden: a file is in no allowed folder.
    """
    root = Path(folder)
    with within(allowed):
        paths = [(each, each.boxes_in(root)) for each in annotation_formats()]
    return [BoxSource(path, each, loose, allowed) for each, path in paths if path is not None]


def annotation_file_finder(folder: str, names: Collection[str], boxes: Sequence[BoxSource]) -> Callable[[str], bool]:
    """Return a function that says whether a path within a folder is that of a file of annotations that is read.

    Args:
        folder: the folder.
        names: the paths of files that were read, as ``sources`` of annotations has them.
        boxes: the sources of boxes in the folder.
    """
    known = frozenset(names)
    finders = [each.format.label_file_finder(Path(folder)) for each in boxes if each.format.label_file_finder]
    return lambda path: path in known or any(is_read(path) for is_read in finders)


def resolve_box_sources(
    boxes: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], allowed: AllowedFolders | None = None
) -> list[BoxSource]:
    """Return the sources of boxes that a user passes: a file, a folder of VOC or YOLO files, or a list of these.

    Args:
        boxes: the paths.
        allowed: the folders from which files may be read; None for any.

    Raises:
        InvalidInput: a path does not exist, or no format reads it.
        Forbidden: a path is in no allowed folder.
    """
    several = [boxes] if isinstance(boxes, str | os.PathLike) else boxes
    if not isinstance(several, Sequence) or not several:
        raise InvalidInput(f"boxes are given as the path of a file or a folder, or a list of these, not {boxes!r}")
    return [each for path in several for each in _resolve(path, allowed)]


def _resolve(boxes: str | os.PathLike[str], allowed: AllowedFolders | None) -> list[BoxSource]:
    if not isinstance(boxes, str | os.PathLike):
        raise InvalidInput(f"boxes are given as the path of a file or a folder, not {boxes!r}")
    path = Path(os.path.abspath(user_path(boxes)))  # noqa: PTH100 - does not follow links, unlike resolve
    if allowed is not None:
        allowed.check(path)
    try:
        return _sources_at(path, allowed)
    except OSError as error:  # such as a name that is too long
        raise InvalidInput(f"cannot read the boxes {os.fspath(path)!r}: {error.strerror or error}") from error


def _sources_at(path: Path, allowed: AllowedFolders | None) -> list[BoxSource]:
    if path.is_file() and (matching := [each for each in annotation_formats() if each.reads_boxes_of(path)]):
        return [BoxSource(path, matching[0], loose=True, allowed=allowed)]
    if path.is_dir() and (sources := find_box_sources(path, loose=True, allowed=allowed)):
        return sources
    if not path.exists():
        raise InvalidInput(f"there is no file of boxes {os.fspath(path)!r}")
    *others, last = (each.shown for each in annotation_formats() if each.read_boxes is not None)
    raise InvalidInput(f"{os.fspath(path)!r} has no boxes that can be read: give {', '.join(others)} or {last}")


def read_box_index(sources: Sequence[BoxSource], progress: Callable[[int], None] = lambda _count: None) -> BoxIndex:
    """Return the index of all boxes of some sources. The index's ``problems`` list the parts that cannot be used.

    A discovered file or folder that cannot be read is a problem. One that the user passed is an error.

    Args:
        sources: the files and folders to read.
        progress: called now and then with the number of boxes so far; it may raise to stop.

    Raises:
        InvalidInput: a file or a folder that the user passed cannot be read.
    """
    problems = Problems()
    index = BoxIndex(problems)
    for source in _distinct(sources):
        problems.folder = os.fspath(source.path if source.path.is_dir() else source.path.parent)
        index.begin_file(loose=source.loose)
        try:
            index.add_all(_counted(source, problems, index, progress))
            if source.format.read_lists is not None and not _has_labels(source):
                index.lists.add_all(each_within(source.allowed, partial(source.format.read_lists, source.path)))
        except _UNREADABLE as error:
            sentence = _sentence(source.path, error)
            if source.loose:
                raise InvalidInput(sentence) from error
            problems.add(_unreadable(source.path, source.format, sentence))
    return index


def _sentence(path: Path, error: Exception) -> str:
    """Return why annotations cannot be read."""
    reason = OUTSIDE if getattr(error, "strerror", None) == OUTSIDE else error
    return str(error) if isinstance(error, InvalidInput) else f"cannot read the annotations {path}: {reason}"


def _unreadable(path: Path, format_: AnnotationFormat, sentence: str) -> AnnotationProblem:
    """Return an annotation file that cannot be read, or the file of a folder that a sentence names, as a problem."""
    files = format_.files_in(path) if path.is_dir() else ()
    name = next((each for each in files if each in sentence), path.name)
    return problem(name, name, sentence)


def _has_labels(source: BoxSource) -> bool:
    """Return whether :func:`read_annotations` reads the file, too: one that was discovered beside the images."""
    return source.format.labels_file is not None and not source.loose


def _distinct(sources: Sequence[BoxSource]) -> list[BoxSource]:
    """Return the sources without duplicates."""
    return list({(os.path.realpath(each.path), each.format.name): each for each in reversed(sources)}.values())[::-1]


def _counted(
    source: BoxSource, problems: Problems, index: BoxIndex, progress: Callable[[int], None]
) -> Iterator[Box | RelativeBox]:
    reader = (source.format.read_interpolated if source.interpolate else None) or source.format.read_boxes
    assert reader is not None, "it has boxes"
    read: Callable[[], Iterator[Box | RelativeBox]] = partial(reader, source.path, problems)
    for box in each_within(source.allowed, read):
        if len(index) % 4096 == 0:
            progress(len(index))
        yield box
