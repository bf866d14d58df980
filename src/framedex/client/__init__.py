"""A client of a Framedex service: the names of the library, over HTTP. It needs the extra ``client``."""

from framedex.client.client import Client
from framedex.client.comparison import ClientComparison
from framedex.client.dataset import ClientDataset
from framedex.client.notifications import ClientNotifications
from framedex.client.people import ClientAdminSettings, ClientTenants, ClientUsers
from framedex.client.saved_views import ClientSavedView
from framedex.client.view import ClientView
from framedex.client.work import ClientExport, ClientTask

__all__ = [
    "Client",
    "ClientAdminSettings",
    "ClientComparison",
    "ClientDataset",
    "ClientExport",
    "ClientNotifications",
    "ClientSavedView",
    "ClientTask",
    "ClientTenants",
    "ClientUsers",
    "ClientView",
]
