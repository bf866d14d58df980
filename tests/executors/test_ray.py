"""The executor of Ray: results, errors, lost workers, the end of all processes, and clusters that are there already."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from framedex.analysis.grouped.clusters import linkage_by_groups
from framedex.errors import Aborted, InvalidInput, MissingDependency, Unavailable
from framedex.executors import ProcessExecutor, RayExecutor, ResultLost, ThreadExecutor, open_executor
from framedex.executors import ray as ray_module
from framedex.settings import PROCESSES, Settings, check_executor
from tests.analysis.arrays import clustered
from tests.analysis.grouped.searches import by_row, found
from tests.environment import Environment, restored
from tests.executors import work
from tests.executors.ray_cluster import ACCESS, client_server, environment
from tests.laws import rest_slow
from tests.pauses import wait_until
from tests.processes import is_running

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")


@pytest.fixture(scope="module")
def executor(ray_address: str) -> Iterator[RayExecutor]:
    """An executor on the cluster."""
    with restored() as environment:
        environment.update(ACCESS)
        made = RayExecutor(ray_address)
    with made:
        yield made


@pytest.mark.slow
def test_map__is_that_of_threads_and_processes(executor: RayExecutor, tmp_path: Path) -> None:
    """Results are equal bit for bit, in the order of the items, and can be written to."""
    items = [np.random.default_rng(number).standard_normal((30 + number, 40), dtype=np.float32) for number in range(12)]
    on_ray = list(executor.map(work.products, items))
    with ThreadExecutor(2) as threads, ProcessExecutor(2) as processes:
        for others in (threads.map(work.products, items), processes.map(work.products, items)):
            for mine, other in zip(on_ray, others, strict=True):
                np.testing.assert_array_equal(mine, other, strict=True)
    on_ray[0][:] = 0
    assert "ray" not in sys.modules  # it is loaded in another process
    assert list(executor.map(partial(work.late_square, tmp_path), range(30))) == [number**2 for number in range(30)]
    assert list(executor.map(partial(pow, 2), [])) == []


@pytest.mark.slow
def test_map__requests_few_items_ahead(executor: RayExecutor) -> None:
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


@pytest.mark.slow
def test_map__raises_what_an_item_raises(executor: RayExecutor) -> None:
    """An exception is raised as itself, with the stack of the worker as a note; the executor goes on to work."""
    with pytest.raises(ValueError, match=r"^a\.jpg cannot be used") as caught:
        next(executor.map(work.fail, ["a.jpg", "b.jpg"]))
    assert type(caught.value) is ValueError
    assert "in fail" in caught.value.__notes__[0]
    with pytest.raises(Exception, match=r"c\.jpg"):
        next(executor.map(work.fail_strangely, ["c.jpg"]))
    with pytest.raises((AttributeError, TypeError), match=r"(?i)pickle"):
        executor.submit(lambda item: item, 1)
    assert list(executor.map(work.square, [3])) == [9]


@pytest.mark.slow
def test_workers__are_fresh(executor: RayExecutor) -> None:
    """A worker finds the modules of this process, multiplies on one thread, and has not imported this program."""
    path, variables, main = executor.call(work.surroundings, None)
    assert {each for each in map(os.path.abspath, sys.path) if Path(each).exists()} <= set(path)
    assert variables == {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    assert "ray" in main


@pytest.mark.slow
def test_workers__that_are_lost(executor: RayExecutor, tmp_path: Path) -> None:
    """The item of a worker that was killed runs again in another one; one that ends each is given up, others go on."""
    assert executor.call(work.end_once, tmp_path / "marker") == "done"
    with pytest.raises(ResultLost, match="before it had a result: Ray has lost it"):
        executor.call(work.end_by, int(signal.SIGSEGV))
    assert executor.call(work.square, 5) == 25


@pytest.mark.slow
@pytest.mark.only_soak
def test_needs__of_items(executor: RayExecutor) -> None:
    """Items share the GPU that the cluster declares; those that need more than there is run alone, or are refused."""
    visible = list(executor.map(work.visible_gpus, range(3), gpus=0.5))
    assert visible == ["0"] * 3
    with pytest.raises(Unavailable, match="an item needs 2 GPUs, and Ray's machine has 1"):
        executor.submit(work.square, 1, gpus=2)
    with pytest.raises(InvalidInput, match="not -1"):
        executor.submit(work.square, 1, cpus=-1)
    assert list(executor.map(work.square, range(3), cpus=1000, memory=2**60)) == [0, 1, 4]
    spans = list(executor.map(work.pause, [0.05] * 4, cpus=2))
    assert all(end <= start for (_, end), (start, _) in pairwise(sorted(spans)))


@pytest.mark.slow
def test_abort__leaves_no_worker_busy(executor: RayExecutor, tmp_path: Path) -> None:
    """What the caller raises while it waits ends the items that run and those that wait."""

    def check() -> None:
        if len(list(tmp_path.iterdir())) == 2:
            raise Aborted("aborted on request")

    with pytest.raises(Aborted):
        list(executor.map(work.wait_in, [tmp_path] * 10, check=check))
    pids = [int(each.name) for each in tmp_path.iterdir()]
    wait_until(lambda: not any(map(is_running, pids)))
    assert executor.call(work.square, 6) == 36  # within the time of a test: the processors are free
    assert len(list(tmp_path.iterdir())) == 2


CONNECTED = """
import sys, ray
print("begun")
ray.init(sys.argv[1], log_to_driver=False)
from framedex.executors import RayExecutor
from tests.executors import work
def own(number):
    return number
