"""Stable: which clusters keep their ids when 5 % is added to a dataset and it is indexed anew.

A cluster that has the same members before and after should have the same id. Of the others, which gained members, fell
apart or were joined, those count as kept whose id is borne by the cluster that most of their members are in.
"""

from collections.abc import Sequence

from common import save, table, verdict
from index_jobs import addition_arguments, framedex_python, job_folder, run_job, write_parts

KEPT = 1.0


def main(given: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = addition_arguments(__doc__, "stable", rows=100_000, added=0.05)
    options = parser.parse_args(given)
    python = framedex_python(options.peers)
    new = round(options.rows * options.added)
    with job_folder() as folder:
        whole, part = write_parts(python, folder, options.rows, new, options.dimension)
        run_job(python, "create", folder, source=whole)
        before, after = folder / "before.npz", folder / "after.npz"
        run_job(python, "read_clusters", folder, target=before)
        run_job(python, "add", folder, source=part)
        run_job(python, "reindex", folder)
        run_job(python, "read_clusters", folder, target=after)
        levels = run_job(python, "kept_ids", folder, before=before, after=after).result["levels"]
    print(f"{options.rows:,} rows, and {new:,} added and all indexed anew")
    headers = ["level", "clusters", "with the same members", "of these kept", "of all kept"]
    print(table(headers, [[str(place), *each.values()] for place, each in enumerate(levels)]))
    print()
    for place, each in enumerate(levels):
        print(verdict(f"ids kept of clusters with the same members, level {place}", each["kept_of_same"], KEPT))
    save("index-stable", {"rows": options.rows, "added": new, "levels": levels})
