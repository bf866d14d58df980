"""No telemetry: a server that works contacts nothing but this machine, whatever the environment turns on."""

import json
import os
import socket
import urllib.request
from pathlib import Path

import pytest

from framedex import Workspace
from tests.gallery import make_gallery
from tests.prepared import prepared
from tests.processes import start
from tests.service.test_server import ENVIRONMENT, served

_HOOK = """
import json, os, sys

def note(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
        where = arguments[0 if event == "socket.getaddrinfo" else 1]
        with open(os.environ["CONTACTED"], "a") as file:
            file.write(json.dumps([event, str(where)]) + "\\n")

sys.addaudithook(note)
"""


@pytest.mark.slow
def test_server__contacts_nobody(tmp_path: Path) -> None:
    """No name is looked up, and nothing is connected but sockets of this machine; a collector gets nothing."""
    make_gallery(tmp_path / "gallery")
    folder, contacted = tmp_path / "ws", tmp_path / "contacted.txt"
    with Workspace(folder) as workspace:
        dataset_id = prepared(workspace, "pets", tmp_path / "gallery").id
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(_HOOK)
    paths = os.pathsep.join([str(tmp_path / "hook"), *filter(None, [ENVIRONMENT.get("PYTHONPATH")])])
    with socket.create_server(("127.0.0.1", 0)) as collector:
        collector.settimeout(0.2)
        endpoint = f"http://127.0.0.1:{collector.getsockname()[1]}"
        environment = {
            "PYTHONPATH": paths,
            "CONTACTED": str(contacted),
            "FASTAPI_OTEL_AUTO_CONFIGURE": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_TRACES_EXPORTER": "otlp",
            "OTEL_METRICS_EXPORTER": "otlp",
        }
        with served(folder, **environment) as server:
            for path in (
                f"/api/v1/explore/{dataset_id}",
                f"/api/v1/dataset/{dataset_id}/stats",
                f"/api/v1/dataset/{dataset_id}/export_context_async?file_name=x&export_format=json",
                "/api/v1/openapi.json",
                "/api/v1/metrics",
            ):
                request = urllib.request.Request(server.url + path, headers={"Sec-Fetch-Site": "none"})
                with urllib.request.urlopen(request, timeout=60) as answer:
                    assert answer.status == 200
            server.stop()
        with pytest.raises(TimeoutError):
            collector.accept()
    lines = contacted.read_text().splitlines() if contacted.exists() else []
    found = [json.loads(line) for line in lines]
    assert [each for each in found if not any(own in each[1] for own in ("127.0.0.1", "::1", "localhost"))] == []


def test_hook__hears_what_is_contacted(tmp_path: Path) -> None:
    """The hook of the test above notes a connection: else an empty list would mean nothing."""
    contacted = tmp_path / "contacted.txt"
    code = f"""
import os, socket
os.environ["CONTACTED"] = {str(contacted)!r}
exec({_HOOK!r})
try:
    socket.create_connection(("127.0.0.1", 9), 1)
except OSError:
    pass
"""
    process = start(code)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert "127.0.0.1" in contacted.read_text()
