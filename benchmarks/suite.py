"""Where the time of the tests goes: processor seconds by folder, by fixture and by test.

``python benchmarks/suite.py`` runs the quick tests, ``python benchmarks/suite.py -m "slow or law"
--hypothesis-profile=full`` the long ones; all arguments are pytest's. Processor time is that of the process and of the
children that it has waited for. It depends less on what else the machine does than the clock, but not nothing: two
threads of one core slow each other down.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common import ROOT, save, table

_FOLDER = "FRAMEDEX_SUITE"
_MOST = 30


class Clock:
    """Times of one process of tests.

    Attributes:
        tests: processor seconds by test, fixtures of its own included.
        fixtures: calls and processor seconds by fixture, without those of the fixtures that it uses.
    """

    def __init__(self) -> None:
        self.tests, self.fixtures = Counter[str](), defaultdict[str, list[float]](lambda: [0, 0.0])
        self._inner: list[float] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Measure a test with its setup and teardown."""
        start = processor_s()
        try:
            return (yield)
        finally:
            self.tests[item.nodeid] += processor_s() - start

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[Any]:
        """Measure the setup of a fixture."""
        start = processor_s()
        self._inner.append(0.0)
        try:
            return (yield)
        finally:
            spent = processor_s() - start
            entry = self.fixtures[f"{fixturedef.baseid}::{fixturedef.argname} ({fixturedef.scope})"]
            entry[0] += 1
            entry[1] += spent - self._inner.pop()
            if self._inner:
                self._inner[-1] += spent

    def pytest_sessionfinish(self) -> None:
        """Write what was measured."""
        content = {"tests": self.tests, "fixtures": self.fixtures, "all": processor_s()}
        Path(os.environ[_FOLDER], f"{os.getpid()}.json").write_text(json.dumps(content), encoding="utf-8")


def processor_s() -> float:
    """Return the processor time in seconds of this process and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to measure, in a process that runs tests; the one that gives them out would count its children again."""
    if os.environ.get(_FOLDER) and hasattr(config, "workerinput"):
        config.pluginmanager.register(Clock())


def main() -> None:
    """Run the tests and print where their time went."""
    arguments = sys.argv[1:] or ["-m", "not slow and not static"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, _FOLDER: folder, "PYTHONPATH": str(Path(__file__).parent)}
        command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "-p", "suite", *arguments]
        start = time.perf_counter()
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        clock_s = time.perf_counter() - start
        parts = [json.loads(path.read_text(encoding="utf-8")) for path in Path(folder).glob("*.json")]
    tests, fixtures = Counter[str](), defaultdict[str, list[float]](lambda: [0, 0.0])
    for part in parts:
        tests.update(part["tests"])
        for name, (calls, spent) in part["fixtures"].items():
            fixtures[name][0] += calls
            fixtures[name][1] += spent
    folders, counts = Counter[str](), Counter[str]()
    for name, spent in tests.items():
        place = "/".join(name.partition("::")[0].split("/")[:2])
        folders[place] += spent
        counts[place] += 1
    slowest = sorted(fixtures.items(), key=lambda each: -each[1][1])[:_MOST]
    print(
        f"\n{clock_s:.0f} s by the clock, {sum(part['all'] for part in parts):.0f} of processors, {len(tests)} tests\n"
    )
    print(table(["tests", "number", "processor s"], [[k, counts[k], f"{s:.1f}"] for k, s in folders.most_common()]))
    rows = [
        [name, int(calls), f"{spent:.1f}", f"{spent / calls * 1e3:.0f}"] for name, (calls, spent) in slowest[:_MOST]
    ]
    print(table(["fixture", "calls", "processor s", "ms each"], rows))
    print(table(["test", "processor s"], [[name, f"{spent:.2f}"] for name, spent in tests.most_common(_MOST)]))
    save("suite", {"clock_s": clock_s, "folders": folders, "fixtures": fixtures, "tests": tests})
    sys.exit(status)


if __name__ == "__main__":
    main()
