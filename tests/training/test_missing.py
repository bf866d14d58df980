"""Without the library, the message names the extra that brings it."""

import sys

import pytest

from framedex import MissingDependency, Workspace
from tests.gallery import grouped


def test_libraries__that_are_missing(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each method names the extra of its library."""
    dataset = workspace.create_dataset("d", grouped([2]))
    monkeypatch.delitem(sys.modules, "framedex.training.torch_dataset", raising=False)
    for name in ("torch", "datasets"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependency, match=r"framedex\[torch\]"):
        dataset.to_torch()
    with pytest.raises(MissingDependency, match=r"framedex\[datasets\]"):
        dataset.view.to_huggingface()
