"""A dataset of a workspace, by subject."""

from framedex.api.dataset.dataset import Dataset

__all__ = ["Dataset"]
