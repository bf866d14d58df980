"""Incremental: adding 1 % to a dataset against indexing it whole, and how well what was added falls into place.

Both parts are drawn from the same clusters. The dataset is made, the rest is added without a new index, and then the
whole is indexed anew, each in a process of its own. Clusters after adding and after the new index are matched by the
rows that they share most.
"""

from collections.abc import Sequence
from typing import Any

from common import save, table, verdict
from index_jobs import addition_arguments, framedex_python, job_folder, run_job, write_parts
from index_scale import index_figures

SHARE = 0.05  # of the time of the whole


def main(given: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = addition_arguments(__doc__, "incremental", rows=1_000_000, added=0.01)
    options = parser.parse_args(given)
    python = framedex_python(options.peers)
    new = round(options.rows * options.added)
    with job_folder() as folder:
        whole, part = write_parts(python, folder, options.rows, new, options.dimension)
        created = run_job(python, "create", folder, source=whole)
        print(f"{options.rows:,} rows made in {created.call_s:.1f} s", flush=True)
        added = run_job(python, "add", folder, source=part)
        print(f"{new:,} rows added in {added.call_s:.1f} s", flush=True)
        partial, full = folder / "partial.npz", folder / "full.npz"
        run_job(python, "read_clusters", folder, target=partial)
        indexed = run_job(python, "reindex", folder)
        print(f"all indexed anew in {indexed.call_s:.1f} s", flush=True)
        run_job(python, "read_clusters", folder, target=full)
        answer = run_job(python, "partial_against_full", folder, partial=partial, full=full, old=options.rows).result
    result = {
        "rows": options.rows,
        "added": new,
        "create": index_figures(created),
        "add": index_figures(added),
        "reindex": index_figures(indexed),
        "levels": answer["levels"],
    }
    _print(result)
    save("index-incremental", result)


def _print(result: dict[str, Any]) -> None:
    tasks = {"made": result["create"], "added to": result["add"], "indexed anew": result["reindex"]}
    print("\nSeconds; ingestion is what reading the table takes")
    rows = [
        [name, each["whole_s"], each["index_s"], each["whole_s"] - each["index_s"], each["peak_mib"]]
        for name, each in tasks.items()
    ]
    print(table(["dataset", "whole", "without ingestion", "ingestion", "peak MiB"], rows))
    stages = [
        [f"{name}: {stage}", seconds] for name, each in tasks.items() for stage, seconds in each["stages"].items()
    ]
    print()
    print(table(["stage", "seconds"], stages))
    print("\nClusters after adding against those of the new index; F1 is that of all pairs of rows")
    headers = [
        "level",
        "new rows alike",
        "old rows alike",
        "new rows that join an old cluster",
        "in the new index",
        "pair F1",
    ]
    print(table(headers, [[str(place), *each.values()] for place, each in enumerate(result["levels"])]))
    print()
    whole, part = result["create"], result["add"]
    print(
        verdict(
            "time of adding / of the whole index, whole tasks", part["whole_s"] / whole["whole_s"], SHARE, at_most=True
        )
    )
    print(verdict("the same without ingestion", part["index_s"] / whole["index_s"], SHARE, at_most=True))
    print(verdict("adding, whole / the index alone", part["whole_s"] / whole["index_s"], SHARE, at_most=True))
