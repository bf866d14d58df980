"""A dataset as something to look at or to publish: the app in a notebook, the report, the card."""

import os
from pathlib import Path
from typing import Any

from framedex.api.apps import app_of
from framedex.api.card import DatasetCard, card_of
from framedex.api.view import PinnedView, View
from framedex.operations.context import Context, open_media, read_embedding_config
from framedex.operations.edits import list_fields
from framedex.storage import datasets


class DatasetPresentations:
    """Presentations of a dataset as a whole: the app, the report, the card."""

    _context: Context
    id: str

    def app(self, height: int = 600, *, mode: str = "widget") -> Any:
        """Return the web app for a notebook, open at the dataset's findings; see :meth:`framedex.View.app`.

        Args:
            height: in CSS pixels, 1 to 10,000.
            mode: ``widget``; or ``server`` where messages of widgets are blocked.

        Raises:
            InvalidInput: an argument is wrong.
            MissingDependency: the extra ``notebook`` is not installed.
            NotFound: the dataset was deleted.
            Unavailable: the app was not built, or the server does not start.

        Examples:
            >>> app = ds.app(height=400)
            >>> app.url
            '/d/...'
            >>> app.close()
        """
        return app_of(View(self._context, self.id), height=height, mode=mode, shows_findings=True)

    def report(self, path: str | os.PathLike[str], *, level: int = 3, extra: str = "") -> Path:
        """Write one self-contained HTML page with issues, near-duplicates, clusters and objects; return its path.

        Args:
            path: the file.
            level: the cluster level of the page, 0 to 4.
            extra: HTML for the top of the page.

        Raises:
            InvalidInput: the file cannot be written, or *extra* is no valid text.
            Conflict: the dataset has nothing to show yet.

        Examples:
            >>> ds.report("pets.html").name
            'pets.html'
        """
        open_media(self._context, self.id)
        return View(self._context, self.id).report(path, level=level, extra=extra)

    def card(self) -> DatasetCard:
        """Return the card of the dataset as Markdown: counts, sizes, labels, issues, copies, licences.

        It is for a repository, and begins with the metadata that the Hugging Face Hub reads. Licences are the values of
        a custom field named ``license`` or ``licence``. Names and descriptions are shown as they are, whatever Markdown
        they contain.

        Raises:
            Conflict: the dataset has no index yet.

        Examples:
            >>> print(ds.card())
            ---
            size_categories:
            - n<1K
            ...
            # pets
            ...
        """
        media = open_media(self._context, self.id)
        state = PinnedView.of(self._context, self.id, (), media, objects=False)
        with self._context.catalog.read() as connection:
            record = datasets.find_dataset(connection, self.id)
        fields = [each.field_name for each in list_fields(self._context, self.id)]
        return card_of(record, read_embedding_config(self._context, self.id), state, fields)
