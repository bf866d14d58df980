"""The web app beside LightlyStudio and Spotlight, on the same photographs, in the same run and in turns.

Each turn starts a server, opens its page in a fresh context of the browser, and ends the server. What is made once (a
workspace, a database) is not part of a turn. Each tool has an environment of its own (``--peers``).
"""

import csv
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser
from playwright.sync_api import Error as BrowserError

import other_hosts
from common import environment, median, photos, run_worker, table
from framedex import Workspace
from service import memory_mib
from web_data import NAME
from web_peers_page import GROUPS, App, Framedex, LightlyStudio, Spotlight, measure_app
from web_peers_workers import DATABASE

SIZES = (1000, 10_000)
_ORIGINALS = 1000
_START_S, _STOP_S = 120, 30
_SCRIPT = Path(__file__).resolve().parent / "web_peers_workers.py"
Figures = dict[str, float | None]


@dataclass(frozen=True)
class Tool:
    """A tool with a page.

    Attributes:
        app: its page.
        environment: the name of its environment.
        make: makes what its server reads, with its Python and the folder; returns seconds.
        command: the command of its server, with its Python, the folder and a port.
        variables: of the server's environment.
    """

    app: App
    environment: str
    make: Callable[[Path, Path], float]
    command: Callable[[Path, Path, int], Sequence[str]]
    variables: dict[str, str]


def _make_workspace(_: Path, folder: Path) -> float:
    """Create the dataset; its thumbnails are made when they are first seen."""
    began = time.perf_counter()
    with Workspace(folder / "workspace") as workspace:
        workspace.create_dataset(NAME, folder / "photos")
    return time.perf_counter() - began


def _make_database(python: Path, folder: Path) -> float:
    return run_worker(python, "lightly-studio", folder, script=_SCRIPT).call_s


def _make_table(_: Path, folder: Path) -> float:
    began = time.perf_counter()
    with (folder / "photos.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("image", "label"))
        writer.writerows((path, path.parent.name) for path in _in_order(folder))
    return time.perf_counter() - began


SERVICE = "framedex[http]"
"""The environment of our own server."""
TOOLS = {
    "Framedex": Tool(
        Framedex(),
        SERVICE,
        _make_workspace,
        lambda python, folder, port: (
            *(str(python), "-m", "framedex", "serve"),
            *("--workspace", str(folder / "workspace"), "--port", str(port)),
        ),
        {"LOG_LEVEL": "WARNING"},
    ),
    "LightlyStudio": Tool(
        LightlyStudio(),
        "lightly-studio",
        _make_database,
        lambda python, folder, port: (
            *(str(python.parent / "lightly-studio"), "gui", "--db-file", str(folder / DATABASE)),
            *("--no-browser", "--host", "127.0.0.1", "--port", str(port)),
        ),
        {"LIGHTLY_STUDIO_ANALYTICS_ENABLED": "false"},
    ),
    "Spotlight": Tool(
        Spotlight(),
        "renumics-spotlight",
        _make_table,
        lambda python, folder, port: (
            *(str(python.parent / "spotlight"), str(folder / "photos.csv")),
            *("--dtype", "image=Image", "--dtype", "label=Category"),
            *("--no-browser", "--host", "127.0.0.1", "--port", str(port)),
        ),
        {},
    ),
}


def measure_tools(browser: Browser, data: Path, peers: Path, sizes: Sequence[int], rounds: int) -> dict[str, Any]:
    """Return, for each size and tool, the figures of each round and the seconds that making took; print tables."""
    found: dict[str, Any] = {}
    pythons = _pythons(peers)
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="bench-web-peers-") as name:
            folder = Path(name)
            _write_photos(photos(data)[:_ORIGINALS], folder, size)
            found[str(size)] = _measure_size(browser, pythons, folder, rounds)
        _print(size, found[str(size)])
    return found


def _pythons(peers: Path) -> dict[str, Path]:
    """Return the Python of each tool that is here; print why one is not."""
    pythons = {}
    for name, tool in TOOLS.items():
        try:
            pythons[name] = environment(peers, tool.environment)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name} is left out: its environment cannot be made ({error})")
    return pythons


