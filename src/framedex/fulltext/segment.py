"""Segments: immutable parts of the index, with texts by their keys, a vocabulary, and postings."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.fulltext.tokenizer import GAP, fold, stems_of, words_in

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Keys:
    """Keys of texts: 128 bits of a hash of the text, plus the number of its field.

    Attributes:
        low, high: uint64, shape (N,): the two halves.
    """

    low: Hashes
    high: Hashes

    def __len__(self) -> int:
        return len(self.low)

    def __getitem__(self, selection: Any) -> "Keys":
        return Keys(self.low[selection], self.high[selection])

    def order(self) -> Longs:
        """Return the indices that sort the keys in ascending order."""
        order = np.argsort(self.low)
        low = self.low[order]
        if len(low) and (low[1:] == low[:-1]).any():  # sorting by both halves is slow, and rarely needed
            order = np.lexsort((self.high, self.low))
        return order

    def find(self, keys: "Keys") -> Longs:
        """Return the index of each of other keys among these, which ascend; -1 if it is absent.

        Args:
            keys: ascending by ``low``, which is several times as fast as any other order.
        """
        indices = np.full(len(keys), -1, dtype=np.int64)
        if not len(self):
            return indices
        position = np.searchsorted(self.low, keys.low)
        pending = np.arange(len(keys))
        while len(pending):
            at = np.minimum(position, len(self) - 1)
            same = self.low[at] == keys.low[pending]
            hit = same & (self.high[at] == keys.high[pending])
            indices[pending[hit]] = at[hit]
            again = same & ~hit & (position + 1 < len(self))  # another key with the same low half
            pending, position = pending[again], position[again] + 1
        return indices


@dataclass(frozen=True)
class Segment:
    """A part of the inverted index; its texts and words are numbered from 0.

    Attributes:
        keys: of the texts, ascending by (low, high).
        key_text: int32, shape (texts,): the text of each key.
        field: uint8, shape (texts,): the field of each text.
        length: int32, shape (texts,): the number of words of each text.
        word: string, the vocabulary, ascending by (folded, word).
        folded: string, the words without accents, which prefixes are compared with.
        stem: string, the stems of the words.
        stem_order: int32, shape (words,): the words in ascending order of their stems.
        start: int64, shape (words + 1,): the offsets of the postings of each word.
        text, position: int32, shape (postings,): ascending within each word.
    """

    keys: Keys
    key_text: Ints
    field: npt.NDArray[np.uint8]
    length: Ints
    word: pa.Array
    folded: pa.Array
    stem: pa.Array
    stem_order: Ints
    start: Longs
    text: Ints
    position: Ints

    def __len__(self) -> int:
        return len(self.length)

    def find(self, keys: Keys) -> Ints:
        """Return the number of the text of each key; -1 if it is absent.

        Args:
            keys: ascending by ``low``, which is several times as fast as any other order.
        """
        place = self.keys.find(keys)
        found = np.full(len(keys), -1, dtype=np.int32)
        found[place >= 0] = self.key_text[place[place >= 0]]
        return found

    def words_with_stem(self, stem: str) -> list[int]:
        """Return the words that have a stem."""

        def stem_at(place: int) -> Any:
            return self.stem[int(self.stem_order[place])].as_py()

        places = range(len(self.stem_order))
        first = bisect_left(places, stem, key=stem_at)
        last = bisect_right(places, stem, lo=first, key=stem_at)
        return sorted(self.stem_order[first:last].tolist())

    def words_with_prefix(self, prefix: str) -> range:
        """Return the words whose folded form has a prefix."""
        places, size = range(len(self.folded)), len(prefix)

        def beginning_at(place: int) -> Any:
            return self.folded[place].as_py()[:size]

        first = bisect_left(places, prefix, key=beginning_at)
        return range(first, bisect_right(places, prefix, lo=first, key=beginning_at))

    def count(self, words: Sequence[int]) -> int:
        """Return the number of postings of some words in all."""
        return sum(int(self.start[last + 1] - self.start[first]) for first, last in _runs(words))

    def occurrences(self, words: Sequence[int]) -> Longs:
        """Return the postings of some words: int64, text × 2³² + position, ascending."""
        pieces = []
        for first, last in _runs(words):
            span = slice(int(self.start[first]), int(self.start[last + 1]))
            pieces.append(self.text[span].astype(np.int64) << 32 | self.position[span])
        if not pieces:
            return np.empty(0, dtype=np.int64)
        found = np.concatenate(pieces)
        if len(words) > 1:
            found.sort()
        return found


def _runs(words: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and last number of each run of consecutive numbers, given ascending numbers."""
    if isinstance(words, range):
        return [(words[0], words[-1])] if words else []
    runs: list[tuple[int, int]] = []
    for word in words:
        if runs and runs[-1][1] == word - 1:
            runs[-1] = runs[-1][0], word
        else:
            runs.append((word, word))
    return runs