with RayExecutor() as executor:
    assert executor.capacity.gpus == 1
    print(list(executor.map(work.square, range(3))))
    try:
        executor.call(own, 1)
    except AttributeError as error:
        print("own" in str(error))
assert ray.is_initialized()
print(ray.get(ray.put(5)))
"""


@pytest.mark.only_soak
@pytest.mark.slow
@pytest.mark.parametrize("client", rest_slow([True, False], 0, long=1))
def test_program__that_is_connected(ray_address: str, tmp_path: Path, client: bool) -> None:
    """The cluster that a program has joined itself, also by Ray's client, is used and left as it is; it runs once.

    It is a script without a guard, or a command line.
    """
    script = tmp_path / "script.py"
    script.write_text(CONNECTED)
    with client_server(ray_address) if client else nullcontext(ray_address) as address:
        run = subprocess.run(
            [sys.executable, *(["-c", CONNECTED] if client else [script]), address], env=environment(),
            stdout=subprocess.PIPE, text=True, timeout=60, check=True,
        )  # fmt: skip
    assert run.stdout == "begun\n[0, 1, 4]\nTrue\n5\n"


OWN = """
import sys, time
from pathlib import Path
from framedex.executors import RayExecutor
from tests.executors import work
with RayExecutor(workers=2, memory=10**9, gpus=1) as executor:
    assert (executor.workers, executor.capacity.gpus, executor.capacity.memory) == (2, 1, 10**9)
    list(executor.map(work.wait_in, [Path(sys.argv[1])] * 2))
