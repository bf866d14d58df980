"""Copies that other tools find: ``python copies_workers.py TASK FOLDER ANSWER``, in the environment of the tool.

FOLDER holds a folder for each edit, with the originals, whose names begin with ``o``, and the edited images, whose
names end with ``__edit.jpg``. A worker answers, for each edit and threshold, the edited images that it pairs with their
original, and the number of pairs of two originals.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Pairs = Iterable[tuple[str, str, float]]
PDQ, PHASH, FASTDUP = (31, 60), (6, 10), (0.96, 0.9, 0.85)


def fastdup(folder: Path) -> Pairs:
    """Yield pairs with their similarity."""
    import fastdup as engine
    import pandas as pd

    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        engine.run(input_dir=str(folder), work_dir=work, threshold=min(FASTDUP), nearest_neighbors_k=20, verbose=False)
        names = pd.read_csv(Path(work) / "atrain_features.dat.csv").set_index("index")["filename"]
        found = pd.read_csv(Path(work) / "similarity.csv")
    for a, b, similarity in found[["from", "to", "distance"]].itertuples(index=False):
        yield Path(str(names.get(a, a))).name, Path(str(names.get(b, b))).name, float(similarity)


def _hashes(folder: Path, of_image: Callable[[Any], Any]) -> Pairs:
    import numpy as np
    from PIL import Image

    paths = sorted(folder.iterdir())
    bits = np.stack([of_image(Image.open(path).convert("RGB")) for path in paths]).astype(np.int32)
    distances = bits @ (1 - bits).T
    distances = distances + distances.T
    for a, b in zip(*np.nonzero(np.triu(distances <= max(*PDQ, *PHASH), 1)), strict=True):
        yield paths[a].name, paths[b].name, -float(distances[a, b])


def pdq(folder: Path) -> Pairs:
    """Yield pairs with the negative distance of PDQ hashes (256 bits)."""
    import numpy as np
    import pdqhash

    return _hashes(folder, lambda image: pdqhash.compute(np.asarray(image))[0])


def phash(folder: Path) -> Pairs:
    """Yield pairs with the negative distance of perceptual hashes (64 bits)."""
    import imagehash

    return _hashes(folder, lambda image: imagehash.phash(image).hash.ravel())


TASKS = {
    "fastdup": (fastdup, FASTDUP),
    "pdq": (pdq, tuple(-limit for limit in PDQ)),
    "phash": (phash, tuple(-limit for limit in PHASH)),
}


def main() -> None:
    """Run the task that the command line names."""
    find, thresholds = TASKS[sys.argv[1]]
    started = time.perf_counter()
    result = {folder.name: _count(find(folder), thresholds) for folder in sorted(Path(sys.argv[2]).iterdir())}
    answer = {"seconds": time.perf_counter() - started, "edits": result}
    Path(sys.argv[3]).write_text(json.dumps(answer), "utf-8")


def _count(pairs: Pairs, thresholds: tuple[float, ...]) -> dict[str, dict[str, int]]:
    found: dict[float, set[str]] = {threshold: set() for threshold in thresholds}
    false: dict[float, set[tuple[str, str]]] = {threshold: set() for threshold in thresholds}
    for a, b, similarity in pairs:
        first, second = sorted((a, b), key=lambda name: "__" in name)
        for threshold in thresholds:
            if similarity >= threshold:
                if second == f"{Path(first).stem}__edit.jpg":
                    found[threshold].add(second)
                elif "__" not in second and first != second:
                    false[threshold].add((min(a, b), max(a, b)))
    return {f"{each:g}": {"found": len(found[each]), "false": len(false[each])} for each in thresholds}


if __name__ == "__main__":
    main()
