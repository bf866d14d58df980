"""Full-text search: is the right photo found by what another person said of it, and how long does a million take?

Of the five captions that people wrote for each photo of Flickr8k, four are one text of an index; the words of the fifth
are the query. Recall at k is the share of the photos that are among the first k results.
"""

import csv
import json
import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from common import arguments, environment, require, run_worker, save, table, verdict

WORKERS = Path(__file__).resolve().parent / "search_text_workers.py"
CAPTIONS = "flickr8k-1000.captions.csv"
AT = (1, 5, 10)
WAYS = {
    "framedex": "Framedex",
    "fts5": "SQLite FTS5, porter",
    "tantivy": "tantivy, en_stem",
    "bm25": "rank-bm25, BM25Okapi",
}
MANY = ("framedex", "fts5", "tantivy")


def write_inputs(data: Path, folder: Path) -> int:
    """Write the texts and queries; return how many there are."""
    captions = defaultdict(list)
    with (require(data, "photos") / CAPTIONS).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            captions[row["image"]].append(row["caption"])
    several = [texts for texts in captions.values() if len(texts) == 5]
    documents = [" ".join(texts[:4]) for texts in several]
    queries = [re.findall(r"\w+", texts[4].lower()) for texts in several]
    for name, content in (("documents", documents), ("queries", queries)):
        (folder / f"{name}.json").write_text(json.dumps(content))
    return len(several)


def recall(ranks: list[int], k: int) -> float:
    """Return the share of queries whose photo is among the first k."""
    return sum(0 < rank <= k for rank in ranks) / len(ranks)


def python_of(way: str, peers: Path) -> Path:
    """Return the Python that has what a way needs."""
    names = {"tantivy": "tantivy", "bm25": "rank-bm25"}
    return environment(peers, names[way]) if way in names else Path(sys.executable)


def compare(data: Path, peers: Path, folder: Path) -> dict[str, dict[str, float]]:
    """Measure recall of all ways in the same run, print it, and return it."""
    count = write_inputs(data, folder)
    found = {}
    for way in WAYS:
        result = run_worker(python_of(way, peers), way, folder, script=WORKERS).result
        found[way] = {f"recall@{k}": recall(result["ranks"], k) for k in AT}
        found[way] |= {"index_s": result["seconds"], "query_ms": 1000 * result["query_s"]}
    columns = list(found["framedex"])
    print(f"{count} photos\n")
    print(table(["", *columns], [[WAYS[way], *(values[name] for name in columns)] for way, values in found.items()]))
    for name in columns[: len(AT)]:
        print(verdict(name, found["framedex"][name], max(found[way][name] for way in WAYS if way != "framedex")))
    return found


def measure_matches(peers: Path, folder: Path) -> dict[str, dict[str, float]]:
    """Measure all matches of a query among 200,000 captions, as a filter needs them; print and return the figures."""
    run_worker(Path(sys.executable), "many", folder, script=WORKERS)
    found = {}
    for way in MANY:
        result = run_worker(python_of(way, peers), way, folder, script=WORKERS).result
        found[way] = {"index_s": result["seconds"], "query_ms": 1000 * result["query_s"]}
        found[way] |= {"size_mib": result["size_bytes"] / 2**20}
    print("\nAll matches of three words among 200,000 captions\n")
    columns = list(found["framedex"])
    print(table(["", *columns], [[WAYS[way], *(values[name] for name in columns)] for way, values in found.items()]))
    return found


def measure_million(folder: Path) -> dict[str, object]:
    """Measure a million captions, print the figures, and return them."""
    python = Path(sys.executable)
    run_worker(python, "million", folder, script=WORKERS)
    built = run_worker(python, "build_million", folder, script=WORKERS).result
    opened = run_worker(python, "open_million", folder, script=WORKERS).result
    print("\nA million captions of 12 words\n")
    rows = [
        ["index, s", built["seconds"]],
        ["  of processors, s", built["processor_s"]],
        ["  peak memory, MiB", built["peak_mib"]],
        ["size of the index, MiB", built["size_bytes"] / 2**20],
        ["first query after a caption was edited, s", built["edited_s"]],
        ["first query after something else was, s", built["same_texts_s"]],
        ["first query of a new process, s", opened["seconds"]],
        *([f"{name}, ms", 1000 * seconds] for name, seconds in built["query_s"].items()),
    ]
    print(table(["", ""], rows))
    print(verdict("index, s", built["seconds"], 10, at_most=True))
    print(verdict("peak memory, MiB", built["peak_mib"], 1536, at_most=True))
    return {"built": built, "opened": opened}


def main() -> None:
    """Run all parts, or the one that is named."""
    parser = arguments(__doc__)
    parser.add_argument("part", nargs="?", choices=["recall", "matches", "million"], help="only one part")
    options = parser.parse_args()
    result: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="bench-text-") as work:
        if options.part in (None, "recall"):
            (small := Path(work) / "recall").mkdir()
            result["recall"] = compare(options.data, options.peers, small)
        if options.part in (None, "matches"):
            (middle := Path(work) / "matches").mkdir()
            result["matches"] = measure_matches(options.peers, middle)
        if options.part in (None, "million"):
            (large := Path(work) / "million").mkdir()
            result["million"] = measure_million(large)
    save("search_text", result)


if __name__ == "__main__":
    main()
