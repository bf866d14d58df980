"""The map of a dataset: a place in the plane for each media item, near those of its neighbours."""

import numpy as np
import pyarrow as pa

from framedex.errors import InvalidInput
from framedex.operations.context import Context, open_entities
from framedex.operations.maps import PlacedRows, has_map, map_in_memory, placed_rows, start_map
from framedex.operations.starting import wait_for
from framedex.records import EntityType
from framedex.render.progress import progress_bar
from framedex.storage.media import Media
from framedex.storage.objects import is_empty_object_view
from framedex.tasks import Task

_NAMES = pa.schema([("media_id", pa.string()), ("x", pa.float32()), ("y", pa.float32())])


class DatasetMaps:
    """The map of a dataset."""

    _context: Context
    id: str

    def map(self, entity_type: str = EntityType.IMAGES) -> pa.Table:
        """Return a place in the plane for each media item, so that media that look alike lie beside each other.

        The map follows from the neighbours of the index. It is made at the first call after an index, by a task that
        any process can watch or abort: 4 s for 20,000 media and 3 minutes for a million on two cores. It is kept until
        the next index, whose map begins with the places of this one, so that media stay about where they were.

        Args:
            entity_type: ``IMAGES`` for all media; ``OBJECTS``; or ``VIDEOS``, each at the mean place of its frames.

        Returns:
            A table in the order of ingestion: ``media_id`` (or the id of the video), and ``x`` and ``y``, float32,
            around 0; 1 is about the distance of neighbours. Media without an embedding, and those that
            the index does not have yet, are not in it.

        Raises:
            InvalidInput: the entity type is unknown.
            Conflict: the dataset has no index yet.
            Aborted: the task was aborted.

        Examples:
            >>> places = ds.map()
            >>> places.column_names, len(places)
            (['media_id', 'x', 'y'], 32)
        """
        objects = _is_of_objects(entity_type)
        media = open_entities(self._context, self.id, objects=objects)
        return _table(media, self._placed(media, objects=objects), entity_type)

    def start_map(self, entity_type: str = EntityType.IMAGES) -> Task:
        """Start to make the map and return the task, or the one that makes it already; see :meth:`map`.

        Raises:
            InvalidInput: the entity type is unknown.
            Conflict: the dataset has no index yet.
            ReadOnly: the workspace was opened for reading.

        Examples:
            >>> ds.start_map("OBJECTS").wait().status_message
            'done'
        """
        return start_map(self._context, self.id, objects=_is_of_objects(entity_type))

    def placed_media(self, *, objects: bool) -> tuple[Media, PlacedRows]:
        """Return the media of the present state, and those of them that are on the map.

        Raises:
            NotFound: no map was made of the present index.
            Conflict: the dataset has no index yet.

        Examples:
            >>> media, placed = ds.placed_media(objects=False)
            >>> placed.places.shape
            (32, 2)
        """
        media = open_entities(self._context, self.id, objects=objects)
        return media, placed_rows(self._context, media)

    def _placed(self, media: Media, *, objects: bool) -> PlacedRows:
        if is_empty_object_view(media) or has_map(self._context, media):
            return placed_rows(self._context, media)
        if self._context.catalog.read_only:
            with progress_bar("Map") as bar:
                report = (lambda _stage, _share: None) if bar is None else bar
                return map_in_memory(self._context, media, progress=lambda share: report("placing", share))
        wait_for(start_map(self._context, self.id, objects=objects), "Map")
        return placed_rows(self._context, media)


def stored_map(dataset: DatasetMaps, entity_type: str = EntityType.IMAGES) -> pa.Table:
    """Return the table of :meth:`DatasetMaps.map` without making the map.

    Raises:
        NotFound: no map was made of the present index.
        InvalidInput: the entity type is unknown.
        Conflict: the dataset has no index yet.
    """
    media, placed = dataset.placed_media(objects=_is_of_objects(entity_type))
    return _table(media, placed, entity_type)


def _is_of_objects(entity_type: str) -> bool:
    if entity_type not in list(EntityType):
        raise InvalidInput(f"entity_type must be one of {', '.join(EntityType)}, not {entity_type!r}")
    return entity_type == EntityType.OBJECTS


def _table(media: Media, placed: PlacedRows, entity_type: str) -> pa.Table:
    of_videos = entity_type == EntityType.VIDEOS
    if not len(placed.row_ids) or (of_videos and not media.has_videos):
        return _NAMES.empty_table()
    if of_videos:
        return _of_videos(media.values_at(placed.row_ids, "video_id"), placed)
    ids = media.values_at(placed.row_ids, "media_id")
    return pa.table([ids, *map(pa.array, placed.places.T)], schema=_NAMES)


def _of_videos(videos: pa.Array, placed: PlacedRows) -> pa.Table:
    """Return the mean place of the frames of each video."""
    coded = videos.dictionary_encode()
    held = ~np.asarray(coded.indices.is_null())
    number = np.asarray(coded.indices.fill_null(-1))
    count = len(coded.dictionary)
    size = np.bincount(number[held], minlength=count)
    means = (np.bincount(number[held], weights=axis[held], minlength=count) / size for axis in placed.places.T)
    return pa.table([coded.dictionary, *(pa.array(each.astype(np.float32)) for each in means)], schema=_NAMES)
