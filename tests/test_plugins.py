"""Plugins add encoders, detectors and issue types by entry points: contributions are used, and failures are named."""

import json
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framedex.export.formats import format_names
from tests.environment import Environment
from tests.image_files import flat, photo, write
from tests.plugin_packages import install
from tests.processes import run, start

Use = Callable[..., None]
RED, WHITE = (250, 20, 20), (255, 255, 255)


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with a red image, a wide one with a bright spot, and two photographs."""
    folder = tmp_path / "images"
    folder.mkdir()
    write(folder / "red.png", flat(RED))
    spot = photo(7, width=300, height=100) // 2
    spot[20:40, 50:80] = WHITE
    write(folder / "spot.png", spot)
    for seed in range(2):
        write(folder / f"photo{seed}.png", photo(seed))
    return folder


@pytest.fixture
def use(tmp_path: Path, environment: Environment) -> Use:
    """Install packages for processes that start later."""
    before = os.environ.get("PYTHONPATH", "")

    def call(*names: str) -> None:
        target = tmp_path / "-".join(["site", *names])
        if not target.exists():
            for name in names:
                install(name, target)
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(target) if names else "", before]))

    return call


@pytest.mark.slow
def test_plugins__are_used(use: Use, tmp_path: Path, images: Path) -> None:
    """A plugin's encoder indexes a dataset, its issue types work in all queries, and its detector enriches."""
    use("example_plugin")
    code = """
        import json, sys, zipfile
        from framedex import Workspace
        folder, images = sys.argv[1:]
        with Workspace(folder) as ws:
            ds = ws.create_dataset("d", images, "mean_colour")
            ds.export(folder + "/d.zip", "json")
            with zipfile.ZipFile(folder + "/d.zip") as archive:
                exported = archive.read("metadata.json").decode()
            red = ds.where([{"issues": {"op": "issue", "value": "red_cast", "confidence_min": 0.5}}])
            plan = ds.plan_cleanup(issues="red_cast").to_arrow().to_pylist()
            values = ds.to_arrow(["file_name", "red_cast", "wide"]).to_pylist()
            with_value = ds.where([{"quality": {"of": "red_cast", "op": "gt", "value": -1}}]).count()
            ds.set_limits(red_cast=0.99, wide=0.5)
            limited = [ds.issues(kind).num_rows for kind in ("red_cast", "wide")]
            bounds = [ds.limits[kind].default for kind in ("red_cast", "wide")]
            ds.reset_limits()
            enriched = ds.enrich({"OBJECT_DETECTION": "bright_spot"})
            print(json.dumps({
                "encoder": ds.embedding_config.encoder,
                "issues": [row for kind in ("red_cast", "wide") for row in ds.issues(kind).to_pylist()],
                "counts": {each.issue_type: each.count for each in ds.where([]).issue_summaries()},
                "filtered": [row["file_path"] for row in red.to_arrow().to_pylist()],
                "table": {
                    row["file_path"]: [each["issue_type"] for each in row["issues"]]
                    for row in ds.to_arrow().to_pylist()
                },
                "exported": exported.count('"red_cast"'),
                "removed": [row["path"] for row in plan if row["action"] == "remove"],
                "values": [values, with_value, limited, bounds, ds.histogram("wide", bins=2).counts],
                "models": {model.id: model.status for model in ds.list_models()},
                "objects": [(row["label"], row["bbox"]) for row in enriched.objects.to_arrow().to_pylist()],
            }))
        """
    found = json.loads(run(code, tmp_path / "ws", images))
    assert found["encoder"] == "mean_colour"
    issues = {(row["path"], row["issue_type"]): row for row in found["issues"]}
    assert issues.keys() == {("red.png", "red_cast"), ("spot.png", "wide")}
    red, wide = issues["red.png", "red_cast"], issues["spot.png", "wide"]
    assert (round(red["value"], 3), round(red["threshold"], 3), red["percentile"]) == (round(230 / 255, 3), 0.4, 100)
    assert (wide["value"], wide["threshold"]) == (3, 2)
    assert (found["counts"]["red_cast"], found["counts"]["wide"], found["counts"]["corrupted"]) == (1, 1, 0)
    assert [Path(path).name for path in found["filtered"]] == found["removed"] == ["red.png"]
    assert {Path(path).name for path, names in found["table"].items() if "wide" in names} == {"spot.png"}
    assert found["exported"] >= 1
    values, with_value, limited, bounds, counts = found["values"]
    assert with_value == len(values) == sum(counts)
    assert {row["file_name"]: row["wide"] for row in values}["spot.png"] == 3
    assert all(row["red_cast"] is not None for row in values)
    assert (limited, bounds) == ([0, len(values)], [0.4, 2])
    assert found["models"]["bright_spot"] == "Active"
    assert found["objects"] == [["spot", [50, 20, 30, 20]]]


