"""Tasks that compare what the measured processes wrote: with the truth, with exact results, before with after."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Answer = dict[str, Any]
Labels = npt.NDArray[np.int64]
ROUNDING = 1e-6  # of a similarity


def agree(vectors: str, sample: str, k: int, exact: str | None, found: dict[str, str], **_: Any) -> Answer:
    """Compare tools' neighbours with exact search, and their clusters with those of a reference, cut by cut.

    Args:
        vectors: a NumPy file.
        sample: a NumPy file with rows.
        k: neighbours a row.
        exact: the archive with the reference's labels; None where there is none.
        found: archives by tool; see ``index_tools``.
    """
    from index_agreement import exact_neighbours, recall

    held, rows = np.load(vectors), np.load(sample)
    similarity = exact_neighbours(held, rows, k)[1]
    truth = np.load(exact)["labels"] if exact else None
    answer: Answer = {"seconds": 0, "recall": {}, "clusters": {}, "f1": {}, "best_f1": {}}
    for tool, path in found.items():
        archive = np.load(path)
        answer["clusters"][tool] = [len(np.unique(column)) for column in archive["labels"].T]
        if "neighbours" in archive:
            answer["recall"][tool] = recall(held, rows, archive["neighbours"], similarity)
        if truth is not None:
            answer["f1"][tool], answer["best_f1"][tool] = _agreement(archive, truth)
    return answer


def _agreement(archive: Any, truth: Labels) -> tuple[list[float], list[float]]:
    """Return pair F1 at each cut: as it is, and the best of all the tool's partitions."""
    from index_agreement import pair_f1

    labels = archive["labels"]
    partitions = [*labels.T, *(archive["others"].T if "others" in archive else ())]
    best = [max(pair_f1(each, column) for each in partitions) for column in truth.T]
    if labels.shape[1] == truth.shape[1]:
        same = [pair_f1(ours, theirs) for ours, theirs in zip(labels.T, truth.T, strict=True)]
    else:  # one partition, beside each cut
        same = [pair_f1(labels[:, 0], column) for column in truth.T]
    return same, best


def recall_of(vectors: str, sample: str, k: int, found: str, **_: Any) -> Answer:
    """Return the recall of the sampled rows' neighbours, against exact search."""
    from index_agreement import exact_neighbours, recall

    held, rows = np.load(vectors), np.load(sample)
    return {"seconds": 0, "recall": recall(held, rows, np.load(found), exact_neighbours(held, rows, k)[1])}


def partial_against_full(partial: str, full: str, old: int, **_: Any) -> Answer:
    """Return for each level the share of new rows whose cluster, when they were added, is that of the full index.

    Clusters of the two are matched by the rows they share, the old ones deciding between equals. Rows are in the order
    of their paths, so the new ones come last.
    """
    from index_agreement import matched, pair_f1

    one, other = np.load(partial)["labels"], np.load(full)["labels"]
    levels = []
    for ours, theirs in zip(one.T, other.T, strict=True):
        right = matched(ours, theirs, decisive=old)[ours] == theirs
        joined_full = _joins_old(theirs, old)
        joined_partial = _joins_old(ours, old)
        levels.append(
            {
                "new_rows_alike": float(right[old:].mean()),
                "old_rows_alike": float(right[:old].mean()),
                "join_an_old_cluster_when_added": float(joined_partial.mean()),
                "join_an_old_cluster_in_full": float(joined_full.mean()),
                "pair_f1": pair_f1(ours, theirs),
            }
        )
    return {"seconds": 0, "levels": levels}


def _joins_old(labels: Labels, old: int) -> npt.NDArray[np.bool_]:
    """Return which new rows share a cluster with an old one."""
    return np.isin(labels[old:], labels[:old])


