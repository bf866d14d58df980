"""Without the library, the message names the extra that brings it."""

import pytest

from framedex import MissingDependency, Workspace
from tests.extras import missing
from tests.gallery import grouped


def test_libraries__that_are_missing(workspace: Workspace) -> None:
    """Each method names the extra of its library."""
    dataset = workspace.create_dataset("d", grouped([2]))
    with missing("torch", "datasets", again=("framedex.training.torch_dataset",)):
        with pytest.raises(MissingDependency, match=r"framedex\[torch\]"):
            dataset.to_torch()
        with pytest.raises(MissingDependency, match=r"framedex\[datasets\]"):
            dataset.view.to_huggingface()
