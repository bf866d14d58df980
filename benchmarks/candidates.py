"""Candidates for copies among many images, in memory and on disk: seconds, memory, and which planted copies are found.

The descriptors are clustered vectors (``vectors.py``) of the dimension of the copy descriptor; a fifth as many stand
for panels. 1 % of the images are copies of others, turned or mirrored, with noise, at a similarity of 0.97 to 0.9999.
Each way runs in a process of its own. Pages of mapped files do not count as memory: the system drops them where it is
short.
"""

from pathlib import Path
from typing import Any

from common import arguments, environment, run_worker, save, table
from index_jobs import job_folder

SCRIPT = Path(__file__).resolve().parent / "candidates_workers.py"
WAYS = ("memory", "disk")


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, data=False)
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 100_000], help="images")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="where the data lie")
    parser.add_argument("--memory", type=float, default=0.25, help="GiB that a search on disk may take")
    options = parser.parse_args()
    python = environment(options.peers, "framedex")
    measured: list[dict[str, Any]] = []
    for rows in options.rows:
        with job_folder() as folder:
            run_worker(python, f"write:{rows}", folder, script=SCRIPT)
            for way in options.ways:
                task = f"find:{way}:{int(options.memory * 2**30)}"
                answer = run_worker(python, task, folder, script=SCRIPT).result
                measured.append({"rows": rows, "way": way, **answer})
                print(f"{rows:,} images, {way}: {answer['seconds']:.0f} s", flush=True)
    names = {
        "seconds": "s", "before_mib": "memory before, MiB", "peak_mib": "at most, MiB", "files_mib": "files, MiB",
        "pairs": "pairs", "recall": "recall of copies",
    }  # fmt: skip
    rows_of_table = [[f"{each['rows']:,} {each['way']}", *(each[name] for name in names)] for each in measured]
    print(table(["images", *names.values()], rows_of_table))
    save("candidates", {"measured": measured})


if __name__ == "__main__":
    main()