def kept_ids(before: str, after: str, **_: Any) -> Answer:
    """Return for each level the share of clusters that kept their id: of those with the same members, and of all.

    A cluster kept its id if the cluster that has most of its members now (the first of several) bears it.
    """
    old, new = np.load(before), np.load(after)
    levels = []
    for level in range(old["labels"].shape[1]):
        ours, theirs = old["labels"][:, level], new["labels"][:, level]
        kept, same = _kept(ours, theirs, old[f"ids_{level}"], new[f"ids_{level}"])
        levels.append(
            {
                "clusters": len(kept),
                "same_members": int(same.sum()),
                "kept_of_same": float(kept[same].mean()) if same.any() else 1.0,
                "kept_of_all": float(kept.mean()),
            }
        )
    return {"seconds": 0, "levels": levels}


def _kept(
    ours: Labels, theirs: Labels, old_ids: npt.NDArray[Any], new_ids: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return for each old cluster whether its id is kept, and whether its members are the same."""
    width = len(new_ids)
    cells, shared = np.unique(ours * width + theirs[: len(ours)], return_counts=True)
    order = np.lexsort((cells, -shared))
    cells, shared = cells[order], shared[order]
    cluster, first = np.unique(cells // width, return_index=True)
    heir = cells[first] % width
    sizes = np.bincount(ours)[cluster]
    same = (shared[first] == sizes) & (np.bincount(theirs, minlength=width)[heir] == sizes)
    return old_ids[cluster] == new_ids[heir], same


# --- near-duplicates ------------------------------------------------------------------------------------------------


def duplicate_curves(
    found: dict[str, str], thresholds: dict[str, Sequence[float]], levels: Sequence[float], **_: Any
) -> Answer:
    """Return pair precision and recall of tools at thresholds, against images made from one photo.

    Args:
        found: archives by tool: ``names``, and ``vectors`` or the pairs ``first, second, similarity``.
        thresholds: by tool, of similarity.
        levels: those of ``groups`` in the archive of ``gist``.

    Returns:
        ``curves`` by tool: for each threshold the figures of ``pairs``, and of ``groups``: those connected by pairs.
        Pairs of photos that show one scene count as wrong in ``precision``, as right in ``precision_scene``.
        ``levels_unlike``: how many rows the groups of ``gist`` put otherwise than its pairs do, over all levels.
    """
    archives = {tool: np.load(path) for tool, path in found.items()}
    names = sorted(set.intersection(*(set(archive["names"].tolist()) for archive in archives.values())))
    read = {tool: len(archive["names"]) for tool, archive in archives.items()}
    curves = {tool: list(_curve(archive, names, thresholds[tool])) for tool, archive in archives.items()}
    unlike = _unlike(archives["gist"], levels)
    return {"seconds": 0, "images": len(names), "read": read, "curves": curves, "levels_unlike": unlike}


def _unlike(archive: Any, levels: Sequence[float]) -> int:
    """Return how many rows the engine's groups put otherwise than the components of all pairs do."""
    from index_agreement import components, matched

    names, groups = archive["names"], archive["groups"]
    first, second, similarity = _named_pairs(archive, names)
    unlike = 0
    for level, labels in zip(levels, groups.T, strict=True):
        near = similarity >= level - ROUNDING
        alone = np.where(labels < 0, labels.max() + 1 + np.arange(len(labels)), labels)
        theirs = components(first[near], second[near], len(names))
        unlike += int((matched(alone, theirs)[alone] != theirs).sum())
    return unlike


def _curve(archive: Any, names: Sequence[str], thresholds: Sequence[float]) -> Iterator[dict[str, Any]]:
    from duplicates import _same_scene, _source
    from index_agreement import components

    source = np.unique([_source(name) for name in names], return_inverse=True)[1]
    scene = _same_scene(names)
    first, second, similarity = _named_pairs(archive, names)
    for threshold in thresholds:
        near = similarity >= threshold
        labels = components(first[near], second[near], len(names))
        yield {
            "threshold": threshold,
            "pairs": _pair_figures(first[near], second[near], source, scene),
            "groups": _pair_figures(*_pairs_within(labels), source, scene),
        }


def _named_pairs(archive: Any, names: Sequence[str]) -> tuple[Labels, Labels, npt.NDArray[np.float32]]:
    """Return (first, second, similarity) of pairs first < second, by places in *names*, each once."""
    place = {name: row for row, name in enumerate(names)}
    if "vectors" in archive:
        row_of = {name: row for row, name in enumerate(archive["names"])}
        vectors = archive["vectors"][[row_of[name] for name in names]]
        dense = vectors @ vectors.T
        first, second = np.nonzero(np.triu(dense > 0.5, 1))
        return first, second, dense[first, second]
    known = np.isin(archive["first"], names) & np.isin(archive["second"], names)
    ends = np.array([[place[name] for name in archive[end][known]] for end in ("first", "second")], dtype=np.int64)
    ends.sort(axis=0)
    keys = ends[0] * len(names) + ends[1]
    order = np.lexsort((-archive["similarity"][known], keys))
    keys, at = np.unique(keys[order], return_index=True)
    return keys // len(names), keys % len(names), archive["similarity"][known][order][at]


def _pairs_within(labels: Labels) -> tuple[Labels, Labels]:
    """Return all pairs of rows that share a label."""
    first, second = np.nonzero(np.triu(labels[:, None] == labels[None, :], 1))
    return first, second


def _pair_figures(first: Labels, second: Labels, source: Labels, scene: npt.NDArray[np.bool_]) -> dict[str, Any]:
    right = source[first] == source[second]
    sizes = np.bincount(source)
    truth = int((sizes * (sizes - 1) // 2).sum())
    alike = right | scene[first, second]
    return {
        "found": len(first),
        "precision": float(right.mean()) if len(right) else 1.0,
        "precision_scene": float(alike.mean()) if len(right) else 1.0,
        "recall": int(right.sum()) / truth if truth else 1.0,
    }


def plot_curves(curves: str, target: str, **_: Any) -> Answer:
    """Draw precision over recall of the groups, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return {"seconds": 0, "drawn": False}
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="recall", ylabel="precision", title="Near-duplicates: pairs within groups")
    for tool, points in json.loads(Path(curves).read_text("utf-8")).items():
        shown = [(each["groups"]["recall"], each["groups"]["precision"], each["threshold"]) for each in points]
        axes.plot([point[0] for point in shown], [point[1] for point in shown], marker=".", label=tool)
        _name_points(axes, shown)
    axes.legend()
    figure.savefig(target, dpi=120)
    return {"seconds": 0, "drawn": True}


def _name_points(axes: Any, points: list[tuple[float, float, float]]) -> None:
    """Write thresholds beside points of a curve, where there is room for them."""
    last = (-1.0, -1.0)
    for x, y, threshold in points:
        if abs(x - last[0]) + abs(y - last[1]) > 0.12:
            axes.annotate(f"{threshold:g}", (x, y), fontsize=7, xytext=(3, 4), textcoords="offset points")
            last = (x, y)


# --- wrong labels ---------------------------------------------------------------------------------------------------


def auroc(labelled: str, found: dict[str, str], **_: Any) -> Answer:
    """Return by tool and seed the area under the ROC curve of its scores, and the precision at the true number."""
    from sklearn.metrics import roc_auc_score

    data = np.load(labelled)
    wrong = data["given"] != data["truth"]
    areas: dict[str, list[float]] = {}
    precision: dict[str, list[float]] = {}
    for tool, path in found.items():
        scores = np.load(path)
        areas[tool] = [float(roc_auc_score(*each)) for each in zip(wrong, scores, strict=True)]
        precision[tool] = [
            float(mask[np.argsort(-score, kind="stable")[: mask.sum()]].mean())
            for mask, score in zip(wrong, scores, strict=True)
        ]
    return {"seconds": 0, "auroc": areas, "precision": precision}
