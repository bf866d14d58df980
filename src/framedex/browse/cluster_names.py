"""Names of clusters: the most frequent labels, else the words that set the members apart from the other media.

The cost is bounded: words come from a sample of the members of each cluster on a page, and from one sample of all
media, whose words are kept in memory.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log
from typing import Any

import numpy as np

from framedex.browse.cluster_pages import ClusterPage
from framedex.core.arrays import RowIds
from framedex.core.forks import cached_property
from framedex.fulltext.tokenizer import stems_of, stop_words, words_in
from framedex.storage.column_keys import columns_key
from framedex.storage.media import EVERYTHING, Media

_MEMBERS = 16  # members of a cluster whose words are read
_OTHERS = 4096  # media of the dataset whose words are read
_MAX_CHARACTERS = 2000  # of a caption
_TOP_LABELS, _LABEL_SHARE = 3, 0.1  # labels in a name, and the share of members that each needs
_TOP_WORDS, _WORD_SHARE, _MIN_MEMBERS = 3, 0.3, 2  # words in a name, and the members that each needs
_TIMES = 2  # the least ratio of the shares of a word in the cluster and in the other media
_SIGNIFICANT = 10.83  # the 0.999 quantile of chi-squared with one degree of freedom
_COLUMNS = ("caption", "path")
# Letters, and after them a number: other words of file names are counters, dates and hashes.
_WORD = re.compile(r"([^\W\d_]+)\d*")
_MIN_LETTERS = 3  # of ASCII words; words of other scripts can be short
# Words of file names that cameras and programs give.
_GIVEN = frozenset(
    """
    copy dsc dscf dscn frame image images img mvimg photo photos pic pict pxl untitled
    """.split()  # noqa: SIM905 - a list of words is read more easily so
)
Labels = Mapping[Any, Sequence[tuple[str, int]]]


def cluster_names(media: Media, page: ClusterPage, labels: Labels, language: str) -> list[str | None]:
    """Return the names of the clusters of a page; None where nothing sets a cluster apart.

    A name consists of up to three labels that at least 10 % of the members have, with their shares. Clusters without
    such labels are named by up to three words of captions and file names. At least two members, and 30 % of them, have
    each of these words, twice the share of the other media of the dataset, and significantly more.

    Args:
        media: the media.
        page: the clusters.
        labels: by cluster number: the most frequent labels of the members and their counts, most frequent first.
        language: of captions.
    """
    names = [_label_name(labels.get(number, ()), size) for number, size in zip(page.numbers, page.sizes, strict=True)]
    unnamed = [
        place
        for place, name in enumerate(names)
        if name is None and page.sizes[place] >= _MIN_MEMBERS and not isinstance(page.numbers[place], str)
    ]
    if unnamed:
        for place, name in zip(unnamed, _word_names(media, page, unnamed, language), strict=True):
            names[place] = name
    return names


def _label_name(labels: Sequence[tuple[str, int]], size: int) -> str | None:
    """Return the most frequent labels with their shares; None without frequent labels."""
    frequent = [(label, count / size) for label, count in labels[:_TOP_LABELS] if count >= _LABEL_SHARE * size]
    return ", ".join(f"{label} {share:.0%}".replace("%", " %") for label, share in frequent) or None


def _word_names(media: Media, page: ClusterPage, places: Sequence[int], language: str) -> list[str | None]:
    """Return names by words for the clusters at some places of a page. Words with one stem count as one."""
    samples = [_spread(page.members(place), _MEMBERS) for place in places]
    rows = iter(_words_of(media, np.concatenate(samples), language))
    members = [list(islice(rows, len(sample))) for sample in samples]
    stem_of = _stem_by_word([words for cluster in members for words in cluster], language)
    everywhere = _sample(media, language)
    numbers = media.take(everywhere.row_ids.tolist(), [page.level], keep=True).column(0).to_pylist()
    inside: dict[Any, list[frozenset[str]]] = {page.numbers[place]: [] for place in places}
    for number, stems in zip(numbers, everywhere.stems, strict=True):
        if number in inside:
            inside[number].append(stems)
    names = []
    for place, cluster in zip(places, members, strict=True):
        own = inside[page.numbers[place]]
        own_counts, others = Counter(stem for stems in own for stem in stems), len(everywhere.stems) - len(own)
        counts = Counter(stem for words in cluster for stem in {stem_of[word] for word in words})
        least = max(_MIN_MEMBERS, _WORD_SHARE * len(cluster))
        scores = {}
        for stem, count in counts.items():
            other_count = everywhere.counts[stem] - own_counts[stem]
            if count >= least and count * others >= _TIMES * len(cluster) * other_count:
                scores[stem] = _log_likelihood(count, len(cluster), other_count, others)
        best = sorted((stem for stem in scores if scores[stem] >= _SIGNIFICANT), key=lambda stem: (-scores[stem], stem))
        names.append(", ".join(_most_frequent_form(stem, cluster, stem_of) for stem in best[:_TOP_WORDS]) or None)
    return names


def _most_frequent_form(stem: str, cluster: Sequence[frozenset[str]], stem_of: Mapping[str, str]) -> str:
    """Return the word with a stem that most members have."""
    counts = Counter(word for words in cluster for word in words if stem_of[word] == stem)
    return min(counts, key=lambda word: (-counts[word], word))


def _stem_by_word(rows: Sequence[frozenset[str]], language: str) -> dict[str, str]:
    words = sorted(frozenset().union(*rows))
    return dict(zip(words, stems_of(words, language), strict=True))


def _log_likelihood(count: int, members: int, other_count: int, others: int) -> float:
    """Return the log-likelihood ratio of a word for a cluster against the other media; 0 if it is no more frequent.

    This is G² of T. Dunning, "Accurate methods for the statistics of surprise and coincidence", 1993, for two binomial
    samples: the members with the word, and the other media with the word. It is reliable for rare words, too.
    """
    if not others or count * others <= other_count * members:
        return 0.0
    share = (count + other_count) / (members + others)
    cells = (
        (count, members * share),
        (members - count, members * (1 - share)),
        (other_count, others * share),
        (others - other_count, others * (1 - share)),
    )
    return 2 * sum(seen * log(seen / expected) for seen, expected in cells if seen)


@dataclass(frozen=True)
class _Sample:
    """Stems of the words of a sample of all media of a dataset.

    Attributes:
        row_ids: uint64, shape (N,): the sampled rows.
        stems: of each row.
    """

    row_ids: RowIds
    stems: list[frozenset[str]]

    @cached_property
    def counts(self) -> Counter[str]:
        """The number of rows by stem."""
        return Counter(stem for stems in self.stems for stem in stems)

    @property
    def nbytes(self) -> int:
        """An estimate of the bytes in memory."""
        return 100 * sum(len(stems) + 3 for stems in self.stems)


def _sample(media: Media, language: str) -> _Sample:
    """Return a sample of all media, spread over their order, from memory if possible."""

    def read() -> _Sample:
        row_ids = _spread(media.row_ids(EVERYTHING), _OTHERS)
        rows = _words_of(media, row_ids, language)
        stem_of = _stem_by_word(rows, language)
        return _Sample(row_ids, [frozenset(stem_of[word] for word in words) for words in rows])

    if media.columns is None or not media.columns.is_on:
        return read()
    sample: _Sample = media.columns.hold(("words", language, columns_key(media.table, _COLUMNS)), read)
    return sample


def _spread(row_ids: RowIds, count: int) -> RowIds:
    """Return at most *count* rows, at equal distances."""
    if len(row_ids) <= count:
        return row_ids
    return row_ids[np.arange(count) * len(row_ids) // count]


def _words_of(media: Media, row_ids: RowIds, language: str) -> list[frozenset[str]]:
    """Return the words of the caption and the file name of each row, without stop words and numbers."""
    if not len(row_ids):
        return []
    order, inverse = np.unique(row_ids, return_inverse=True)
    rows = media.take(order.tolist(), _COLUMNS)
    captions, paths = (rows.column(name).to_pylist() for name in _COLUMNS)
    stopped = stop_words(language) | _GIVEN
    words = []
    for caption, path in zip(captions, paths, strict=True):
        text = _stem_of_file(path or "").replace("_", " ")
        if caption:
            text = f"{caption[:_MAX_CHARACTERS]} {text}"
        usable = {_usable(word) for word in words_in(text, language)}
        words.append(frozenset(word for word in usable if word is not None and word not in stopped))
    return [words[place] for place in inverse.tolist()]


def _usable(word: str) -> str | None:
    """Return a word without a number at its end; None for numbers, mixtures of both, and short words."""
    if not word.isalpha():
        if word.isdigit() or (match := _WORD.fullmatch(word)) is None:
            return None
        word = match[1]
    return word if len(word) >= _MIN_LETTERS or not word.isascii() else None


def _stem_of_file(path: str) -> str:
    """Return the name of a file without its ending."""
    name = path[path.rfind("/") + 1 :]
    end = name.rfind(".")
    return name[:end] if end > 0 else name
