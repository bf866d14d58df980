"""Opening the app of a dataset or of a view."""

from enum import StrEnum
from typing import Any

from framedex.api.dataset import Dataset
from framedex.api.view import View
from framedex.core.checks import check_integer
from framedex.errors import InvalidInput, MissingDependency, Unavailable
from framedex.notebook.addresses import address_of
from framedex.web import BUILD_HINT, AppPages

_MOST_PX = 10_000


class Mode(StrEnum):
    """Way in which the app reaches its service."""

    WIDGET = "widget"
    SERVER = "server"


def open_app(view: View, *, height: int, mode: str, shows_findings: bool = False) -> Any:
    """Return the app that shows a view: a widget, or a page of a server.

    Args:
        view: what is shown first.
        height: of the app, in CSS pixels.
        mode: ``widget`` or ``server``.
        shows_findings: whether the findings of the dataset are shown first, and not its images.

    Raises:
        InvalidInput: the height is no integer from 1 to 10,000, there is no such mode, or the view cannot be shown.
        MissingDependency: the extra ``notebook`` is not installed.
        Unavailable: the app was not built.
        NotFound: the dataset was deleted.
    """
    check_integer("height", height, minimum=1, maximum=_MOST_PX)
    if mode not in list(Mode):
        raise InvalidInput(f"mode must be {' or '.join(repr(each.value) for each in Mode)}, not {mode!r:.80}")
    if not AppPages().exist:
        raise Unavailable(BUILD_HINT)
    dataset = Dataset(view._context, view._dataset_id)
    dataset.info  # noqa: B018 - raises for a dataset that was deleted
    address = f"/d/{dataset.id}" if shows_findings else address_of(view)
    try:
        if mode == Mode.SERVER:
            from framedex.notebook.served import ServedApp

            return ServedApp(dataset, address, height)
        from framedex.notebook.widget import AppWidget
    except ImportError as error:
        if isinstance(error, MissingDependency):
            raise
        raise MissingDependency(f"app needs {error.name}: pip install 'framedex[notebook]'") from None
    return AppWidget(dataset, address, height)
