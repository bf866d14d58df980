"""The measured processes of scale_out.py: ``python scale_out_workers.py TASK FOLDER ANSWER``.

A task is ``threads``, ``processes_N`` or ``default``. The answer's ``seconds`` are those of reading the images, without
the index; ``own_s`` and ``children_s`` are processor seconds of this process and of those that decode.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main(task: str, source: Path, answer: Path) -> None:
    """Make a dataset and write what its ingestion took."""
    os.environ["FRAMEDEX_COPY_BUDGET_MS"] = "0"
    if task != "default":
        executor, _, count = task.partition("_")
        os.environ["FRAMEDEX_EXECUTOR"] = executor
        os.environ["FRAMEDEX_PROCESSES"] = count or "1"
    from framedex import Workspace
    from framedex.jobs.ingest import reading

    measured: dict[str, Any] = {}
    ingest = reading.ingest

    def timed(*args: Any, **options: Any) -> Any:
        before, started = os.times(), time.perf_counter()
        result = ingest(*args, **options)
        after = os.times()
        own = after.user + after.system - before.user - before.system
        children = after.children_user + after.children_system - before.children_user - before.children_system
        measured.update(
            seconds=time.perf_counter() - started, processor_s=own + children, own_s=own, children_s=children
        )
        return result

    reading.ingest = timed
    with Workspace(answer.parent / "workspace") as workspace:
        dataset = workspace.create_dataset("bench", source, encoder="gist")
        measured["images"] = dataset.count()
    answer.write_text(json.dumps(measured), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
