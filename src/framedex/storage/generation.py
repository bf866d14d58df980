"""Generations of a dataset: the versions of tables that belong together, and the summary stored with them."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer

from framedex.core.assumed_roles import AssumedRole
from framedex.records import DatasetStatus, EmbeddingConfig, Record, Weights


def of_label(issue_type: str, label: str) -> str:
    """Return the name of the limit that a label has of its own; no issue type has such a name."""
    return f"{issue_type}:{label}"


def limits_of_labels(thresholds: Mapping[str, float | None], issue_type: str) -> dict[str, float]:
    """Return the limits of an issue type that labels have of their own, by label."""
    start = of_label(issue_type, "")
    return {
        name.removeprefix(start): limit
        for name, limit in thresholds.items()
        if limit is not None and name.startswith(start)
    }


class IndexSummary(BaseModel):
    """The numbers of an index that later additions and deletions continue.

    Only values that were set are stored. Keys of newer versions are kept as they are, so that a dataset that this
    version changes loses nothing.

    Attributes:
        issue_thresholds: the limit of each issue that the dataset itself determines, by the name of the issue, in the
            unit of its measure; None for an infinite limit. Empty before the first index. Labels with a limit of their
            own have it by :func:`of_label`.
        uniqueness_scale: the cosine distance that has uniqueness 1.
        first_free: the least number that was never used, by the column of clusters or duplicate groups. Numbers below
            it are never used again, so ids stay unique.
        settled: the number of first rows that were clustered together; the rows behind them joined later. None for all
            rows.
        reach: the difference of similarities within which a row looks into cells for its neighbours. None for an index
            without cells.
        label_agreement: the share of labels, 0 to 1, that agree with those of the neighbours; a low one gives
            mislabels a warning. None if there is nothing to compare.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    issue_thresholds: dict[str, float | None] = {}
    uniqueness_scale: float = 0.0
    first_free: dict[str, int] = {}
    settled: int | None = None
    reach: float | None = None
    label_agreement: float | None = None

    def with_(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields.

        Raises:
            TypeError: a name is not a field.
        """
        unknown = changes.keys() - type(self).model_fields.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {sorted(unknown)[0]!r}")
        return type(self).model_validate(self._stored() | changes)

    def with_index(self, index: "IndexSummary") -> Self:
        """Return a copy with the values of another index, as far as they are set there."""
        return type(self).model_validate(self._stored() | index._stored())

    def _stored(self) -> dict[str, Any]:
        """Return the values that were set, by key, with those of newer versions."""
        return {name: value for name, value in self if name in self.model_fields_set}

    @model_serializer(mode="wrap")
    def _serialized(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if name in self.model_fields_set}


class ObjectSummary(IndexSummary):
    """The summary of a dataset's objects.

    Attributes:
        n_objects: the number of objects.
    """

    n_objects: int = 0


class SourceFolder(BaseModel):
    """A folder or a prefix of a bucket that was added as a whole, so that new files in it belong to the dataset.

    Attributes:
        root: the number of its source root.
        path: its path below that root; empty for the root itself.
        class_folders: whether the folders in it are classes; None to decide.
        interpolate: whether boxes between key frames of tracks in it are read, too.
    """

    model_config = ConfigDict(frozen=True)

    root: int
    path: str = ""
    class_folders: bool | None = None
    interpolate: bool = False


class Summary(IndexSummary):
    """The values stored with a generation beside its tables, as a JSON object.

    Attributes:
        partial: whether rows joined the index since all rows were last indexed together.
        early: whether these are the rows that a creation has read so far, without an index.
        n_videos: the number of videos.
        n_of_videos: the number of media that are frames of videos.
        objects: the summary of the objects; None if the dataset never had objects.
        skipped: the number of files and annotations that the last addition left out, by reason.
        examples: the first examples of what the last addition left out, by reason.
        layout: what was recognised of the source of the last addition, and what was not, a line each.
        batches: the number of additions, the creation included.
        added_at: the time of an addition, ISO 8601 in UTC, by the number of its batch in decimal digits. Batches of
            older versions have no time.
        roles: the ARN of the role to assume for a source root in a bucket, by the number of the root in decimal digits.
        external_ids: the external id with which that role is assumed, by the same number, if there is one.
        namespace: the id of the dataset from which media ids are computed; None for the dataset's own id. A clone has
            that of its source.
        next_numbers: the least number of a tag or field that was never used, by the table of definitions.
        enrichment_models: the ids of the applied models, by type of enrichment.
        folders: the folders that were added as a whole; None in generations of older versions, where that is unknown.
        limits: the limits that users set, by issue type, for media and objects alike; other types have the limits of
            ``issue_thresholds``.
        captioned_by: the weights of the captioner that wrote captions last.
        objects_captioned_by: the weights of the captioner that wrote captions of objects last.
    """

    partial: bool = False
    early: bool = False
    n_videos: int = 0
    n_of_videos: int = 0
    objects: ObjectSummary | None = None
    skipped: dict[str, int] = {}
    examples: dict[str, list[str]] = {}
    layout: list[str] = []
    batches: int = 1
    added_at: dict[str, str] = {}
    roles: dict[str, str] = {}
    external_ids: dict[str, str] = {}
    namespace: str | None = None
    next_numbers: dict[str, int] = {}
    enrichment_models: dict[str, str] = {}
    folders: list[SourceFolder] | None = None
    limits: dict[str, float] = {}
    captioned_by: Weights | None = None
    objects_captioned_by: Weights | None = None

    def default_limit(self, issue_type: str, default: float | None = None) -> float | None:
        """Return the limit of an issue type that no user set; None if it is infinite.

        Args:
            issue_type: the name of the type.
            default: the limit of a type that the index does not know.
        """
        return self.issue_thresholds.get(issue_type, default)

    def limit(self, issue_type: str, default: float | None = None) -> float | None:
        """Return the limit of an issue type, which a user set or else :meth:`default_limit` returns."""
        return self.limits.get(issue_type, self.default_limit(issue_type, default))

    def limits_of_labels(self, issue_type: str) -> dict[str, float]:
        """Return the limits of an issue type that labels have of their own; none where a user set one for all."""
        return {} if issue_type in self.limits else limits_of_labels(self.issue_thresholds, issue_type)

    def role_of(self, root: int | None) -> AssumedRole | None:
        """Return the role to assume for reading from a source root; None for no role."""
        number = str(root)
        return AssumedRole(self.roles[number], self.external_ids.get(number)) if number in self.roles else None

    def with_role(self, root: int, role: AssumedRole) -> Self:
        """Return a copy with the role to assume for reading from a source root."""
        number = str(root)
        external_ids = {each: value for each, value in self.external_ids.items() if each != number}
        if role.external_id is not None:
            external_ids[number] = role.external_id
        changed = self.with_(roles={**self.roles, number: role.arn})
        return changed if external_ids == self.external_ids else changed.with_(external_ids=external_ids)

    def with_roles_of(self, other: "Summary") -> Self:
        """Return a copy with the roles of another summary."""
        return self.with_(roles=dict(other.roles), external_ids=dict(other.external_ids))

    def with_folder(self, folder: SourceFolder) -> Self:
        """Return a copy with a folder that was added as a whole, in the place of one at the same path."""
        others = [each for each in self.folders or [] if (each.root, each.path) != (folder.root, folder.path)]
        return self.with_(folders=[*(each.model_dump() for each in others), folder.model_dump()])

    def assumed_roles(self) -> set[AssumedRole]:
        """Return the roles to assume for reading from all source roots."""
        return {role for number in self.roles if (role := self.role_of(int(number)))}

    def of_objects(self) -> Self:
        """Return a copy with the index of the objects in the place of that of the media."""
        return self if self.objects is None else self.with_(label_agreement=None).with_index(self.objects)


class Generation(Record):
    """The versions of a dataset's tables that belong together, and the summary stored with them.

    ``n_images`` counts all media, frames of videos included.
    """

    id: str
    dataset_id: str
    tables: dict[str, int]
    n_images: int
    created_at: datetime
    summary: Summary
    embedding_config: EmbeddingConfig | None = None

    @property
    def status(self) -> DatasetStatus:
        """The status of a dataset that has this head and no task under way."""
        return DatasetStatus.PARTIAL_INDEX if self.summary.partial else DatasetStatus.READY

    @property
    def n_videos(self) -> int:
        """The number of videos."""
        return self.summary.n_videos

    @property
    def n_objects(self) -> int:
        """The number of objects."""
        of_objects = self.summary.objects
        return of_objects.n_objects if of_objects is not None and "objects" in self.tables else 0

    @property
    def n_still_images(self) -> int:
        """The number of media that are not frames of videos."""
        return self.n_images - self.summary.n_of_videos