@pytest.mark.slow
def test_plugins__formats(use: Use, tmp_path: Path, images: Path) -> None:
    """Labels are read and written in a plugin's format; the error for an unknown format names it."""
    use("example_plugin")
    (images / "lines.txt").write_text("red.png\tpaint\nspot.png\tlamp\n")
    code = """
        import json, sys, zipfile
        from framedex import InvalidInput, Workspace
        folder, images = sys.argv[1:]
        with Workspace(folder) as ws:
            ds = ws.create_dataset("d", images, "gist")
            result = ds.export(folder + "/d.zip", "lines")
            with zipfile.ZipFile(folder + "/d.zip") as archive:
                lines = archive.read("lines.txt").decode().splitlines()
            try:
                ds.export(folder + "/e.zip", "line")
            except InvalidInput as error:
                print(json.dumps([sorted(lines), result.message, str(error)]))
        """
    lines, message, error = json.loads(run(code, tmp_path / "ws", images))
    assert lines == ["red.png\tpaint", "spot.png\tlamp"]
    assert "captions" in message
    assert error == f"format must be {format_names()}, or lines of a plugin, not 'line'"


@pytest.mark.slow
def test_plugins__that_come_later_and_are_gone(use: Use, tmp_path: Path, images: Path) -> None:
    """Images added without the plugin of an issue type get its value at the next reindex; everything else works."""
    make = "import sys; from framedex import Workspace; Workspace(sys.argv[1]).create_dataset('d', sys.argv[2], 'gist')"
    add = """
        import json, sys
        from framedex import InvalidInput, Workspace

        def found(ds):
            try:
                rows = ds.issues("red_cast").to_pylist()
                filtered = ds.where([{"issues": {"op": "issue", "value": "red_cast"}}]).count()
            except InvalidInput as error:
                return str(error)
            assert filtered == len(rows)
            return sorted(row["path"] for row in rows)

        with Workspace(sys.argv[1]) as ws:
            ds = ws.dataset("d")
            before = found(ds)
            ds.add_media(sys.argv[2])
            added = found(ds)
            ds.reindex()
            print(json.dumps([before, added, found(ds), ds.where([]).count()]))
        """

    def looked(new: str, width: int) -> Any:
        write(images / new, flat(RED, width=width))
        return json.loads(run(add, tmp_path / "ws", images))

    run(make, tmp_path / "ws", images)
    use("example_plugin")
    assert looked("red2.png", 80) == [[], ["red2.png"], ["red.png", "red2.png"], 5]
    use()
    *messages, count = looked("red3.png", 96)
    assert count == 6
    assert all(message.startswith("no issue 'red_cast'; there are: blur, ") for message in messages)
    use("example_plugin")
    known = ["red.png", "red2.png", "red4.png"]
    assert looked("red4.png", 72) == [[], known, sorted([*known, "red3.png"]), 7]


