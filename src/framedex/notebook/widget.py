"""The widget of the app."""

import gzip
import json
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anywidget
import traitlets

from framedex.api.dataset import Dataset
from framedex.api.view import View
from framedex.api.view.view import selected_ids
from framedex.errors import InvalidInput
from framedex.notebook.addresses import shown_view
from framedex.notebook.kernel_service import SharedService
from framedex.notebook.messages import Messages
from framedex.vql import parse, to_json
from framedex.web import AppPages


@cache
def _assets() -> tuple[Mapping[str, str], bytes]:
    """Return the app of widgets: the length of its styles in characters; styles and code, compressed."""
    styles, code = AppPages().widget_files()
    # Two units of UTF-16 for a character beyond the first plane, as JavaScript counts.
    length = len(styles.encode("utf-16-le")) // 2
    return {"x-styles": str(length)}, gzip.compress((styles + code).encode(), mtime=0)


def _filter_of(address: str) -> list[Any]:
    """Return the filter of an address."""
    found = parse_qs(urlsplit(address).query).get("f", ["[]"])
    return list(json.loads(found[-1]))


class AppWidget(anywidget.AnyWidget):
    """The app of a dataset in a notebook.

    Values that are set here are shown, and what the user does there is read here once no cell runs.

    Args:
        dataset: the dataset.
        address: of the page that is shown first.
        height: in CSS pixels.

    Attributes:
        url: the address of the page that is shown, such as ``/d/pets/pictures``.
        vql: the filter of the images, as JSON.
        selected: the ids of the selected media; none where all are selected.
        all_selected: whether everything is selected that the page of images shows.
        height: in CSS pixels.
        folder: of the workspace, for code that the app copies.
    """

    _esm = AppPages().widget_loader()
    url = traitlets.Unicode("/").tag(sync=True)
    vql = traitlets.Any(default_value=[]).tag(sync=True)
    selected = traitlets.Any(default_value=[]).tag(sync=True)
    all_selected = traitlets.Bool(False).tag(sync=True)
    height = traitlets.Int(600).tag(sync=True)
    folder = traitlets.Unicode("").tag(sync=True)
    _shared: SharedService | None = None

    def __init__(self, dataset: Dataset, address: str, height: int) -> None:
        self._dataset = dataset
        self._shared = shared = SharedService(dataset)
        folder = str(dataset._context.layout.root)
        super().__init__(url=address, height=height, vql=_filter_of(address), folder=folder)
        self._messages = Messages(shared.service, self.send, _assets)
        self.on_msg(self._receive)

    def __repr__(self) -> str:
        return f"<framedex.AppWidget of dataset {self._dataset.name!r}>"

    @property
    def selection(self) -> View:
        """The selected media as a view: those that were chosen, or all that the page of images shows.

        Raises:
            NotFound: a selected media item is not in the dataset any more.
        """
        if self.all_selected:
            return shown_view(self._dataset, self.url)
        is_of_objects = parse_qs(urlsplit(self.url).query).get("entity") == ["OBJECTS"]
        whole = self._dataset.objects if is_of_objects else self._dataset.view
        return whole.select(list(self.selected))

    def close(self) -> None:
        """Close the widget; the thread of its service stops with the last widget. A second call does nothing."""
        shared, self._shared = self._shared, None
        if shared is None:
            return
        self._messages.close()
        super().close()
        shared.close()

    def _receive(self, _widget: Any, content: Any, buffers: Any) -> None:
        if self._shared is not None:
            self._messages.receive(content, buffers)

    @traitlets.validate("vql")
    def _parsed(self, proposal: Any) -> list[dict[str, Any]]:
        return to_json(parse(proposal["value"]))

    @traitlets.validate("selected")
    def _ids(self, proposal: Any) -> list[str]:
        return selected_ids(proposal["value"])

    @traitlets.validate("height")
    def _checked_height(self, proposal: Any) -> int:
        if proposal["value"] < 1:
            raise InvalidInput(f"height must be at least 1, not {proposal['value']}")
        return int(proposal["value"])
