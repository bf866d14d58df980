"""The app as a page of a server in a thread of the kernel."""

from html import escape
from urllib.parse import urljoin

from framedex.api.dataset import Dataset
from framedex.api.workspace import workspace_of
from framedex.notebook.kernel_service import kernel_settings
from framedex.service.background import BackgroundServer


class ServedApp:
    """The app of a dataset, served at a port of this machine and shown in a frame.

    Args:
        dataset: the dataset.
        address: of the page.
        height: in CSS pixels.

    Attributes:
        url: the whole address.
        height: in CSS pixels.
    """

    def __init__(self, dataset: Dataset, address: str, height: int) -> None:
        self._server = BackgroundServer(workspace_of(dataset), kernel_settings())
        self.url, self.height = urljoin(self._server.url, address), height

    def close(self) -> None:
        """Stop the server. A second call does nothing."""
        self._server.close()

    def __repr__(self) -> str:
        return f"<framedex app at {self.url}>"

    def _repr_html_(self) -> str:
        style = f"width: 100%; height: {self.height}px; border: 1px solid #8886"
        return f'<iframe title="Framedex" src="{escape(self.url)}" style="{style}" allow="clipboard-write"></iframe>'
