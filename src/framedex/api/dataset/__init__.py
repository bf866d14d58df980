"""The class Dataset, assembled from one module for each subject."""

from framedex.api.dataset.dataset import Dataset

__all__ = ["Dataset"]
