"""Processor time of reading a folder of photos, beside other sources of Framedex, as ratios within rounds.

Each round creates a dataset with both sources, in processes of their own, the one that begins alternating. Processor
time in user mode counts, of the process and its children, so that other work on the machine matters little.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from common import ROOT, arguments, link_all, photos, save, table, verdict

AIM = 1.05
CODE = """
import resource, sys
import framedex

with framedex.Workspace(sys.argv[1]) as workspace:
    count = workspace.create_dataset("photos", sys.argv[2], "gist").count()
used = [resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(count, sum(used))
"""


def seconds(sources: Path, folder: Path) -> float:
    """Return the user time of creating a dataset."""
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        command = [sys.executable, "-W", "ignore", "-c", CODE, str(Path(work, "ws")), str(folder)]
        environment = {**os.environ, "PYTHONPATH": str(sources)}
        out = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return float(out.split()[-1])


def main() -> None:
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--before", type=Path, required=True, help="the folder `src` of the other sources")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--photos", type=int, default=1000)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-photos-") as work:
        folder = link_all(photos(options.data)[: options.photos], Path(work, "photos"))
        for number in range(options.rounds + 1):
            order = [options.before.absolute(), ROOT / "src"]
            times = {each: seconds(each, folder) for each in (order if number % 2 else order[::-1])}
            before, now = (times[each] for each in order)
            if number:  # the first round warms up
                rows.append((number, before, now, now / before))
    print(table(("round", "before", "now", "ratio"), rows))
    ratio = statistics.median(row[-1] for row in rows)
    print(verdict("ratio of processor time", ratio, AIM, at_most=True))
    save("ingestion-cost", {"rounds": rows, "ratio": ratio})


if __name__ == "__main__":
    main()
