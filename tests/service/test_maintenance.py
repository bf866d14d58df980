"""Work between requests: one step that fails keeps no other from its turn."""

import logging
import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest

from framedex.errors import WorkspaceError
from framedex.service.maintenance import Maintenance
from tests.tuning import Tuning


def test_maintenance__goes_on_after_a_failure(tuning: Tuning, caplog: pytest.LogCaptureFixture) -> None:
    """Engines that cannot be loaded and a step that fails are logged, and the others are done."""
    tuning.maintenance_s = 0.01
    swept = threading.Event()

    def fail(error: Exception) -> None:
        raise error

    workspace = SimpleNamespace(
        load_engines=lambda: fail(ImportError("no engine")), evaluate_views=lambda: fail(WorkspaceError("a full disk"))
    )
    state = SimpleNamespace(workspace=workspace, hub=SimpleNamespace(sweep=swept.set), sign_on=None, auth_off=True)
    with caplog.at_level(logging.WARNING, "framedex.service"):
        thread = Maintenance(cast("Any", state))
        thread.start()
        assert swept.wait(30)
        thread.stop()
    assert {record.getMessage() for record in caplog.records} == {
        "maintenance failed",
        "maintenance failed: a full disk",
    }
