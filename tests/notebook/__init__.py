"""Tests of the app in notebooks, without a browser."""