def build_segment(texts: pa.Array, fields: npt.NDArray[np.uint8], keys: Keys, language: str) -> Segment:
    """Return a segment of some texts.

    Args:
        texts: string, shape (N,), no nulls.
        fields: uint8, shape (N,): the field of each.
        keys: of each; all different.
        language: of the stemmer.
    """
    words, text, position = _words_by_text(texts, language)
    vocabulary, place = _sorted_vocabulary(_vocabulary(words.names, language))
    word = place[words.numbers]
    # By word; the order of the texts stays.
    order = np.sort(word.astype(np.int64) << 32 | np.arange(len(word))) & 0xFFFF_FFFF
    counts = np.bincount(word, minlength=len(place))
    length = np.bincount(text, minlength=len(texts)).astype(np.int32)
    return _assembled(keys, fields, length, vocabulary, counts, text[order], position[order])


def merge_segments(segments: Sequence[Segment], kept: Sequence[npt.NDArray[np.bool_]]) -> Segment:
    """Return one segment with the texts of several.

    Args:
        segments: at least one; no text is in two of them.
        kept: bool, shape (texts,), for each segment: which of its texts to keep.
    """
    parts = [_Part(segment, keep) for segment, keep in zip(segments, kept, strict=True)]
    vocabulary, places = _common_vocabulary(segments)
    counts = np.zeros(len(vocabulary), dtype=np.int64)
    for part, place in zip(parts, places, strict=True):
        counts[place] += part.counts
    free = np.cumsum(counts) - counts  # the offset of the next posting of each word
    text, position = (np.empty(int(counts.sum()), dtype=np.int32) for _ in range(2))
    texts = 0
    for part, place in zip(parts, places, strict=True):
        target = concat_ranges(free[place], part.counts)
        text[target], position[target] = part.text + texts, part.position
        free[place] += part.counts
        texts += len(part.length)
    selection = [
        np.concatenate(each) for each in zip(*((part.keys.low, part.keys.high) for part in parts), strict=True)
    ]
    field, length = (np.concatenate([getattr(part, name) for part in parts]) for name in ("field", "length"))
    return _assembled(Keys(*selection), field, length, vocabulary, counts, text, position)


class _Part:
    """The kept part of a segment in a merge: its texts are renumbered, and its keys are in the order of texts."""

    def __init__(self, segment: Segment, kept: npt.NDArray[np.bool_]) -> None:
        by_text = np.empty(len(segment), dtype=np.int64)
        by_text[segment.key_text] = np.arange(len(segment))
        self.keys = segment.keys[by_text[kept]]
        self.field, self.length = segment.field[kept], segment.length[kept]
        number = (np.cumsum(kept) - 1).astype(np.int32)
        stays = kept[segment.text]
        before = np.concatenate([[0], np.cumsum(stays)])
        self.counts = np.diff(before[segment.start])
        self.text, self.position = number[segment.text[stays]], segment.position[stays]


def _assembled(
    keys: Keys,
    field: npt.NDArray[np.uint8],
    length: Ints,
    vocabulary: pa.Table,
    counts: Longs,
    text: Ints,
    position: Ints,
) -> Segment:
    """Return a segment of texts in their order, with sorted words and postings.

    Args:
        keys: of each text.
        field: of each text.
        length: of each text.
        vocabulary: sorted words; words without postings are left out.
        counts: the number of postings of each word.
        text: of each posting.
        position: of each posting.
    """
    by_key, used = keys.order(), counts > 0
    vocabulary, counts = vocabulary.filter(pa.array(used)), counts[used]
    word, folded, stem = (vocabulary[name].combine_chunks() for name in ("word", "folded", "stem"))
    return Segment(
        keys=keys[by_key],
        key_text=by_key.astype(np.int32),
        field=field,
        length=length,
        word=word,
        folded=folded,
        stem=stem,
        stem_order=pc.sort_indices(stem).to_numpy().astype(np.int32),
        start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        text=text,
        position=position,
    )


@dataclass(frozen=True)
class _Words:
    """Dictionary-encoded tokens: distinct words, and the number of the word of each token."""

    names: pa.Array
    numbers: Ints


