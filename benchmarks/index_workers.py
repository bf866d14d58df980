"""What the measured processes of the index benchmarks do: ``python index_workers.py TASK FOLDER ANSWER``.

The folder holds ``job.json`` with the task's options, and the files that the processes exchange. A task's answer is
written as JSON; its ``seconds`` are those of the main call, without imports and files. Each task runs in the
environment of its tool, so nothing but the standard library is imported before a task is chosen.
"""

import json
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Task = Callable[..., dict[str, Any]]

# task: the module that has it, as a function of the same name
TASKS = {
    "embed": "index_inputs",
    "write_vectors": "index_inputs",
    "write_tables": "index_inputs",
    "write_kind": "index_inputs",
    "write_edits": "index_inputs",
    "write_labelled": "index_inputs",
    "create": "index_framedex",
    "add": "index_framedex",
    "reindex": "index_framedex",
    "read_clusters": "index_framedex",
    "products": "index_framedex",
    "neighbours": "index_framedex",
    "framedex": "index_framedex",
    "gist": "index_framedex",
    "mislabels": "index_framedex",
    "visits": "index_groups",
    "sklearn": "index_tools",
    "hdbscan": "index_tools",
    "fast_hdbscan": "index_tools",
    "faiss": "index_tools",
    "fastdup": "index_tools",
    "fastdup_images": "index_tools",
    "phash": "index_tools",
    "cleanlab": "index_tools",
    "agree": "index_verdicts",
    "recall_of": "index_verdicts",
    "partial_against_full": "index_verdicts",
    "kept_ids": "index_verdicts",
    "duplicate_curves": "index_verdicts",
    "plot_curves": "index_verdicts",
    "auroc": "index_verdicts",
}


def main() -> None:
    """Run the task that the command line names."""
    task, folder, answer = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    job = json.loads((folder / "job.json").read_text("utf-8"))
    signal.alarm(job["limit_s"])  # the signal ends the process, whatever engine it is in
    # At the end, so that these modules hide none of a tool's.
    sys.path.append(str(Path(__file__).resolve().parent))
    run: Task = getattr(import_module(TASKS[task]), task)
    result = run(folder=folder, work=answer.parent, **job["options"])
    signal.alarm(0)
    answer.write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main()
