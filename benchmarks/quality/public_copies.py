"""Copies between queries and references, as the public sets of copy detection are laid out.

* DISC21 (M. Douze et al., "The 2021 Image Similarity Dataset and Challenge", 2021): ``--disc FOLDER`` with
  ``references/``, ``queries/`` and a table of ``query_id,reference_id``, one of whose names ends in
  ``ground_truth.csv``; a query without a reference has an empty second column.
* Copydays (H. Jégou et al., "Hamming embedding and weak geometric consistency", ECCV 2008): ``--copydays FOLDER`` with
  ``original/`` and folders of copies, whose names without the last two digits are those of their originals.

Without either a set of the layout of DISC21 is made: references are the photos of the reporting half and distractors,
which are other photos and crops of them; queries are edits of some references, and as many photos without a reference.
Printed are the micro average precision over all pairs, and the recall at a precision of 0.9, as in DISC21.
"""

import csv
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES, half, photos_of
from image_edits import EDITS, original
from PIL import Image

from common import arguments, save, table
from framedex import Workspace

PRECISION, SEED, QUALITY = 0.9, 21, 90
SUFFIXES = (".jpg", ".jpeg", ".png")
Pair = tuple[str, str]


@dataclass(frozen=True)
class CopySet:
    """A set of queries and references: folders, and the pairs of names without suffix that are copies."""

    queries: Path
    references: Path
    copies: frozenset[Pair]


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--disc", type=Path, help="folder of DISC21")
    parser.add_argument("--copydays", type=Path, help="folder of Copydays")
    parser.add_argument("--edited", type=int, default=40, help="photos that are edited, where a set is made")
    parser.add_argument("--distractors", type=int, default=2000, help="references without a query, where a set is made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        sets = dict(_sets(options.disc, options.copydays, Path(work)))
        sets = sets or {"made": _made(options.data, Path(work) / "made", options.edited, options.distractors)}
        results = {name: _measured(each, Path(work)) for name, each in sets.items()}
    print(table(("set", *next(iter(results.values()))), [(name, *row.values()) for name, row in results.items()]))
    save("quality-public-copies", {"results": results})


def _sets(disc: Path | None, copydays: Path | None, work: Path) -> Iterator[tuple[str, CopySet]]:
    if disc is not None:
        (truth,) = disc.glob("*ground_truth.csv")
        with truth.open(newline="", encoding="utf-8") as file:
            rows = [row for row in csv.reader(file) if len(row) >= 2 and row[1] and row[0] != "query_id"]
        yield "DISC21", CopySet(disc / "queries", disc / "references", frozenset((row[0], row[1]) for row in rows))
    if copydays is not None:
        queries = work / "copydays"
        queries.mkdir()
        for path in _images(copydays):
            if path.parent.name != "original":
                # One name may be in several folders, one for each strength of an edit.
                (queries / "-".join(path.relative_to(copydays).parts)).symlink_to(path.resolve())
        originals = {path.stem[:-2]: path.stem for path in _images(copydays / "original")}
        found = [(path.stem, originals.get(path.stem.rsplit("-", 1)[-1][:-2])) for path in _images(queries)]
        copies = frozenset((query, name) for query, name in found if name is not None)
        yield "Copydays", CopySet(queries, copydays / "original", copies)


def _images(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def _made(data: Path, folder: Path, edited: int, distractors: int) -> CopySet:
    """Return a set that is made of the photos of the reporting half."""
    random = np.random.default_rng(SEED)
    queries, references = folder / "queries", folder / "references"
    queries.mkdir(parents=True)
    references.mkdir()
    photos, copies = half(data, HALVES[1]), set[Pair]()
    others = photos_of(data, "photos/flickr8k-1000")
    without, further = others[:edited], others[edited:]
    for number, path in enumerate(photos):
        _save(original(Image.open(path)), references / f"R{number:06d}.jpg")
    for number in range(distractors):
        photo = original(Image.open(further[number % len(further)]))
        if number >= len(further):
            photo = photo.crop(_part(photo.size, random))
        _save(photo, references / f"R{len(photos) + number:06d}.jpg")
    chosen = sorted(random.choice(len(photos), min(edited, len(photos)), replace=False).tolist())
    for number in chosen:
        for kind, (edit, quality) in EDITS.items():
            name = f"Q{number:06d}-{kind}"
            _save(edit(original(Image.open(photos[number]))), queries / f"{name}.jpg", quality)
            copies.add((name, f"R{number:06d}"))
    for number, path in enumerate(without):
        for kind, (edit, quality) in EDITS.items():
            _save(edit(original(Image.open(path))), queries / f"Q9{number:05d}-{kind}.jpg", quality)
    return CopySet(queries, references, frozenset(copies))


def _part(size: tuple[int, int], random: np.random.Generator) -> tuple[int, int, int, int]:
    """Return a random part of half the width and height: left, top, right and bottom."""
    wide, high = (each // 2 for each in size)
    left, top = (int(random.integers(0, each - part + 1)) for each, part in zip(size, (wide, high), strict=True))
    return left, top, left + wide, top + high


def _save(image: Image.Image, path: Path, quality: int = QUALITY) -> None:
    image.convert("RGB").save(path, "JPEG", quality=quality)


def _measured(copies: CopySet, work: Path) -> dict[str, float]:
    """Return what was found of a set."""
    with Workspace(work / "workspace") as workspace:
        started = time.perf_counter()
        queries = workspace.create_dataset("queries", copies.queries, "gist")
        references = workspace.create_dataset("references", copies.references, "gist")
        found = queries.overlap(references).to_arrow()
        seconds = time.perf_counter() - started
        images = len(queries.view) + len(references.view)
    scores: dict[Pair, float] = {}
    columns = (found[name].to_pylist() for name in ("here_name", "there_name", "similarity"))
    for query, reference, similarity in zip(*columns, strict=True):
        scores[Path(query).stem, Path(reference).stem] = similarity
    precision, recall = _average_precision(scores, copies.copies)
    wrong = sum(pair not in copies.copies for pair in scores)
    return {
        "images": images,
        "copies": len(copies.copies),
        "µAP": precision,
        f"recall at precision {PRECISION}": recall,
        "found": len(scores) - wrong,
        "wrong": wrong,
        "seconds": seconds,
    }


def _average_precision(scores: Mapping[Pair, float], copies: frozenset[Pair]) -> tuple[float, float]:
    """Return the micro average precision, and the largest recall at a precision of at least 0.9.

    Pairs of one score count together: those of a score are ranked by no order.
    """
    values = np.array(list(scores.values()))
    is_copy = np.array([pair in copies for pair in scores], dtype=bool)
    average = best = before = 0.0
    for score in sorted(set(values.tolist()), reverse=True):
        listed = values >= score
        precision, recall = is_copy[listed].mean(), is_copy[listed].sum() / len(copies)
        average += precision * (recall - before)
        best = max(best, recall if precision >= PRECISION else 0.0)
        before = recall
    return float(average), float(best)


if __name__ == "__main__":
    main()
