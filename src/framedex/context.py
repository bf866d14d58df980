"""What is open: handed to everything that works on a dataset."""

from dataclasses import dataclass

from framedex.settings import Settings
from framedex.storage.catalog import Catalog
from framedex.storage.layout import Layout
from framedex.storage.sql import Sql
from framedex.tasks import Runner


@dataclass(frozen=True)
class Context:
    """The open parts of one workspace.

    Attributes:
        layout: where things lie.
        catalog: everything small and transactional.
        sql: the filter engine.
        runner: starts tasks.
        settings: limits and defaults.
    """

    layout: Layout
    catalog: Catalog
    sql: Sql
    runner: Runner
    settings: Settings
