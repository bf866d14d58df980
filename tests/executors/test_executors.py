"""Executors: results in order, errors, lost processes, and the end of all processes."""

import gc
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from framedex.errors import Aborted, Unavailable
from framedex.executors import Executor, ProcessExecutor, ResultLost, ThreadExecutor, forked, functions
from tests.environment import Environment
from tests.executors import work
from tests.laws import rest_slow
from tests.pauses import wait_until
from tests.processes import is_running

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")
forks = pytest.mark.skipif(not forked.has_forks(), reason="workers are forked on Linux alone")


@pytest.fixture(scope="module", params=[ThreadExecutor, ProcessExecutor])
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Each executor, with two workers."""
    with request.param(2) as made:
        yield made


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessExecutor]:
    """Two processes."""
    with ProcessExecutor(2) as made:
        yield made


def test_map__keeps_the_order(executor: Executor, tmp_path: Path) -> None:
    """Results come in the order of the items, whichever is done first."""
    assert list(executor.map(partial(work.late_square, tmp_path), range(30))) == [number**2 for number in range(30)]
    assert list(executor.map(partial(pow, 2), [])) == []


def test_map__requests_few_items_ahead(executor: Executor) -> None:
    """Items are taken from an endless source as results are used."""
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        while True:
            taken.append(len(taken))
            yield taken[-1]

    results = executor.map(work.square, numbers())
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    results.close()
    assert len(taken) <= 3 + 2 * executor.workers + 2


def test_map__raises_what_an_item_raises(executor: Executor) -> None:
    """An exception of a function is raised here, at its item; the executor goes on to work."""
    results = executor.map(work.fail, ["a.jpg", "b.jpg"])
    with pytest.raises(ValueError, match=r"^a\.jpg cannot be used"):
        next(results)
    with pytest.raises(Exception, match=r"c\.jpg"):
        next(executor.map(work.fail_strangely, ["c.jpg"]))
    assert list(executor.map(work.square, [3])) == [9]


def test_map__can_be_stopped(executor: Executor) -> None:
    """What the caller raises while it waits ends the work."""
    checks: list[int] = []

    def check() -> None:
        checks.append(1)
        if len(checks) == 3:
            raise Aborted("aborted on request")

    with pytest.raises(Aborted):
        list(executor.map(work.square, range(10**9), check=check))


def test_processes__tell_where_an_exception_was_raised(processes: ProcessExecutor) -> None:
    """An exception has the stack of the process as a note."""
    with pytest.raises(ValueError, match="x cannot") as caught:
        processes.call(work.fail, "x")
    assert "in fail" in caught.value.__notes__[0]


def test_processes__repeat_what_was_lost(processes: ProcessExecutor, tmp_path: Path) -> None:
    """The item of a process that was killed runs again in another one."""
    assert processes.call(work.end_once, tmp_path / "marker") == "done"
    assert processes.call(work.square, 4) == 16


@pytest.mark.slow
@pytest.mark.parametrize(("number", "name"), [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGKILL, "SIGKILL")])
def test_processes__that_always_end(processes: ProcessExecutor, number: int, name: str) -> None:
    """An item that ends its process each time is given up, with the reason; others go on."""
    with pytest.raises(ResultLost, match=f"before it had a result: signal {name}$") as caught:
        processes.call(work.end_by, int(number))
    assert (caught.value.signal, processes.call(work.square, 5)) == (number, 25)


@pytest.mark.slow
def test_processes__end_with_their_executor(tmp_path: Path) -> None:
    """Leaving an executor ends its processes at once, also those that work."""
    with ProcessExecutor(2) as made:
        waiting = [made.submit(work.wait_in, tmp_path) for _ in range(2)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        pids = made.pids
    assert sorted(pids) == sorted(int(each.name) for each in tmp_path.iterdir())
    assert not any(map(is_running, pids))
    assert all(isinstance(each.exception(), ResultLost | Unavailable) for each in waiting)


@pytest.mark.parametrize("workers", [1, 2])
def test_processes__that_cannot_be_started(workers: int) -> None:
    """An interpreter that does not exist, or does not work, is named."""
    with ProcessExecutor(workers, python="/nowhere/python") as made, pytest.raises(Unavailable, match="/nowhere/pyth"):
        made.call(work.square, 1)
    with ProcessExecutor(workers, python="/bin/false") as made, pytest.raises(Unavailable, match="ended with status 1"):
        made.call(work.square, 1)


@pytest.mark.slow
def test_processes__one_alone() -> None:
    """A single worker is a child of this process; it is replaced when it was killed."""
    with ProcessExecutor(1) as made:
        assert made.call(work.parent_of, None) == os.getpid()
        os.kill(made.call(work.pid_of, None), signal.SIGKILL)
        assert made.call(work.square, 3) == 9


@pytest.mark.slow
@forks
def test_forks__import_modules_once() -> None:
    """Several workers are children of one process, which has imported the modules; a wrong module is an error."""
    with ProcessExecutor(3, modules=["colorsys"]) as made:
        assert list(made.map(work.is_imported, ["colorsys"] * 6)) == [True] * 6
        assert not made.call(work.is_imported, "cgitb")
        assert len({made.call(work.parent_of, None), *made.map(work.parent_of, range(6))} - {os.getpid()}) == 1
    with (
        ProcessExecutor(2, modules=["no_such_module"]) as made,
        pytest.raises(Unavailable, match="ended with status 1"),
    ):
        made.call(work.square, 1)


@pytest.mark.slow
@forks
@pytest.mark.only_soak
def test_forks__of_a_killed_process(tmp_path: Path) -> None:
    """Workers end with the process that forked them; their items run again, in workers of another one."""
    with ProcessExecutor(2) as made:
        parent = made.call(work.parent_of, None)
        waiting = [made.submit(work.wait_once, tmp_path / str(number)) for number in range(2)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        first = made.pids
        os.kill(parent, signal.SIGKILL)
        assert [each.result(20) for each in waiting] == ["done", "done"]
        assert len(first) == len(made.pids) == 2
        assert not set(first) & set(made.pids)
        assert not any(map(is_running, first))
        assert made.call(work.parent_of, None) not in (parent, os.getpid())


@pytest.mark.slow
@forks
def test_forks__after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was asked, and whose answer was not read, is not asked again."""
    server = forked.ForkServer(sys.executable, [])
    try:
        process, _ = server.fork()
        with monkeypatch.context() as patched:
            patched.setattr(Connection, "recv", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                process.poll()
        wait_until(lambda: not is_running(process.pid))
        assert process.wait(5) == process.poll() == -signal.SIGKILL
        other, _ = server.fork()
        assert other.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.01)
        other.terminate()
        assert other.wait() == -signal.SIGTERM
        other.kill()  # which has ended
    finally:
        server.stop()


