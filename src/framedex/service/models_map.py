"""Answers about the map."""

from enum import StrEnum

from pydantic import BaseModel


class MapEntities(StrEnum):
    """The kinds of entities that a map can have as points."""

    IMAGES = "IMAGES"
    OBJECTS = "OBJECTS"


class MapColourNames(BaseModel):
    """The meaning of colours: the most frequent values with their counts, or the ends of a range of numbers."""

    names: list[tuple[str, int]]
    low: float | None
    high: float | None


class MapPlace(BaseModel):
    """The name of a cluster, null where nothing sets it apart, and its place in the coordinates of the map."""

    cluster_id: str
    name: str | None
    size: int
    x: float
    y: float


class MapLabels(BaseModel):
    """The names of the largest clusters of a level, largest first."""

    generation: str
    level: int
    labels: list[MapPlace]
