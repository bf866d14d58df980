"""The classes View, RankedView, DiverseView and Basket, assembled from one module for each subject."""

from framedex.api.view.basket import Basket
from framedex.api.view.browsing import ExploreSearch
from framedex.api.view.pinned import PinnedView
from framedex.api.view.reading import SCORES
from framedex.api.view.view import DiverseView, RankedView, View, check_media, selected_ids

__all__ = [
    "SCORES",
    "Basket",
    "DiverseView",
    "ExploreSearch",
    "PinnedView",
    "RankedView",
    "View",
    "check_media",
    "selected_ids",
]
