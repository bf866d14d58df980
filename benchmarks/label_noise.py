"""Wrong labels of many media: the time, processor time and memory of ``ds.label_issues``.

Vectors lie around the centre of their label, of 1,000 labels; a share of the labels is wrong. The dataset is made and
indexed in a process of its own and stays with ``--keep``; another process then opens it and ranks the labels.
"""

import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from common import arguments, run_worker, save, table, verdict

WORKER = Path(__file__).with_name("label_noise_worker.py")
ROWS = 1_000_000
MOST_S, MOST_MIB = 180.0, 4096.0


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--rows", type=int, default=ROWS, help="how many media")
    parser.add_argument("--keep", type=Path, help="folder of the dataset, which is made where it is absent")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        if not (folder / "ws").exists():
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "rows.json").write_text(json.dumps(options.rows))
            made = run_worker(Path(sys.executable), "create", folder, script=WORKER)
            print(f"{options.rows:,} rows made in {made.wall_s:.0f} s", flush=True)
        run = run_worker(Path(sys.executable), "rank", folder, script=WORKER)
    found = run.result
    print(table(["figure", "value"], [[name, value] for name, value in found.items()]))
    print(verdict("seconds", found["seconds"], MOST_S, at_most=True))
    print(verdict("peak, MiB", run.peak_mib, MOST_MIB, at_most=True))
    save("label-noise", {"peak_mib": run.peak_mib, **found})


if __name__ == "__main__":
    main()
