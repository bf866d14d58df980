"""The variable ``FRAMEDEX_LOG`` shows the log, by logger, in each process of a program."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.core.logs import log_levels, show_log
from framedex.errors import InvalidInput
from framedex.service.logs import set_up_logs
from framedex.settings import Settings, load_settings
from tests.environment import Environment
from tests.gallery import SETTINGS, fill
from tests.processes import start

LINE = re.compile(r"[\d-]+ [\d:,]+ (?P<level>\w+) (?P<logger>[\w.]+) \[(?P<pid>\d+)\] (?P<message>.*)")


def shown(code: str, *arguments: object) -> list[re.Match[str]]:
    """Return the lines of the log that code in another process writes to the standard error; all are such lines."""
    process = start(code, *arguments, fresh=True)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    lines = [LINE.fullmatch(line) for line in errors.splitlines()]
    assert None not in lines, errors
    return [line for line in lines if line is not None]


@pytest.fixture
def loggers() -> Iterator[list[logging.Logger]]:
    """Loggers whose levels and handlers are those of before after the test."""
    loggers = [logging.getLogger(name) for name in ("framedex", "framedex.storage", "uvicorn")]
    before = [(each, each.level, [*each.handlers], each.propagate) for each in loggers]
    yield loggers
    for each, level, handlers, propagate in before:
        each.handlers[:], each.propagate = handlers, propagate
        each.setLevel(level)


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("debug", {"framedex": "DEBUG"}),
        ("INFO, framedex.storage=trace", {"framedex": "INFO", "framedex.storage": "DEBUG"}),
        ("framedex.tasks.runner=warn,", {"framedex.tasks.runner": "WARNING"}),
        ("", {}),
    ],
)
def test_levels__are_read(text: str, levels: dict[str, str]) -> None:
    """A level alone is that of all loggers; others have their names."""
    assert log_levels(text) == levels


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("loud", "no log level 'loud'; there are DEBUG, INFO, WARNING, ERROR, CRITICAL"),
        ("info,framedex.storage", "no log level 'framedex.storage'; there are DEBUG"),
        ("info,storage=debug", "no logger 'storage'; their names begin with 'framedex'"),
        ("framedexes=debug", "no logger 'framedexes'"),
    ],
)
def test_levels__that_are_wrong(text: str, reason: str, environment: Environment) -> None:
    """A wrong value is an error that names the variable, the value and what would be right."""
    environment["FRAMEDEX_LOG"] = text
    with pytest.raises(InvalidInput, match=f"^FRAMEDEX_LOG is '{re.escape(text)}': {re.escape(reason)}"):
        load_settings()


def test_log__is_not_shown_by_default(environment: Environment) -> None:
    """Without the variable the package has no handler and no level, and does not load Python's logging."""
    environment.pop("FRAMEDEX_LOG", None)
    code = """
    import sys, framedex
    assert "logging" not in sys.modules
    import logging
    log = logging.getLogger("framedex")
    assert not log.handlers and not log.level
    log.info("not shown")
    """
    assert shown(code) == []


def test_log__of_a_program_with_handlers(environment: Environment) -> None:
    """Where a handler of the program takes a line, it is written once, in the program's format."""
    code = """
    import logging, framedex
    logging.basicConfig(format="- 0,0 %(levelname)s %(name)s [7] %(message)s")
    logging.getLogger("framedex.example").debug("taken")
    logging.getLogger().handlers[0].setLevel("INFO")
    logging.getLogger("framedex.example").debug("not taken")
    """
    environment["FRAMEDEX_LOG"] = "debug"
    taken, left = shown(code)
    assert (taken["message"], taken["pid"], left["message"]) == ("taken", "7", "not taken")
    assert left["pid"] != "7"


@pytest.mark.slow
def test_log__of_a_script(tmp_path: Path, environment: Environment) -> None:
    """A script shows what its tasks do, of each logger from its level on."""
    code = """
    import sys
    from framedex import Workspace
    from tests.gallery import embedded
    with Workspace(sys.argv[1]) as workspace:
        workspace.create_dataset("pets", embedded([[1, 0], [0, 1]]))
    """
    environment["FRAMEDEX_LOG"] = "info,framedex.tasks.progress=debug"
    lines = shown(code, tmp_path / "ws")
    assert {line["level"] for line in lines if line["logger"] == "framedex.tasks.progress"} == {"DEBUG"}
    messages = [line["message"] for line in lines if line["logger"] == "framedex.tasks.runner"]
    assert re.fullmatch(r"task \S+ on dataset \S+ begins", messages[0])
    assert re.fullmatch(r"task \S+ ends after \d+\.\d s: .+", messages[1])
    assert {line["level"] for line in lines} == {"DEBUG", "INFO"}


@pytest.mark.slow
def test_log__of_workers(environment: Environment) -> None:
    """Processes that work for a program show their log, too, whether they are forked or start by themselves."""
    code = """
    import logging
    from framedex.executors import ProcessExecutor
    for workers in (1, 2):
        with ProcessExecutor(workers) as executor:
            executor.submit(logging.getLogger("framedex.example").info, f"one of {workers}").result()
    """
    environment["FRAMEDEX_LOG"] = "info"
    assert [line["message"] for line in shown(code)] == ["one of 1", "one of 2"]
    del environment["FRAMEDEX_LOG"]
    assert shown(code) == []


@pytest.mark.slow
def test_log__of_the_command_line(tmp_path: Path, environment: Environment) -> None:
    """A command prints the same with the log, which is on the standard error; a wrong value is one line there."""
    fill(tmp_path / "pets", 2)

    def run(log: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment["FRAMEDEX_LOG"] = log
        command = [sys.executable, "-m", "framedex", *arguments, "-w", str(tmp_path / "ws")]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)

    created = run("info", "create", "pets", str(tmp_path / "pets"))
    assert created.stdout.startswith("pets: 2 images")
    assert "INFO framedex.tasks.runner" in created.stderr
    wrong = run("loud", "ls")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr == (
        "error: FRAMEDEX_LOG is 'loud': no log level 'loud'; there are DEBUG, INFO, WARNING, ERROR, CRITICAL\n"
    )


def test_log__of_an_open_workspace(tmp_path: Path, loggers: list[logging.Logger]) -> None:
    """The setting holds as a workspace is opened, before LOG_LEVEL; a change of the level can be withdrawn."""
    settings = SETTINGS.model_copy(update={"log": "info,framedex.storage=debug", "log_level": "ERROR"})
    with Workspace(tmp_path / "ws", settings=settings) as workspace:
        assert [each.level for each in loggers[:2]] == [logging.INFO, logging.DEBUG]
        assert len(loggers[0].handlers) == 1
        workspace.change_settings(log_level="critical")
        assert loggers[0].level == logging.CRITICAL
        workspace.change_settings(log_level=None)
        assert loggers[0].level == logging.INFO
        with Workspace(tmp_path / "other", settings=settings):
            assert len(loggers[0].handlers) == 1
    assert Settings(log=" ").log == " "


def test_log__of_a_service(loggers: list[logging.Logger], capsys: pytest.CaptureFixture[str]) -> None:
    """A service writes the levels of the setting, in its own format; without one it begins with INFO."""
    loggers[0].setLevel(logging.NOTSET)
    set_up_logs("WARNING")
    assert loggers[0].level == logging.WARNING
    show_log("error,framedex.storage=debug")
    set_up_logs(None)
    assert loggers[0].level == logging.ERROR
    logging.getLogger("framedex.storage.tables").debug("folded")
    logging.getLogger("framedex.tasks").info("not shown")
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["message"] == "folded"
