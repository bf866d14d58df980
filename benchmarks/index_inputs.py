"""Tasks that write what the index benchmarks measure on: vectors, tables, changed photos, wrong labels."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vectors import Clustered, uniform, unit

Answer = dict[str, Any]
Vectors = npt.NDArray[np.float32]
SEED = 20261121
_SMALL = 5000  # rows of the largest sub-clusters of the kind "small"


def embed(photos: Sequence[str], versions: int, model: str, target: str, threads: int, **_: Any) -> Answer:
    """Write embeddings of photos."""
    from embeddings import write_embeddings

    paths = [Path(path) for path in photos]
    write_embeddings(paths, versions, model=Path(model), target=Path(target), threads=threads)
    return {"seconds": 0}


def write_vectors(
    kind: str,
    target: str,
    rows: int,
    drawn: str,
    sample: int,
    dimension: int = 0,
    embeddings: str | None = None,
    **_: Any,
) -> Answer:
    """Write vectors to a NumPy file, and some of their rows, drawn by chance, to another.

    The embeddings of photos are the first rows of theirs.
    """
    np.save(drawn, np.sort(np.random.default_rng(SEED).permutation(rows)[:sample]))
    blocks = _blocks(kind, rows, dimension, embeddings)
    first = next(blocks)
    out = np.lib.format.open_memmap(target, mode="w+", dtype=np.float32, shape=(rows, first.shape[1]))
    out[: len(first)] = first
    start = len(first)
    for block in blocks:
        out[start : start + len(block)] = block
        start += len(block)
    out.flush()
    return {"seconds": 0, "dimension": out.shape[1]}


def _blocks(kind: str, rows: int, dimension: int, embeddings: str | None) -> Iterator[Vectors]:
    if kind in ("clustered", "noisy"):
        return _kinds(kind, rows, dimension)
    if kind == "uniform":
        return iter([uniform(rows, dimension)])
    assert embeddings is not None, "the embeddings of photos come from a file"
    held = np.load(embeddings, mmap_mode="r")
    if len(held) < rows:
        raise SystemExit(f"there are {len(held)} embeddings of photos, not {rows}")
    return iter([np.asarray(held[:rows])])


def write_tables(targets: Sequence[tuple[str, int]], dimension: int, **_: Any) -> Answer:
    """Write clustered vectors to Parquet files with ``uri`` and ``embedding``: so many rows to each, one after another.

    All files together are one sequence of vectors, so later files hold more of the same clusters.
    """
    blocks = _batches(Clustered(sum(rows for _, rows in targets), dimension))
    held, first = next(blocks), 0
    for target, rows in targets:
        with _writer(Path(target), dimension) as writer:
            left = rows
            while left:
                if not len(held):
                    held = next(blocks)
                part, held = held[:left], held[left:]
                writer.write_table(_table(part, first))
                first, left = first + len(part), left - len(part)
    return {"seconds": 0}


def write_kind(kind: str, target: str, rows: int, dimension: int, **_: Any) -> Answer:
    """Write vectors of a kind to a Parquet file with ``uri`` and ``embedding``."""
    first = 0
    with _writer(Path(target), dimension) as writer:
        for block in _kinds(kind, rows, dimension):
            writer.write_table(_table(block, first))
            first += len(block)
    return {"seconds": 0}


def _kinds(kind: str, rows: int, dimension: int) -> Iterator[Vectors]:
    """Yield vectors: clustered, also in small ones or with noise, equal, of three values, in one cluster, or uniform.

    Those of one cluster have a similarity of about 0.8 to each other, in directions without structure.
    """
    random = np.random.default_rng(SEED)
    values = uniform(3, dimension)
    for number, block in enumerate(Clustered(rows, dimension, largest=_SMALL if kind == "small" else 0).blocks()):
        if kind in ("clustered", "small"):
            yield block
        elif kind == "noisy":
            yield unit(block + random.standard_normal(block.shape, dtype=np.float32) / np.sqrt(np.float32(dimension)))
        elif kind == "one":
            yield unit(values[:1] + uniform(len(block), dimension, seed=number) / 2)
        elif kind == "uniform":
            yield uniform(len(block), dimension, seed=number)
        else:
            yield values[random.integers(0, 3 if kind == "three" else 1, len(block))]


def _batches(vectors: Clustered) -> Iterator[Vectors]:
    yield from vectors.blocks()


def _writer(target: Path, dimension: int) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({"uri": pa.string(), "embedding": pa.list_(pa.float32(), dimension)})
    # Random numbers do not become smaller by compression.
    return pq.ParquetWriter(target, schema, compression="none", use_dictionary=False)


def _table(vectors: Vectors, first: int) -> Any:
    import pyarrow as pa

    uris = [f"images/{number:09d}.jpg" for number in range(first, first + len(vectors))]
    embedding = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.table({"uri": uris, "embedding": embedding})


def write_edits(target: str, photos: Sequence[str], sources: int, distractors: int | None, **_: Any) -> Answer:
    """Write a folder with edits of some photos, and links to those and to others; the answer names the sources."""
    # The edits and their truth are those of the benchmark of near-duplicates.
    from duplicates import _chosen, _make_edits

    chosen, rest = _chosen([Path(path) for path in photos], sources)
    _make_edits(chosen, rest[:distractors], Path(target))
    return {"seconds": 0}


def write_labelled(
    versions: int, target: str, share: float, seeds: int, classes: int, embeddings: str, photos: int, **_: Any
) -> Answer:
    """Write vectors with their true labels and, for each seed, labels of which a share was replaced by others.

    Args:
        versions: of each photo, whose vectors are labelled by the photo; 0: scikit-learn's digits are taken.
        target: a NumPy archive with ``vectors`` (N, D), ``truth`` (N,) and ``given`` (seeds, N).
        share: of the labels that are replaced.
        seeds: how many times.
        classes: of the photos.
        embeddings: of the photos.
        photos: how many there are, of which all versions are among the embeddings.
    """
    vectors, truth = _by_photo(embeddings, photos, classes, versions) if versions else _digits()
    given = np.stack([_flipped(truth, share, seed) for seed in range(seeds)])
    np.savez(target, vectors=vectors, truth=truth, given=given)
    return {
        "seconds": 0,
        "rows": len(truth),
        "classes": int(truth.max()) + 1,
        "flipped": int((given[0] != truth).sum()),
    }


def _digits() -> tuple[Vectors, npt.NDArray[np.int64]]:
    from sklearn.datasets import load_digits

    pixels, truth = load_digits(return_X_y=True)
    return unit(pixels), truth.astype(np.int64)


def _by_photo(embeddings: str, photos: int, classes: int, versions: int) -> tuple[Vectors, npt.NDArray[np.int64]]:
    held = np.load(embeddings, mmap_mode="r")[: photos * versions]
    photo = np.arange(len(held)) % photos
    chosen = np.random.default_rng(SEED).permutation(photos)[:classes]
    rows = np.flatnonzero(np.isin(photo, chosen))
    return np.asarray(held[rows]), np.unique(photo[rows], return_inverse=True)[1].astype(np.int64)


def _flipped(truth: npt.NDArray[np.int64], share: float, seed: int) -> npt.NDArray[np.int64]:
    """Return labels of which a share, chosen by chance, was replaced by another class, each as likely."""
    random = np.random.default_rng((SEED, seed))
    classes = int(truth.max()) + 1
    rows = random.choice(len(truth), round(share * len(truth)), replace=False)
    given = truth.copy()
    given[rows] = (given[rows] + random.integers(1, classes, len(rows))) % classes
    return given
