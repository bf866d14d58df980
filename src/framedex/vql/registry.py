"""The keys of the language. A key is a module of :mod:`framedex.vql.keys`, named here: its test and its function."""

from framedex.vql.key_test import KeyTest
from framedex.vql.keys.batch import BatchTest, batch
from framedex.vql.keys.cluster import ClusterTest, cluster
from framedex.vql.keys.confidence import ConfidenceTest, confidence
from framedex.vql.keys.content import ContentTest, content
from framedex.vql.keys.date_added import DateAddedTest, date_added
from framedex.vql.keys.duplicates import DuplicatesTest, duplicates
from framedex.vql.keys.field import FieldTest, field
from framedex.vql.keys.file_name import FileNameTest, file_name
from framedex.vql.keys.folder import FolderTest, folder
from framedex.vql.keys.ids import IdsTest, ids
from framedex.vql.keys.issues import IssuesTest, issues
from framedex.vql.keys.labels import LabelsTest, labels
from framedex.vql.keys.map_region import MapRegionTest, map_region
from framedex.vql.keys.media import MediaTest, media
from framedex.vql.keys.missing import MissingTest, missing
from framedex.vql.keys.objects import ObjectsTest, objects
from framedex.vql.keys.quality import QualityTest, quality
from framedex.vql.keys.similarity import SimilarityTest, similarity
from framedex.vql.keys.size import SizeTest, size
from framedex.vql.keys.source import SourceTest, source
from framedex.vql.keys.tags import TagsTest, tags
from framedex.vql.keys.text import TextTest, text
from framedex.vql.keys.uniqueness import UniquenessTest, uniqueness

__all__ = [
    "batch",
    "cluster",
    "confidence",
    "content",
    "date_added",
    "duplicates",
    "field",
    "file_name",
    "folder",
    "ids",
    "issues",
    "labels",
    "map_region",
    "media",
    "missing",
    "objects",
    "quality",
    "similarity",
    "size",
    "source",
    "tags",
    "text",
    "uniqueness",
]
TESTS: tuple[type[KeyTest], ...] = (
    TextTest,
    SimilarityTest,
    LabelsTest,
    TagsTest,
    IssuesTest,
    QualityTest,
    ContentTest,
    DuplicatesTest,
    ClusterTest,
    UniquenessTest,
    FieldTest,
    FileNameTest,
    FolderTest,
    IdsTest,
    MediaTest,
    MissingTest,
    SizeTest,
    DateAddedTest,
    BatchTest,
    ObjectsTest,
    ConfidenceTest,
    SourceTest,
    MapRegionTest,
)
"""The test of each key, in the order of the documents."""
KEYS = {test.key: test for test in TESTS}
"""Tests by key."""
COMBINATIONS = ("any", "not")
"""The keys of elements that hold others."""
