"""Start-up: the processor time that importing the package, its help and the list of datasets take.

Each is a process of its own, and its user and system time count, so that other work on the machine disturbs little.
A bare interpreter is measured beside them.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from typing import Any

from common import median, save, table, verdict

AIMS_S = {"import framedex": 0.5, "framedex --help": 0.6, "framedex ls": 0.9}


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = measure(os.path.join(folder, "workspace"), options.rounds)  # noqa: PTH118 - an argument of a command
    print(
        table(
            ("start", "median, s", "least, s"), [(name, each["median"], each["least"]) for name, each in result.items()]
        )
    )
    for name, aim in AIMS_S.items():
        print(verdict(name, result[name]["median"], aim, at_most=True))
    save("startup", result)


def measure(workspace: str, rounds: int) -> dict[str, Any]:
    """Return the processor seconds of each start: median and least of all rounds."""
    commands = {
        "bare interpreter": ["-c", "pass"],
        "import framedex": ["-c", "import framedex"],
        "from framedex import Workspace": ["-c", "from framedex import Workspace"],
        "framedex --help": ["-m", "framedex", "--help"],
        "framedex ls": ["-m", "framedex", "ls", "--workspace", workspace],
    }
    processor_s(["-c", "import sys, framedex; framedex.Workspace(sys.argv[1]).close()", workspace])
    for command in commands.values():
        processor_s(command)  # compiles what was not yet
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            seconds[name].append(processor_s(command))
    return {name: {"median": median(each), "least": min(each)} for name, each in seconds.items()}


def processor_s(arguments: list[str]) -> float:
    """Return the processor seconds of a Python process that must end well."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments} ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
