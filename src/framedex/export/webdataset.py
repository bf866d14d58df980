"""The export as WebDataset: tar files (shards) in which the files of a sample share a key.

Keys are numbers, so that no name has a dot, at which readers part the key from the suffix. The JSON file of a sample
has its name.
"""

import json
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from framedex.annotations.progress import part
from framedex.core.progress import ShareProgress
from framedex.export.annotation_files import objects_left_out
from framedex.export.contents import ExportContents
from framedex.export.images import CopyResult
from framedex.export.samples import Sample, class_names, has_captions, has_one_label, parts_of, samples
from framedex.export.zip_writer import Member, ZipWriter

FILES = ("<part>-000000.tar", "classes.json")
_ALL = "data"  # the name of the only part
_SHARD_BYTES = 512 * 2**20
_SHARD_SAMPLES = 10_000
_BLOCK = tarfile.BLOCKSIZE
_LACKING = ("truncated", "difficult", "attributes", "segmentation", "keypoints")


def write_shards(archive: ZipWriter, contents: ExportContents, progress: ShareProgress) -> tuple[CopyResult, list[str]]:
    """Write the shards of each part, and the class list; return the counts of the images.

    A sample has the image, ``.json`` with all that is known of it, ``.cls`` with the number of its class if each image
    of the export has one label, and ``.txt`` with its caption if some image has one.
    """
    classes = class_names(contents)
    archive.add("classes.json", json.dumps(classes, ensure_ascii=False).encode())
    kinds = _Kinds(classes, with_class=has_one_label(contents), with_caption=has_captions(contents))
    copied, done = CopyResult(), 0
    for name, own in parts_of(contents):
        share = part(progress, done / max(contents.total, 1), (done + own.total) / max(contents.total, 1))
        with ExitStack() as opened:
            _write_part(archive, name or _ALL, kinds, samples(own, copied, share), opened)
        done += own.total
    notes = [] if kinds.with_class or contents.boxes_only else ["samples have no .cls: not each image has one label"]
    return copied, notes + objects_left_out(contents, _LACKING, "WebDataset")


class _Kinds:
    """The files of a sample beside the image, the same for all samples, as readers expect."""

    def __init__(self, classes: list[str], *, with_class: bool, with_caption: bool) -> None:
        self._numbers = {name: number for number, name in enumerate(classes)}
        self.with_class, self._with_caption = with_class, with_caption

    def files_of(self, sample: Sample) -> Iterator[tuple[str, bytes]]:
        """Yield (suffix, content) of each file of a sample."""
        yield sample.suffix, sample.data
        about: dict[str, Any] = {"file_name": sample.name, **sample.about}
        yield "json", json.dumps(about, ensure_ascii=False).encode("utf-8", "replace")
        if self.with_class:
            yield "cls", str(self._numbers[sample.about["labels"][0]]).encode()
        if self._with_caption:
            yield "txt", (sample.about["caption"] or "").encode()


def _write_part(archive: ZipWriter, name: str, kinds: _Kinds, found: Iterator[Sample], opened: ExitStack) -> None:
    shard, tar, size = 0, None, 0
    for number, sample in enumerate(found):
        if tar is None or size >= _SHARD_BYTES or number % _SHARD_SAMPLES == 0:
            _end(tar)
            opened.close()
            tar, size = opened.enter_context(archive.member(f"{name}-{shard:06}.tar")), 0
            shard += 1
        for suffix, data in kinds.files_of(sample):
            size += _add(tar, f"{number:09}.{suffix}", data)
    _end(tar)


def _add(tar: Member, name: str, data: bytes) -> int:
    """Append a file to a tar file; return its size there."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), 0o644
    tar.write(entry.tobuf(tarfile.USTAR_FORMAT))
    tar.write(data)
    filling = -len(data) % _BLOCK
    tar.write(bytes(filling))
    return _BLOCK + len(data) + filling


def _end(tar: Member | None) -> None:
    if tar is not None:
        tar.write(bytes(2 * _BLOCK))
