"""Datasets of other libraries made of views, for training."""