"""


def descendants(pid: int) -> list[int]:
    """Return the ids of the processes that a process has started, and of those that these have started."""
    parents = dict[int, int]()
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(each.name)] = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cluster__of_its_own(tmp_path: Path) -> None:
    """It listens to this machine alone, stores nothing in the home folder, and a killed program takes it along."""
    home = tmp_path / "home"
    home.mkdir()
    environment_ = {name: value for name, value in environment().items() if not name.startswith("RAY_")}
    with subprocess.Popen([sys.executable, "-c", OWN, tmp_path], env={**environment_, "HOME": str(home)}) as process:
        try:
            wait_until(lambda: len(list(tmp_path.iterdir())) == 3 or process.poll() is not None, 60)
            started = descendants(process.pid)
            names = [Path(f"/proc/{each}/comm").read_text().strip() for each in started]
            assert {"raylet", "gcs_server"} <= set(names)
            places = {Path("/tmp"), Path(tempfile.gettempdir())}  # the first where the second is too long for a socket
            folders = {each for place in places for each in place.glob("framedex-ray-*")}
            [temporary] = {each for each in folders if _is_open_in(each, started)}
            assert _listening(started) <= {"0100007F", "0000000000000000FFFF00000100007F"}  # 127.0.0.1
        finally:
            process.kill()
    wait_until(lambda: not any(map(is_running, started)))
    wait_until(lambda: not temporary.exists())
    assert list(home.iterdir()) == []


@pytest.mark.only_soak
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_cluster__whose_connected_process_is_killed() -> None:
    """Items fail at once, and no process and no folder of the cluster is left after a few seconds, agents included."""
    with RayExecutor(workers=1) as own:
        assert own.call(work.square, 3) == 9
        folder, started = own._folder, descendants(own._process.pid)
        assert folder is not None
        assert any(b"agent" in Path(f"/proc/{each}/cmdline").read_bytes() for each in started)
        own._process.kill()
        with pytest.raises(Unavailable, match="has ended"):
            own.call(work.square, 3)
        wait_until(lambda: not any(map(is_running, started)), 15)
        wait_until(lambda: not folder.exists())


def _is_open_in(folder: Path, pids: list[int]) -> bool:
    """Return whether one of some processes has a file of a folder open."""
    for pid in pids:
        for each in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                if str(each.readlink()).startswith(f"{folder}/"):
                    return True
            except OSError:
                continue
    return False


def _listening(pids: list[int]) -> set[str]:
    """Return the addresses on which processes listen, as the tables of the system write them."""
    links = [each for pid in pids for each in Path(f"/proc/{pid}/fd").glob("*") if each.is_symlink()]
    sockets = {str(each.readlink()) for each in links if each.is_symlink()}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    found = {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets}
    assert found, "the raylet listens"
    return found


def test_address__that_cannot_be_reached(environment: Environment) -> None:
    """It is named, before Ray starts."""
    with pytest.raises(Unavailable, match=r"the Ray cluster at ray://127\.0\.0\.1:1 cannot be reached: .*refused"):
        RayExecutor("ray://127.0.0.1:1")
    environment["RAY_ADDRESS"] = "127.0.0.1:1"
    with pytest.raises(Unavailable, match=r"the Ray cluster at 127\.0\.0\.1:1 cannot be reached"):
        open_executor(Settings(executor="ray"))


@pytest.mark.parametrize(("missing", "address"), [("ray", None), ("grpc", "ray://somewhere:1")])
def test_extra__that_is_missing(monkeypatch: pytest.MonkeyPatch, missing: str, address: str | None) -> None:
    """An error names the extra."""
    monkeypatch.setattr(ray_module, "find_spec", lambda name: None if name == missing else object())
    message = rf"the executor '{address or 'ray'}' needs {missing}: pip install 'framedex\[cluster\]'"
    with pytest.raises(MissingDependency, match=message):
        RayExecutor(address)


@pytest.mark.parametrize(
    "name", ["threads", "processes", "ray", "ray://head:10001", "ray://[::1]:5", "ray://10.0.0.1:1"]
)
def test_names__of_executors(name: str) -> None:
    """The names and addresses that settings accept."""
    assert check_executor(name) == name


@pytest.mark.parametrize(
    "name", ["", "Ray", "spark", "ray:", "ray://", "ray://head", "ray://head:", "ray://head:x", "ray://head:99999",
             "ray://head:1/x", "ray://head:1?x", "ray://user@head:1", "ray://head:1 "],
)  # fmt: skip
def test_names__that_are_none(name: str) -> None:
    """Others are refused, with all that there are."""
    with pytest.raises(InvalidInput, match=r"is 'threads', 'processes', 'ray', or the address .* 'ray://.*', not "):
        check_executor(name)


def test_settings__choose_the_executor(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Threads by default, as many workers as the settings or the caller say, within half of the memory."""
    with open_executor(Settings(threads=3)) as made:
        assert (type(made), made.workers) == (ThreadExecutor, 3)
        assert 0 < made.capacity.memory < float("inf")
    with open_executor(Settings(executor=PROCESSES, processes=2), workers=1, memory=7) as made:
        assert (type(made), made.workers, made.capacity.memory) == (ProcessExecutor, 1, 7)
    monkeypatch.setattr("framedex.executors.opening._HAS_POSIX", False)
    with open_executor(Settings(executor=PROCESSES)) as made:
        assert type(made) is ThreadExecutor
    assert "work is done on threads, not by the executor 'processes'" in caplog.text


@pytest.mark.slow
@pytest.mark.only_soak
def test_index__by_groups_is_that_on_threads(executor: RayExecutor, tmp_path: Path) -> None:
    """Neighbours and clusters of 20,000 vectors are equal bit for bit."""
    vectors = clustered(20_000, 24, centres=100, spread=0.6)
    lists, clusters = [], []
    with ThreadExecutor(2) as threads:
        for name, each in (("threads", threads), ("ray", executor)):
            graph, plan = found(vectors, tmp_path / name, each)
            lists.append(by_row(graph, plan))
            link = partial(linkage_by_groups, plan, np.ones(len(vectors), np.int64), (0.02, 0.05, 0.1))
            clusters.append(link(in_memory=0, dense_rows=5000, executor=each, progress=lambda _share: None))
    np.testing.assert_array_equal(lists[0][0], lists[1][0])
    np.testing.assert_array_equal(lists[0][1], lists[1][1])
    np.testing.assert_array_equal(clusters[0], clusters[1])
    assert len(np.unique(clusters[0][:, 2])) > 20
