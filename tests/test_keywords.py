"""Keyword arguments of the public classes: type checkers know all names, so that a misspelt one is an error."""

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Unpack, get_origin

import pytest
from mypy import api

import framedex

BY_NAME = {"Dataset.set_limits"}
"""Methods whose keywords are names of issue types, which plugins add to."""
MISSPELT = {
    "view.explore(levle=1)": "levle",
    "ds.explore(captoin='a')": "captoin",
    "view.sort_by('blur', decending=True)": "decending",
    "view.sample(5, sed=1)": "sed",
    "view.split({'a': 1.0}, sed=1)": "sed",
    "view.search('a', limt=5)": "limt",
    "ds.search('a', entity='OBJECTS')": "entity",
    "view.similar('a', max_distanc=0.5)": "max_distanc",
    "ds.similar('a', n_candidate=5)": "n_candidate",
    "view.duplicates(similarty=0.98)": "similarty",
    "view.issues(limt=5)": "limt",
    "view.issues().to_pandas(options=1)": "options",
    "view.export('a.zip', fromat='coco')": "fromat",
    "ds.add_media('a', auto_index=True)": "auto_index",
    "ws.create_dataset('a', 'b', encodr='gist')": "encodr",
    "ws.tasks(stats='FAILED')": "stats",
}
"""Calls with a misspelt keyword."""
CHECKER = f"""
[mypy]
strict = True
mypy_path = {Path(framedex.__file__).parents[1]}
follow_imports = skip
[mypy-framedex.*]
follow_imports = silent
"""
"""The settings of the type checker, which reads no package but ours: most of its time went into theirs."""


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public methods of the public classes that are ours."""
    for class_name in framedex.__all__:
        owner = getattr(framedex, class_name)
        for name, method in inspect.getmembers(owner, inspect.isfunction) if inspect.isclass(owner) else ():
            if not name.startswith("_") and method.__module__.startswith("framedex."):
                yield f"{class_name}.{name}", method


def test_keywords__are_named() -> None:
    """No public method takes keywords that a type checker does not know: they are named, or those of a TypedDict."""
    unknown = [
        f"{name}(**{parameter.name}: {parameter.annotation})"
        for name, method in methods()
        for parameter in inspect.signature(method).parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD and get_origin(parameter.annotation) is not Unpack
    ]
    assert [each for each in unknown if each.partition("(")[0] not in BY_NAME] == []


@pytest.mark.slow
def test_keywords__misspelt_ones_are_reported(tmp_path: Path) -> None:
    """The type checker reports each misspelt keyword, and nothing else."""
    head = "import framedex\n\ndef check(ws: framedex.Workspace, ds: framedex.Dataset, view: framedex.View) -> None:\n"
    script = tmp_path / "script.py"
    script.write_text(head + "".join(f"    {call}\n" for call in MISSPELT) + "    view.sort_by('a', descending=True)\n")
    (tmp_path / "mypy.ini").write_text(CHECKER)
    output, problems, _ = api.run([str(script), f"--config-file={tmp_path / 'mypy.ini'}", f"--cache-dir={tmp_path}"])
    assert problems == ""
    errors = re.findall(r'script\.py:(\d+): error: .*[Uu]nexpected keyword argument "(\w+)"', output)
    first = head.count("\n") + 1
    assert {int(line): name for line, name in errors} == dict(enumerate(MISSPELT.values(), first)), output
