"""A shell script with curl and grep, as the documentation of the original service has it."""

import json
import os
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from framedex import Workspace
from tests.gallery import make_gallery
from tests.prepared import prepared
from tests.service.test_server import served

SCRIPT = r"""
set -eu
QUERY="file_name=all.zip&export_format=json&include_images=true"
ANSWER=$(curl -s "$BASE/api/v1/dataset/$DATASET/export_context_async?$QUERY")
ID=$(echo "$ANSWER" | grep -o '"id":"[^"]*"' | head -1 | cut -d'"' -f4)
for _ in $(seq 100); do
    ANSWER=$(curl -s "$BASE/api/v1/dataset/$DATASET/export_status?export_task_id=$ID")
    STATUS=$(echo "$ANSWER" | grep -o '"status":"[^"]*"' | cut -d'"' -f4)
    if [ "$STATUS" = COMPLETED ]; then break; fi
    if [ "$STATUS" = FAILED ]; then exit 1; fi
    sleep 0.1
done
DOWNLOAD_URI=$(echo "$ANSWER" | grep -o '"download_uri":"[^"]*"' | cut -d'"' -f4 | tr -d '\\')
curl -s -L "$DOWNLOAD_URI" -o "$TARGET"
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_script__exports(tmp_path: Path) -> None:
    """The script finds each value by its pattern, which allows no blank after a colon, and fetches the ZIP file."""
    make_gallery(tmp_path / "gallery")
    with Workspace(tmp_path / "ws") as workspace:
        dataset_id = prepared(workspace, "pets", tmp_path / "gallery").id
    with served(tmp_path / "ws") as server:
        target = tmp_path / "all.zip"
        values = {"BASE": server.url, "DATASET": dataset_id, "TARGET": str(target)}
        subprocess.run(["bash", "-c", SCRIPT], env={**os.environ, **values}, check=True, timeout=120)
        assert target.read_bytes()[:2] == b"PK"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_script__of_the_documentation(tmp_path: Path) -> None:
    """The script of docs/service.md uploads a folder, waits, explores and downloads an export with all images."""
    text = (Path(__file__).parents[3] / "docs" / "service.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- script -->\n```sh\n(.*?)```", text, re.DOTALL)
    assert found is not None
    make_gallery(tmp_path / "photos")
    for path in (tmp_path / "photos").iterdir():
        if path.name not in ("animals", "towns"):  # the others are broken or no images
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    count = sum(path.is_file() for path in (tmp_path / "photos").rglob("*"))
    Workspace(tmp_path / "ws").close()
    with served(tmp_path / "ws") as server:
        script = found.group(1).replace("http://127.0.0.1:8765", server.url)
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=tmp_path,
            check=False,
            timeout=240,
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout.startswith('"n_images":')
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        items = json.loads(archive.read("metadata.json"))["media_items"]
        images = [name for name in archive.namelist() if name.startswith("images/")]
    assert len(items) == len(images) == count