def _words_by_text(texts: pa.Array, language: str) -> tuple[_Words, Ints, Ints]:
    """Return the tokens of texts in order: their words, their texts, and their positions."""
    pieces = pc.ascii_split_whitespace(texts)
    encoded = pieces.flatten().dictionary_encode()
    names, parts, sizes = _words_of_pieces(encoded.dictionary, language)
    piece = encoded.indices.to_numpy(zero_copy_only=False)
    counts = sizes[piece]
    word = parts[concat_ranges((np.cumsum(sizes) - sizes)[piece], counts)]
    pieces_of = pc.list_value_length(pieces).to_numpy(zero_copy_only=False)
    text = np.repeat(np.repeat(np.arange(len(texts), dtype=np.int32), pieces_of), counts)
    started = np.searchsorted(text, np.arange(len(texts), dtype=np.int32))
    position = (np.arange(len(text)) - started[text]).astype(np.int32)
    gap = pc.index(names, pa.scalar(GAP, names.type)).as_py()
    is_word = word != gap
    return _Words(names, word[is_word]), text[is_word], position[is_word]


def _words_of_pieces(pieces: pa.Array, language: str) -> tuple[pa.Array, Ints, Longs]:
    """Return distinct words, the word numbers of all pieces of text in order, and the number of words of each piece."""
    is_simple = pc.ascii_is_alnum(pieces)  # most pieces are one ASCII word and need no tokenizing
    others = [words_in(piece, language) for piece in pieces.filter(pc.invert(is_simple)).to_pylist()]
    simple = is_simple.to_numpy(zero_copy_only=False)
    sizes = np.ones(len(pieces), dtype=np.int64)
    sizes[~simple] = [len(words) for words in others]
    flat = pa.array([word for words in others for word in words], pa.string())
    words = pa.chunked_array([pc.ascii_lower(pieces.filter(is_simple)), flat], pa.string())
    encoded = words.combine_chunks().dictionary_encode()
    number = encoded.indices.to_numpy(zero_copy_only=False)
    first = np.cumsum(sizes) - sizes
    parts = np.empty(len(number), dtype=np.int32)
    count = int(simple.sum())
    parts[first[simple]] = number[:count]
    parts[concat_ranges(first[~simple], sizes[~simple])] = number[count:]
    return encoded.dictionary, parts, sizes


def concat_ranges(first: Longs, counts: Longs) -> Longs:
    """Return the ranges [first, first + count) of all pairs, concatenated."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(first - (ends - counts), counts) + np.arange(total)


def _vocabulary(names: pa.Array, language: str) -> pa.Table:
    """Return words with their folded forms and stems."""
    accented = pc.invert(pc.string_is_ascii(names))
    folded = [fold(name) for name in names.filter(accented).to_pylist()]
    spelled = pc.invert(pc.ascii_is_decimal(names))  # digits have no stems
    stems = stems_of(names.filter(spelled).to_pylist(), language)
    return pa.table(
        {
            "word": names,
            "folded": pc.replace_with_mask(names, accented, pa.array(folded, pa.string())),
            "stem": pc.replace_with_mask(names, spelled, pa.array(stems, pa.string())),
        }
    )


def _sorted_vocabulary(vocabulary: pa.Table) -> tuple[pa.Table, Longs]:
    """Return words in the order of segments, and the new index of each."""
    order = pc.sort_indices(vocabulary, sort_keys=[("folded", "ascending"), ("word", "ascending")])
    place = np.empty(len(order), dtype=np.int64)
    place[order.to_numpy()] = np.arange(len(order))
    return vocabulary.take(order), place


def _common_vocabulary(segments: Sequence[Segment]) -> tuple[pa.Table, list[Longs]]:
    """Return the words of all segments, and the indices of the words of each segment among them."""
    words = pa.chunked_array([segment.word for segment in segments], pa.string()).combine_chunks()
    number = words.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    first = np.empty(int(number.max(initial=-1)) + 1, dtype=np.int64)
    first[number[::-1]] = np.arange(len(number))[::-1]  # the last assignment wins: the first occurrence
    columns = {
        "word": words,
        "folded": pa.chunked_array([segment.folded for segment in segments], pa.string()),
        "stem": pa.chunked_array([segment.stem for segment in segments], pa.string()),
    }
    vocabulary, place = _sorted_vocabulary(pa.table(columns).take(pa.array(first)))
    ends = np.cumsum([len(segment.word) for segment in segments])
    return vocabulary, np.split(place[number], ends[:-1])