def _interrupt(_connection: Connection) -> None:
    raise KeyboardInterrupt


SCRIPT = """
import sys
from framedex.executors import ProcessExecutor
from tests.executors import work
from tests.processes import is_running
from tests.laws import rest_slow
open(sys.argv[1], "a").write("begun ")
with ProcessExecutor(2) as processes:
    print(list(processes.map(work.square, range(5))))
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", rest_slow(["script", "-c", "stdin"], 0, long=1))
def test_processes__do_not_run_the_program_again(tmp_path: Path, way: str) -> None:
    """A script without a guard, a command line and a program from the standard input run once."""
    script, marker = tmp_path / "script.py", tmp_path / "marker"
    script.write_text(SCRIPT)
    command = {"script": [str(script)], "-c": ["-c", SCRIPT], "stdin": ["-"]}[way]
    run = subprocess.run(
        [sys.executable, *command, str(marker)], input=SCRIPT if way == "stdin" else "", env=_environment(),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert (run.stdout, marker.read_text()) == ("[0, 1, 4, 9, 16]\n", "begun ")


@pytest.mark.slow
def test_processes__end_with_a_killed_program(tmp_path: Path) -> None:
    """Workers end at once when their program is killed, in the middle of an item."""
    program = (
        "from pathlib import Path\nfrom framedex.executors import ProcessExecutor\nfrom tests.executors import work\n"
        f"with ProcessExecutor(2) as made:\n    list(made.map(work.wait_in, [Path({str(tmp_path)!r})] * 2))\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], env=_environment()) as process:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        process.kill()
    pids = [int(each.name) for each in tmp_path.iterdir()]
    wait_until(lambda: not any(map(is_running, pids)))


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}


@pytest.mark.slow
@pytest.mark.only_soak
def test_processes__of_a_notebook(environment: Environment) -> None:
    """A cell runs functions in processes, which do not run the kernel again."""
    import nbformat
    from nbclient import NotebookClient

    environment["PYTHONPATH"] = _environment()["PYTHONPATH"]
    cells = ["import sys; sys.argv = ['', '/dev/null']", SCRIPT]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])  # type: ignore[no-untyped-call] # untyped there
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    assert notebook.cells[1].outputs[0]["text"] == "[0, 1, 4, 9, 16]\n"


class Marked:
    """A function that can be told from others."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __call__(self, item: int) -> int:
        return self.number * 1000 + item


def test_functions__many(executor: Executor) -> None:
    """Each item meets its function, however many there are, also those that were not used for long."""
    several = [Marked(number) for number in range(25)]
    for _ in range(2):
        for each in several:
            assert list(executor.map(each, range(3))) == [each.number * 1000 + item for item in range(3)]


@pytest.mark.only_soak
@pytest.mark.slow
def test_functions__are_not_kept(processes: ProcessExecutor) -> None:
    """Of functions only the last few are kept: they may refer to large arrays."""
    first = partial(work.square)
    gone = weakref.ref(first)
    assert processes.call(first, 3) == 9
    for _ in range(functions.MOST):
        processes.call(partial(work.square), 2)
    del first
    gc.collect()
    assert gone() is None