def _write_photos(originals: list[Path], folder: Path, size: int) -> None:
    """Write photographs into folders of groups, and their labels; those beyond the originals are links to these."""
    labels = [("filename", "label")]
    written: list[Path] = []
    for number in range(size):
        original, group = originals[number % len(originals)], f"group {number % GROUPS}"
        path = folder / "photos" / group / f"{number:05}-{original.name}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if number < len(originals):
            shutil.copy(original, path)
        else:
            os.link(written[number % len(originals)], path)
        written.append(path)
        labels.append((f"{group}/{path.name}", group))
    with (folder / "photos" / "image_annotations.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(labels)


def _in_order(folder: Path) -> list[Path]:
    """Return the photographs in the order of their paths."""
    return sorted(path for path in (folder / "photos").glob("*/*") if path.is_file())


def _measure_size(browser: Browser, pythons: dict[str, Path], folder: Path, rounds: int) -> dict[str, Any]:
    ordered = _in_order(folder)
    made: dict[str, float] = {}
    for name, python in pythons.items():
        try:
            made[name] = TOOLS[name].make(python, folder)
        except SystemExit as error:  # of a worker
            print(f"{name} is left out: {str(error).splitlines()[-1]}")
    found: dict[str, list[Figures]] = {name: [] for name in made}
    for number in range(rounds):
        for name in list(found):
            try:
                found[name].append(_turn(browser, TOOLS[name], pythons[name], folder, ordered))
            except (OSError, RuntimeError, BrowserError) as error:
                if TOOLS[name].environment is None:
                    raise
                print(f"{name} is left out: {str(error).splitlines()[0]}")
                del found[name]
            else:
                print(f"{len(ordered):,} photographs, round {number + 1}: {name}", flush=True)
    return {"made_s": made, "rounds": found}


def _turn(browser: Browser, tool: Tool, python: Path, folder: Path, ordered: list[Path]) -> Figures:
    """Start the server, measure, and end it."""
    shutil.rmtree(folder / "workspace" / "cache" / "thumbnails", ignore_errors=True)
    hosts = folder / "hosts.txt"
    hosts.unlink(missing_ok=True)
    began = time.perf_counter()
    with _serving(tool, python, folder, hosts) as (site, pid):
        figures: Figures = {"command to answers": 1000 * (time.perf_counter() - began)}
        figures |= measure_app(tool.app, browser, site, began, ordered)
        processes = _processes(pid)
        figures["memory of the server, RSS, MiB"] = sum(map(memory_mib, processes))
        figures["memory of the server, PSS, MiB"] = sum(map(_proportional_mib, processes))
        figures["processes of the server"] = len(processes)
    asked = Counter(hosts.read_text("utf-8").splitlines()) if hosts.is_file() else Counter[str]()
    figures["requests of the server to other hosts"] = asked.total()
    for host, times in asked.items():
        print(f"  the server asked for {host}, {times} times")
    return figures


@contextmanager
def _serving(tool: Tool, python: Path, folder: Path, hosts: Path) -> Iterator[tuple[str, int]]:
    """Run the server of a tool; yield its address, once it answers, and the id of its process."""
    modules = folder / "modules"
    modules.mkdir(exist_ok=True)
    shutil.copy(other_hosts.__file__, modules / "sitecustomize.py")
    (folder / "home").mkdir(exist_ok=True)
    own = os.environ.get("PYTHONPATH") if tool.environment is None else None
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    variables |= {
        "PYTHONPATH": os.pathsep.join(map(os.path.abspath, (modules, *(own.split(os.pathsep) if own else ())))),
        "HOME": str(folder / "home"),
        other_hosts.VARIABLE: str(hosts),
        **tool.variables,
    }
    port = _free_port()
    site = f"http://127.0.0.1:{port}"
    with (folder / "log.txt").open("w+b") as log:
        process = subprocess.Popen(
            tool.command(python, folder, port),
            stdout=log,
            stderr=log,
            env=variables,
            cwd=folder,
            start_new_session=True,
        )
        try:
            _wait_for_answer(site, process, folder / "log.txt")
            yield site, process.pid
        finally:
            _stop(process)


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def _wait_for_answer(site: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server answers.

    Raises:
        RuntimeError: it ended, or did not answer in time.
    """
    end = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(site, timeout=_START_S):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.01)
    last = (log.read_text("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
    raise RuntimeError(f"its server did not start: {last}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a server and what it started."""
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _processes(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text("utf-8").rpartition(")")[2].split()[1])
        except OSError:
            continue  # it ended
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def _proportional_mib(pid: int) -> float:
    """Return the memory of a process in MiB; what several processes share is divided among them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("Pss:"))) / 1024


def _print(size: int, found: dict[str, Any]) -> None:
    rounds: dict[str, list[Figures]] = {name: each for name, each in found["rounds"].items() if each}
    names = list(dict.fromkeys(key for turns in rounds.values() for figures in turns for key in figures))
    rows = [[name, *(_cell(name, turns, rounds.get("Framedex")) for turns in rounds.values())] for name in names]
    rows.append(["made before, s", *(f"{found['made_s'][name]:.1f}" for name in rounds)])
    print(f"\n{size:,} photographs; milliseconds, unless named; medians, and in brackets the ratio to Framedex")
    print(table(["", *rounds], rows))


def _cell(name: str, turns: list[Figures], ours: list[Figures] | None) -> str:
    values = [value for figures in turns if (value := figures.get(name)) is not None]
    if not values:
        return "-"
    text = f"{median(values):,.0f}"
    if turns is ours or not ours:
        return text
    pairs = [(figures.get(name), other.get(name)) for figures, other in zip(turns, ours, strict=True)]
    ratios = [value / base for value, base in pairs if value is not None and base]
    return f"{text} ({median(ratios):.2f})" if ratios else text
