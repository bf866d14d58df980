"""Pages of the site that are no files of this folder: a hook of MkDocs, see mkdocs.yml.

They are made of files of other folders and of the program. Links to such files lead to their pages.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from framedex.cli.program import app

ROOT = Path(__file__).parent.parent
_RESULTS = ROOT / "benchmarks" / "results"
FILES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
    **{f"benchmarks/results/{path.name}": f"benchmarks/{path.name}" for path in sorted(_RESULTS.glob("*.md"))},
    **{f"notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in sorted((ROOT / "notebooks").glob("*.ipynb"))},
}
"""The pages of files elsewhere: names in the project and on the site."""
_LINK = re.compile(r"(?<=\]\()(?P<path>[^)#:\s]+)(?=[)#])")


def on_config(config: MkDocsConfig) -> None:
    """Add the notebooks after the guides; the first one has its place before them."""
    nav: list[Any] = config.nav or []
    placed = str(nav)
    pages = [page for page in FILES.values() if page.startswith("notebooks/") and page not in placed]
    nav.insert(2, {"Notebooks": pages})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made."""
    for name, page in FILES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=notebook_page(text) if name.endswith(".ipynb") else text))
    files.append(File.generated(config, "commands.md", content="\n".join(command_lines())))
    description = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    files.append(File.generated(config, "http.md", content="\n".join(http_lines(description))))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Lead the links of a page to the pages of the files that they name."""
    source = {page: name for name, page in FILES.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    folder, upwards = (ROOT / source).parent, "../" * page.file.src_uri.count("/")

    def place(link: re.Match[str]) -> str:
        target = (folder / link["path"]).resolve()
        if not target.is_relative_to(ROOT):
            return link["path"]
        name = target.relative_to(ROOT).as_posix()
        if name in FILES:
            return upwards + FILES[name]
        return upwards + name.removeprefix("docs/") if source in FILES else link["path"]

    return _LINK.sub(place, markdown)


def notebook_page(text: str) -> str:
    """Return a notebook with its stored outputs as Markdown."""
    parts = list[str]()
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
        parts += [_output(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts)


def _output(output: dict[str, Any]) -> str:
    """Return an output of a notebook: its HTML or image if it has one, else its text."""
    data = {kind: "".join(content) for kind, content in output.get("data", {}).items()}
    if "text/html" in data:  # in one line, in which Markdown finds nothing of its own
        return f'<div class="output">{" ".join(data["text/html"].split())}</div>'
    if "image/jpeg" in data:
        return f'<div class="output"><img alt="" src="data:image/jpeg;base64,{data["image/jpeg"].strip()}"></div>'
    return f"```text\n{data.get('text/plain') or ''.join(output.get('text', [])).rstrip()}\n```"


def command_lines() -> Iterator[str]:
    """Yield the lines of the page of the command line."""
    yield "# Command line\n"
    yield "`framedex --help` lists the commands, and `framedex COMMAND --help` shows what is here.\n"
    program: Any = typer.main.get_command(app)
    yield from _parameter_lines(program, "framedex")
    for name, command in program.commands.items():
        yield f"\n## framedex {name}\n"
        yield from _command_lines(command, f"framedex {name}")
        for inner_name, inner in getattr(command, "commands", {}).items():
            yield f"\n### framedex {name} {inner_name}\n"
            yield from _command_lines(inner, f"framedex {name} {inner_name}")


def _command_lines(command: Any, name: str) -> Iterator[str]:
    yield _text(command.help or "") + "\n"
    if not hasattr(command, "commands"):
        usage = command.get_usage(typer.Context(command, info_name=name)).removeprefix("Usage: ")
        yield f"```text\n{' '.join(usage.split())}\n```\n"
        yield from _parameter_lines(command, name)


def _parameter_lines(command: Any, name: str) -> Iterator[str]:
    context = typer.Context(command, info_name=name)
    records = [record for each in command.params if (record := each.get_help_record(context))]
    if records:
        yield "| argument or option | meaning |\n|---|---|"
        yield from (f"| `{option.replace('|', '&#124;')}` | {_text(meaning)} |" for option, meaning in records)


def _text(text: str) -> str:
    """Return a text of the program as Markdown."""
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", " ".join(text.split()))


def http_lines(description: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the page of the HTTP interface."""
    yield "# HTTP interface\n"
    yield (
        "All requests that a [service](service.md) answers. A service describes them at `/api/v1/docs`, with the "
        "fields of each request and answer; the description is also a file, [openapi.json](openapi.json). "
        "[Conformance](conformance.md) lists the rules.\n"
    )
    subjects = defaultdict(list)
    for path, methods in description["paths"].items():
        for method, request in methods.items():
            subjects[request["tags"][0]].append((path, method.upper(), request.get("description", "")))
    for subject, requests in sorted(subjects.items()):
        yield f"\n## {subject.capitalize()}\n\n| request | answer |\n|---|---|"
        yield from (f"| `{method} {path}` | {_text(_first(text))} |" for path, method, text in sorted(requests))


def _first(text: str) -> str:
    """Return the first paragraph of a docstring."""
    return text.partition("\n\n")[0].replace("``", "")
