"""Names of images in annotation files, and the images that they mean.

A name is a path within the source, a file name alone, or a path or an address on another machine. The path of an image
counts before all others. A name that is no path means the only image whose path ends as the name does: with all of a
path within the source, with as much as possible of one of another machine; a name without the suffix of an image means
one of any suffix. Where several images remain, or several
names of a file for one image, nothing is chosen: that is a problem. A name of no image means the only one whose name
differs in case, or else in its suffix alone; this is counted.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from framedex.annotations.problems import AnnotationProblem, Problems
from framedex.core.counts import counted
from framedex.core.name_forms import composed, inner_parts, normal_name
from framedex.core.suffixes import is_image

BY_CASE = "names in annotations that differ from their image in upper and lower case"
BY_SUFFIX = "names in annotations that differ from their image in the suffix"
SEVERAL_IMAGES = "names in annotations that mean several images"
SEVERAL_NAMES = "names in annotations that mean the same image"
_SHOWN = 3  # candidates in a message
NO_SUFFIX = "\0"
_FOLDED = "\1"  # at the end of a name without regard to case
_FOREIGN = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def without_suffix(path: str) -> str:
    """Return the key of a path without its suffix, as YOLO files name images. No file name equals such a key."""
    return os.path.splitext(path)[0] + NO_SUFFIX  # noqa: PTH122 - names may be any bytes


def name_text(name: str) -> str:
    """Return a name for messages."""
    return name.rstrip(NO_SUFFIX)


@dataclass
class _Candidates:
    """The images that a name may mean: those that have the most parts at the end in common with it.

    Of these an image counts whose whole path is the end of the name.
    """

    rank: int = 0
    count: int = 0
    paths: list[str] = field(default_factory=list)

    def add(self, path: str, rank: int) -> None:
        if rank > self.rank:
            self.rank, self.count, self.paths = rank, 0, []
        if rank == self.rank:
            self.count += 1
            if len(self.paths) < _SHOWN:
                self.paths.append(path)

    def join(self, others: "_Candidates", rank: int) -> None:
        """Add the images of another form of the name, whose ranks are above one."""
        if others.rank + rank > self.rank:
            self.rank, self.count, self.paths = others.rank + rank, others.count, list(others.paths)
        elif others.rank + rank == self.rank:
            further = [each for each in others.paths if each not in self.paths]
            self.count += others.count - (len(others.paths) - len(further))
            self.paths = [*self.paths, *further][:_SHOWN]


class ImageNames:
    """The images that names mean which are not their paths.

    Attributes:
        ambiguous: the names that mean nothing, because several images or names are possible.
    """

    def __init__(self) -> None:
        self.ambiguous: set[str] = set()
        self._others: dict[str, tuple[str, ...]] = {}

    def of(self, path: str, names: Mapping[str, object]) -> list[str]:
        """Return which names mean the image at a path within the source.

        Args:
            path: the path.
            names: all names, with those of :func:`without_suffix`.
        """
        found = [name for name in (path, without_suffix(path)) if name in names and name not in self.ambiguous]
        return [*found, *self._others.get(path, ())] if self._others else found

    def find(
        self,
        names: Mapping[str, int],
        paths: Callable[[], Iterable[str]],
        problems: Problems,
        *,
        loose: int = 0,
        several_roots: bool = False,
    ) -> None:
        """Find the images that names mean. Memory grows with the names that are not the path of an image.

        Args:
            names: by each name the files that have it, as bits. An image whose path a file names has no
                other name in it.
            paths: returns the paths of all images of the source; called twice if some name is no path, and three times
                if some name is that of no image.
            problems: collects the names that mean nothing.
            loose: the files, as bits, that lie elsewhere than the images: their names may begin with folders that these
                do not have.
            several_roots: whether images may have the same path, below another root.
        """
        pending, repeated = set(names), set[str]()
        foreign: dict[str, list[str]] = {}
        for name in names:
            if "\\" in name:
                foreign.setdefault(normal_name(name), []).append(name)
        for path in paths():
            stem = without_suffix(path)
            pending.discard(stem)
            if path in pending:
                pending.remove(path)
            elif several_roots and path in names:
                repeated.add(path)
            if foreign and (meant := (*foreign.get(path, ()), *foreign.get(stem, ()))):
                repeated.update(meant if path in self._others else ())
                self._others[path] = meant
        for path, meant in self._others.items():  # separators of Windows, in names that are no path as they are
            self._others[path] = tuple(name for name in meant if name in pending and name not in repeated)
            pending.difference_update(meant)
        for name in sorted(repeated):
            self._add_problem(problems, name, [normal_name(name)], "images below several sources have this path")
        for loosely in (False, True):
            if pending:
                candidates = self._candidates(names, pending, paths(), loose, several_roots, loosely=loosely)
                self._decide(names, candidates, problems, loosely=loosely)
                pending.difference_update(candidates)

    def _candidates(
        self,
        names: Mapping[str, int],
        pending: Iterable[str],
        paths: Iterable[str],
        loose: int,
        several_roots: bool,
        *,
        loosely: bool,
    ) -> dict[str, _Candidates]:
        """Return the images that names may mean, by name; if *loosely*, those that differ in case or in the suffix."""
        forms: list[tuple[str, list[str], bool]] = []
        for name in pending:
            is_any = bool(names[name] & loose) or _FOREIGN.match(normal_name(name)) is not None
            for *folders, last in filter(None, map(_parts, dict.fromkeys((name, normal_name(name))))):
                if loosely:
                    forms += [(name, form, is_any) for form in _loose_forms([*folders, last])]
                    continue
                forms.append((name, [*folders, last], is_any))
                if not name.endswith(NO_SUFFIX) and not is_image(last):  # some tools leave the suffix away
                    forms.append((name, [*folders, last + NO_SUFFIX], is_any))
        ends = {end for _, parts, _ in forms for end in _ends(parts)}
        by_end: dict[str, _Candidates] = {}
        for path in paths:
            plain = composed(path)
            keys = [plain, without_suffix(plain)]
            for key in [*keys, *(key.casefold() + _FOLDED for key in keys)] if loosely else keys:
                for end in _ends(key.split("/")):
                    if end not in ends:  # nor is a longer one
                        break
                    each = by_end.setdefault(end, _Candidates())
                    if several_roots or path not in each.paths:  # the old and the new row of a file that changed
                        each.add(path, int(end == key))
        found: dict[str, _Candidates] = {}
        for name, parts, is_any in forms:
            if loosely and name in found:  # by case
                continue
            lengths = range(len(parts), 0 if is_any else len(parts) - 1, -1)
            length = next((each for each in lengths if "/".join(parts[-each:]) in by_end), None)
            if length is not None:
                found.setdefault(name, _Candidates()).join(by_end["/".join(parts[-length:])], 2 * length)
        return found

    def _decide(
        self, names: Mapping[str, int], candidates: Mapping[str, _Candidates], problems: Problems, *, loosely: bool
    ) -> None:
        """Take the names that mean one image, which no other name of their file means as well."""
        by_path: dict[str, list[str]] = {}
        for name, each in candidates.items():
            if each.count > 1:
                self._add_problem(
                    problems, name, each.paths, f"{counted(each.count, 'images', 'have')} this name", each.count
                )
            elif not any(names.get(key, 0) & names[name] for key in self._meant(each.paths[0])):
                by_path.setdefault(each.paths[0], []).append(name)
        for path, rivals in by_path.items():
            most = max(candidates[name].rank for name in rivals)
            best = [name for name in rivals if candidates[name].rank == most]
            several = [name for name in best if any(names[name] & names[other] for other in best if other != name)]
            for name in several:
                shown = [name_text(other) for other in several if other != name]
                self._add_problem(problems, name, [path], f"{shown[0]!r} may mean this image, too", kind=SEVERAL_NAMES)
            chosen = [name for name in best if name not in several]
            self._others[path] = (*self._others.get(path, ()), *chosen)
            for name in chosen if loosely else ():
                problems.add(_note(name, path))

    def _meant(self, path: str) -> tuple[str, ...]:
        """Return the names that mean an image before all others."""
        return (path, without_suffix(path), *self._others.get(path, ()))

    def _add_problem(
        self,
        problems: Problems,
        name: str,
        paths: list[str],
        reason: str,
        count: int = 0,
        *,
        kind: str = SEVERAL_IMAGES,
    ) -> None:
        self.ambiguous.add(name)
        shown = ", ".join(map(repr, paths)) + (", …" if count > len(paths) else "")
        problems.add(AnnotationProblem(name_text(name), shown, f"{reason}: give the path within the source", kind))


def _note(name: str, path: str) -> AnnotationProblem:
    """Return the note that a name means an image of another name."""
    last, of_image = (each.rpartition("/")[2].casefold() for each in (normal_name(name), path))
    by_case = composed(last) in (composed(of_image), composed(without_suffix(of_image)))
    reason = "is taken for the only image whose name differs"
    how, kind = ("in upper and lower case", BY_CASE) if by_case else ("in the suffix", BY_SUFFIX)
    return AnnotationProblem(name_text(name), repr(path), f"{reason} {how} alone", kind)


def _loose_forms(parts: list[str]) -> Iterator[list[str]]:
    """Yield the parts of a name without regard to case, and those with the suffix of any image."""
    *folders, last = parts
    yield [*(each.casefold() for each in folders), last.casefold() + _FOLDED]
    if is_image(last):
        yield [*folders, without_suffix(last)]


def _parts(name: str) -> list[str]:
    """Return the folders and the file name in a name, composed (NFC), without those that lead upwards."""
    if _ADDRESS.match(name):
        name = unquote(name.partition("?")[0])
    return inner_parts(composed(name))


def _ends(parts: list[str]) -> Iterator[str]:
    """Yield the ends of a path, the shortest first."""
    end = ""
    for part in reversed(parts):
        end = f"{part}/{end}" if end else part
        yield end
