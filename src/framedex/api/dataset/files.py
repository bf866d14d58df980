"""Images and files of a dataset's media: pixels, thumbnails, JPEGs, and the files as they are."""

import numpy as np
import numpy.typing as npt

from framedex.browse.media_item import media_item
from framedex.core.checks import check_integer
from framedex.core.ids import objects_dataset
from framedex.images.reading import read_media_pixels
from framedex.images.thumbnails import (
    FULL_SIZE,
    SIZE,
    cached_thumbnail,
    read_thumbnail,
    thumbnail,
)
from framedex.images.video_scenes import video_scenes
from framedex.operations.context import Context, media_uris, open_media
from framedex.operations.edits import field_values
from framedex.operations.originals import MediaFile, open_original
from framedex.records import MediaItem, Scene
from framedex.render.progress import progress_bar
from framedex.storage.media import Media
from framedex.storage.objects import media_containing

_LARGEST = 4096
_QUALITY = 90


class DatasetFiles:
    """Images and files of a dataset's media."""

    _context: Context
    id: str

    def media_item(self, media_id: str) -> MediaItem:
        """Return all that is known of a media item or an object.

        Raises:
            NotFound: the dataset has no such item.

        Examples:
            >>> ds.media_item(ds.media_id("night.jpg")).issues
            [MediaIssue(issue_type='dark', confidence=0.9...)]
        """
        media = self._containing(media_id)
        values = [] if media.parents is not None else field_values(self._context, self.id, media_id)
        return media_item(media, media_id, field_values=values, uris=media_uris(self._context, media))

    def read(self, media_id: str) -> npt.NDArray[np.uint8]:
        """Return the pixels of an image, or the crop of an object: uint8, shape (H, W, 3), RGB, upright.

        Raises:
            NotFound: the media item or object does not exist, or its file is gone.
            CannotDecode: the file is not an image.

        Examples:
            >>> ds.read(ds.media_id("cat-1.jpg")).shape
            (120, 160, 3)
        """
        return read_media_pixels(self._containing(media_id), media_id, self._context.settings)

    def jpeg(self, media_id: str) -> bytes:
        """Return an image, a frame, or the crop of an object as a JPEG of full size, upright, without metadata.

        Images of more than 65,000 pixels on a side, which a JPEG cannot hold, are reduced.

        Raises:
            NotFound: the media item or object does not exist, or its file is gone.
            CannotDecode: the file is not an image.

        Examples:
            >>> from io import BytesIO
            >>> from PIL import Image
            >>> Image.open(BytesIO(ds.jpeg(ds.media_id("cat-1.jpg")))).size
            (160, 120)
        """
        return thumbnail(self.read(media_id), size=FULL_SIZE, quality=_QUALITY)

    def thumbnail(self, media_id: str, size: int = SIZE) -> bytes:
        """Return a JPEG of an image, or of the crop of an object, and keep it for the next time.

        Args:
            media_id: the media item or the object.
            size: the maximum length of the longer side in pixels, 16 to 4096.

        Raises:
            NotFound: the media item or object does not exist, or its file is gone.
            CannotDecode: the file is not an image.
            InvalidInput: the size is out of range.

        Examples:
            >>> from io import BytesIO
            >>> from PIL import Image
            >>> Image.open(BytesIO(ds.thumbnail(ds.media_id("cat-1.jpg"), size=64))).size
            (64, 48)
        """
        if (cached := self.cached_thumbnail(media_id, size)) is not None:
            return cached
        media = self._containing(media_id)
        folder, keep = self._context.layout.thumbnails(media.dataset_id), not self._context.catalog.read_only
        return read_thumbnail(media, media_id, self._context.settings, folder=folder, keep=keep, size=size)

    def cached_thumbnail(self, media_id: str, size: int = SIZE) -> bytes | None:
        """Return a thumbnail if it was made before, without decoding anything; None if it was not.

        Raises:
            InvalidInput: the size is out of range.

        Examples:
            >>> cat = ds.media_id("cat-1.jpg")
            >>> print(ds.cached_thumbnail(cat))
            None
            >>> jpeg = ds.thumbnail(cat)
            >>> ds.cached_thumbnail(cat) == jpeg
            True
        """
        check_integer("size", size, minimum=16, maximum=_LARGEST)
        folders = (self._context.layout.thumbnails(each) for each in (self.id, objects_dataset(self.id)))
        found = (cached_thumbnail(folder, media_id, size) for folder in folders)
        return next((each for each in found if each is not None), None)

    def open_file(self, media_id: str) -> MediaFile:
        """Open the file of a media item as it is: an image, the video of a frame, or the file that an object is in.

        Raises:
            NotFound: the item does not exist, its file is gone or may not be read, or a link leads to another file.
            Unavailable: the file is in a bucket that cannot be reached.

        Examples:
            >>> with ds.open_file(ds.media_id("cat-1.jpg")) as file:
            ...     file.name, file.format, len(file.content.read()) == file.size_bytes
            ('cat-1.jpg', 'jpeg', True)
        """
        return open_original(self._containing(media_id), media_id, self._context.settings)

    def scenes(self, media_id: str) -> list[Scene]:
        """Return the scenes of the video of a frame, in order, each with its times and the frames of the dataset in it.

        The video is decoded once, as at the creation of a dataset with ``scene_changes=True``, which samples the first
        frame of each scene; cuts between frames that look alike and slow fades are not seen.

        Args:
            media_id: any frame of the video.

        Raises:
            NotFound: the frame does not exist, or the file is gone.
            InvalidInput: it is an image, not a frame.
            CannotDecode: the video cannot be decoded.

        Examples:
            >>> [scene.n_frames for scene in ds.scenes(ds.media_id("clips/walk.mp4"))]
            [20]
        """
        with progress_bar("Finding scenes", late=True) as progress:
            return video_scenes(self._containing(media_id), media_id, self._context.settings, progress)

    def _containing(self, media_id: str) -> Media:
        return media_containing(open_media(self._context, self.id, early=True), media_id)