@pytest.mark.slow
def test_plugins__that_fail_are_named_and_left_out(use: Use, tmp_path: Path, images: Path) -> None:
    """Each contribution that cannot be used has a reason and one line in the log; everything else works."""
    use("broken_plugin", "example_plugin")
    code = """
        import json, sys
        import framedex
        assert not [name for name in sys.modules if name.startswith(("framedex_broken", "framedex_example"))]
        with framedex.Workspace(sys.argv[1]) as ws:
            ds = ws.create_dataset("d", sys.argv[2], "gist")
            counts = {each.issue_type: each.count for each in ds.where([]).issue_summaries()}
        print(json.dumps([counts, [each.model_dump(mode="json") for each in framedex.list_plugins()]]))
        """
    process = start(code, tmp_path / "ws", images)
    out, log = process.communicate(timeout=120)
    assert process.returncode == 0, log
    counts, plugins = json.loads(out)
    assert (counts["wide"], counts["fails"], counts["fails_later"]) == (1, 0, 0)
    errors = {(each["group"].removeprefix("framedex."), each["name"], each["distribution"]): each for each in plugins}
    left_out = {key: each["error"] for key, each in errors.items() if each["status"] == "left out"}
    broken = "framedex-broken"
    assert left_out == {
        ("encoders", "gist", broken): "the name 'gist' is taken by Framedex itself",
        ("encoders", "no_module", broken): "ModuleNotFoundError: No module named 'framedex_broken.missing'",
        ("encoders", "raises", broken): "RuntimeError: no licence found",
        ("encoders", "wrong_type", broken): (
            "framedex_broken.rows:NUMBER is of the type int, not framedex.encoders.scheme.Scheme"
        ),
        ("detectors", "other_name", broken): (
            "framedex_broken.rows:DETECTOR has the name 'another_name', not that of its entry point"
        ),
        ("issue_types", "exits", broken): "SystemExit: not on this machine",
        ("issue_types", "odd_column", broken): (
            "the value of 'odd_column' must be in the column value_odd_column, not 'embedding'"
        ),
        ("issue_types", "red_cast", "framedex-example"): "the name 'red_cast' is taken by another plugin",
    }
    lines = [line for line in log.splitlines() if "was left out" in line]
    assert len(lines) == len(left_out)
    assert (
        "the plugin 'raises' of framedex-broken 0.0.1 (framedex.encoders) was left out: RuntimeError: no licence" in log
    )
    assert "the measure of the issue type 'fails' of a plugin failed: ZeroDivisionError: no light" in log
    assert "the value of the issue type 'fails_later' of a plugin has the shape (1,)" in log


@pytest.mark.slow
def test_plugins__on_the_command_line(use: Use) -> None:
    """The command lists loaded and left-out contributions; without plugins it says that there are none."""
    code = "import sys; from framedex.cli import main; main(['plugins', *sys.argv[1:]])"
    assert "no plugins are installed" in run(code)
    use("example_plugin")
    found = json.loads(run(code, "--json"))
    assert [(each["name"], each["distribution"], each["version"], each["status"]) for each in found] == [
        ("mean_colour", "framedex-example", "1.2.0", "loaded"),
        ("bright_spot", "framedex-example", "1.2.0", "loaded"),
        ("red_cast", "framedex-example", "1.2.0", "loaded"),
        ("wide", "framedex-example", "1.2.0", "loaded"),
        ("lines", "framedex-example", "1.2.0", "loaded"),
        ("lines", "framedex-example", "1.2.0", "loaded"),
    ]
    assert "framedex-example 1.2.0" in run(code)


@pytest.mark.slow
def test_document__shows_the_example_package(use: Use) -> None:
    """The entry points of the document are those of the example package, and its Python blocks run."""
    use("example_plugin")
    here = Path(__file__).parent
    text = (here.parent / "docs" / "plugins.md").read_text("utf-8")
    (shown,) = (tomllib.loads(block) for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL))
    whole = tomllib.loads((here / "example_plugin" / "pyproject.toml").read_text("utf-8"))
    for group, points in shown["project"]["entry-points"].items():
        assert points.items() <= whole["project"]["entry-points"][group].items()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    code = """
        import json, sys
        from framedex_example.detector import BrightSpot
        from framedex_example.encoder import MeanColour
        from framedex_example.formats import _read as read, _write as write
        for block in json.loads(sys.argv[1]):
            exec(block)
        print(MEAN_COLOUR.make("mean_colour:large", None).name, BRIGHT_SPOT.make(None).labels)
        print(RED_CAST.column, WIDE.column)
        """
    assert run(code, json.dumps(blocks)) == "mean_colour:large ('spot',)\nvalue_red_cast value_wide\n"
