"""Neighbours reveal wrong labels, and items that are unlike the others of their label."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.label_entries import Labels
from framedex.analysis.labels import LabelQuality, label_quality
from framedex.analysis.neighbours import nearest, unique_rows
from framedex.errors import InvalidInput
from framedex.issue_types.labels import MISLABEL_LIMIT, OUTLIER_LIMIT
from tests.analysis.arrays import Vectors, clustered, uniform, unit
from tests.laws import examples
from tests.tuning import Tuning

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]


def labels_of(items: Sequence[Sequence[int]], count: int | None = None) -> Labels:
    """Return labels from a list of labels per item."""
    codes = np.array([code for item in items for code in item], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, items)], dtype=np.int64)
    return Labels(codes, offsets, int(codes.max(initial=-1)) + 1 if count is None else count)


def single(codes: npt.NDArray[np.integer]) -> Labels:
    """Return labels from one label per item."""
    return labels_of([[int(code)] for code in codes])


def quality_of(vectors: Vectors, labels: Labels, *, k: int = 20) -> LabelQuality:
    """Return the label quality."""
    first, inverse = unique_rows(vectors)
    return label_quality(nearest(vectors[first], k=k), inverse, labels)


def mislabelled(quality: LabelQuality) -> list[int]:
    """Return the items with a mislabel issue."""
    return np.flatnonzero(np.isfinite(quality.mislabel_confidence)).tolist()


def outliers(quality: LabelQuality) -> list[int]:
    """Return the items with a label outlier issue."""
    return np.flatnonzero(np.isfinite(quality.outlier_confidence)).tolist()


@pytest.mark.parametrize("judged", [0, 1, 40, 90])
def test_label_quality__of_the_first_rows(judged: int) -> None:
    """Items of the first distinct rows have the results that they have among all, while the others only vote."""
    random, (vectors, _) = np.random.default_rng(3), groups()
    vectors[7], vectors[100:103] = vectors[2], vectors[5]  # copies
    first, inverse = unique_rows(vectors)
    graph, labels = (
        nearest(vectors[first], k=20),
        labels_of([random.integers(4, size=n % 3).tolist() for n in range(120)]),
    )
    all_ = label_quality(graph, inverse, labels)
    judge = partial(label_quality, graph, inverse, labels, agreement=1.0, statistics=all_.statistics)
    expected, found, is_judged = judge(), judge(judged=judged), inverse < judged
    for name in ("support", "mislabel_confidence", "suggested", "distance", "outlier_confidence"):
        values, others = getattr(found, name), getattr(expected, name)
        np.testing.assert_array_equal(values[is_judged], others[is_judged], err_msg=name)
        assert not (values[~is_judged] >= 0).any(), name


def groups(count: int = 4, members: int = 30, *, spread: float = 0.4) -> tuple[Vectors, Codes]:
    """Return vectors around some centres, and the number of each vector's centre."""
    random = np.random.default_rng(7)
    true = np.repeat(np.arange(count, dtype=np.int32), members)
    noise = random.normal(size=(len(true), 32)) * spread / np.sqrt(32)
    return unit(uniform(count, 32, seed=1)[true] + noise), true


def digits() -> tuple[Vectors, Codes]:
    """Return scikit-learn's digits."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return unit(data.data), data.target.astype(np.int32)


def flipped(true: Codes, share: float, *, seed: int = 0) -> tuple[Codes, Mask]:
    """Return labels with a share of them replaced by other labels, and the positions of these."""
    random = np.random.default_rng(seed)
    wrong = np.zeros(len(true), dtype=bool)
    wrong[random.choice(len(true), round(share * len(true)), replace=False)] = True
    count = int(true.max()) + 1
    return np.where(wrong, (true + random.integers(1, count, len(true))) % count, true).astype(np.int32), wrong


def test_mislabels__wrong_labels_are_found_and_corrected() -> None:
    """In clear groups exactly the wrong labels are issues, and the right labels are suggested."""
    vectors, true = groups()
    given_, wrong = flipped(true, 0.05)
    quality = quality_of(vectors, single(given_))
    assert mislabelled(quality) == np.flatnonzero(wrong).tolist()
    assert quality.suggested[wrong].tolist() == true[wrong].tolist()
    assert set(quality.suggested[~wrong]) == {-1}
    assert quality.support[wrong].max() < MISLABEL_LIMIT < 0.5 < quality.support[~wrong].min()


@pytest.mark.slow
def test_mislabels__digits_are_ranked_as_well_as_by_a_classifier() -> None:
    """Nearly all of 5 % wrong labels of real digits have less support than right ones (cleanlab 2.9.0: 0.9986)."""
    from sklearn.metrics import roc_auc_score

    vectors, true = digits()
    labels, wrong = flipped(true, 0.05)
    quality = quality_of(vectors, single(labels))
    assert roc_auc_score(wrong, -quality.support) > 0.9986
    found = np.isfinite(quality.mislabel_confidence)
    assert wrong[found].mean() > 0.9
    assert found[wrong].mean() > 0.95


@pytest.mark.slow
def test_labels__right_labels_are_hardly_ever_issues() -> None:
    """With right labels, about one in a hundred at most is an issue or an outlier."""
    vectors, true = digits()
    quality = quality_of(vectors, single(true))
    assert len(mislabelled(quality)) < 0.005 * len(true)
    assert len(outliers(quality)) < 0.015 * len(true)


@pytest.mark.slow
def test_mislabels__confidence_rises_as_support_falls() -> None:
    """Issues have a confidence from 0.5 to 1, which is higher for wrong labels than for false positives."""
    vectors, true = digits()
    labels, wrong = flipped(true, 0.05)
    quality = quality_of(vectors, single(labels))
    issue = np.isfinite(quality.mislabel_confidence)
    sure = quality.mislabel_confidence[issue]
    assert np.all((sure >= 0.5) & (sure <= 1))
    assert np.median(sure[wrong[issue]]) > np.median(sure[~wrong[issue]]) + 0.1
    assert np.all(quality.support[issue] < MISLABEL_LIMIT)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 15])
@pytest.mark.parametrize("k", [0, 1, 20])
@pytest.mark.parametrize("kind", ["equal", "different", "none"])
def test_labels__nothing_to_compare(count: int, k: int, kind: str) -> None:
    """Few items, no neighbours, and labels that are equal, different or missing give no issue and no warning."""
    own: dict[str, list[list[int]]] = {"equal": [[0]] * count, "different": [[code] for code in range(count)]}
    quality = quality_of(uniform(count, 8), labels_of(own.get(kind, [[]] * count)), k=k)
    assert mislabelled(quality) == outliers(quality) == []
    assert quality.suggested.tolist() == [-1] * count
    assert quality.support.shape == quality.distance.shape == (count,)


@pytest.mark.parametrize("kinds", [2, 10, 100])
def test_labels__unrelated_labels_are_no_issues(kinds: int) -> None:
    """Labels that are unrelated to the vectors disagree with the neighbours, and are no issues."""
    labels = np.random.default_rng(kinds).integers(0, kinds, 1000)
    quality = quality_of(clustered(1000, 16), single(labels))
    assert mislabelled(quality) == outliers(quality) == []


@pytest.mark.parametrize("share", [0.2, 0.3])
def test_mislabels__are_listed_at_any_noise(share: float) -> None:
    """In clear groups the wrong labels are ranked first and most are listed, however many are wrong."""
    vectors, true = groups(6, 40)
    labels, wrong = flipped(true, share)
    quality = quality_of(vectors, single(labels))
    assert quality.support[wrong].max() < quality.support[~wrong].min()
    listed = mislabelled(quality)
    assert wrong[listed].all()
    assert len(listed) > 0.7 * wrong.sum()
    assert quality.suggested[listed].tolist() == true[listed].tolist()


def test_agreement__of_an_earlier_index_is_kept() -> None:
    """The agreement that an earlier index found is returned, and changes nothing else."""
    vectors, true = groups()
    labels, wrong = flipped(true, 0.05)
    first, inverse = unique_rows(vectors)
    quality = label_quality(nearest(vectors[first]), inverse, single(labels), agreement=0.1)
    assert (quality.agreement, mislabelled(quality)) == (0.1, np.flatnonzero(wrong).tolist())


def test_agreement__is_the_share_of_labels_that_neighbours_support() -> None:
    """In clear groups the agreement is the share of right labels; labels too rare to be suggested have none."""
    vectors, true = groups()
    labels, wrong = flipped(true, 0.1)
    assert quality_of(vectors, single(labels)).agreement == 1 - wrong.mean()
    assert quality_of(vectors, single(np.arange(len(true)) // 3)).agreement is None
    assert quality_of(vectors, labels_of([[]] * len(true))).agreement is None
    several = labels_of([[int(code), 4] for code in true])
    assert quality_of(vectors, several).agreement == 1


def test_labels__unlabelled_items_have_no_votes_and_no_results() -> None:
    """Items without a label have no values, and neighbours without a label neither support nor oppose."""
    vectors, true = groups(members=40)
    items = [[int(code)] if place % 2 else [] for place, code in enumerate(true)]
    items[1] = [3]
    quality = quality_of(vectors, labels_of(items))
    assert np.isnan(quality.support[0::2]).all()
    assert np.isnan(quality.distance[0::2]).all()
    assert np.isfinite(quality.support[1::2]).all()
    assert mislabelled(quality) == [1]


def test_mislabels__the_worst_of_several_labels_counts() -> None:
    """A wrong label next to a right one is found; a missing label, or one that neighbours lack, is no issue."""
    vectors, true = groups()
    items = [[int(code), 4 + int(code)] for code in true]
    items[0] = [0, 7]
    items[1] = [0]
    items[2] = [0, 4, 8]
    quality = quality_of(vectors, labels_of(items))
    assert mislabelled(quality) == [0]
    assert quality.suggested[0] == 4
    assert quality.support[1] == pytest.approx(0.5)


def test_labels__order_and_repetition_do_not_matter() -> None:
    """Repeated labels of an item count once, and the order of its labels has no effect."""
    vectors, true = groups()
    once = quality_of(vectors, labels_of([[int(code), 9] for code in true]))
    twice = quality_of(vectors, labels_of([[9, int(code), int(code), 9] for code in true]))
    np.testing.assert_array_equal(once.support, twice.support)
    np.testing.assert_array_equal(once.distance, twice.distance)


def test_mislabels__copies_vote() -> None:
    """Among copies with different labels the minority is wrong, even if no other item is near."""
    vectors, true = groups()
    copied = np.concatenate([vectors, np.tile(-vectors[:1], (12, 1))])
    labels = np.concatenate([true, np.full(11, 4), [0]])
    quality = quality_of(copied, single(labels))
    assert mislabelled(quality) == [len(labels) - 1]
    assert quality.suggested[-1] == 4


def test_mislabels__an_item_does_not_vote_for_itself() -> None:
    """The only item with its label has no support, whatever the number of copies with other labels."""
    vectors, true = groups()
    labels = true.copy()
    labels[5] = 4
    quality = quality_of(vectors, single(labels))
    assert quality.support[5] == pytest.approx(0.01 / 1.02, abs=1e-3)
    assert mislabelled(quality) == [5]


def test_mislabels__one_near_duplicate_does_not_outvote_the_others() -> None:
    """Of two near-duplicates, one wrongly labelled, only that one is an issue."""
    vectors, true = groups()
    twin = unit(vectors[:1] + 1e-3 * uniform(1, 32, seed=5))
    quality = quality_of(np.concatenate([vectors, twin]), single(np.append(true, 2)))
    assert mislabelled(quality) == [len(true)]


@pytest.mark.parametrize(("k", "found"), [(2, []), (3, [7])])
def test_mislabels__three_votes_are_needed(k: int, found: list[int]) -> None:
    """Two neighbours are too few to call a label wrong, even if they agree."""
    vectors, true = groups()
    true[7] = 2
    assert mislabelled(quality_of(vectors, single(true), k=k)) == found


@pytest.mark.slow
def test_mislabels__overlapping_groups_differ_from_wrong_labels() -> None:
    """In overlapping groups, neighbours contradict many right labels, but only wrong labels clearly enough."""
    vectors, true = groups(60, spread=1.3)
    labels, wrong = flipped(true, 0.05)
    quality = quality_of(vectors, single(labels))
    assert np.count_nonzero(quality.support[~wrong] < MISLABEL_LIMIT) > 0.01 * len(true)
    assert wrong[mislabelled(quality)].mean() > 0.9
    assert len(mislabelled(quality_of(vectors, single(true)))) < 0.004 * len(true)


@pytest.mark.slow
def test_mislabels__thousands_of_copies_with_labels_of_their_own() -> None:
    """A crowd of copies, each with another label, is no issue."""
    vectors = np.concatenate([np.tile(uniform(1, 8), (20_000, 1)), uniform(30, 8, seed=3)])
    quality = quality_of(vectors, single(np.arange(len(vectors))))
    assert mislabelled(quality) == outliers(quality) == []


def test_outliers__are_beyond_the_fence_of_their_label() -> None:
    """An item between the groups, and one within another label, are outliers; other members are not."""
    vectors, true = groups()
    between = unit(vectors[:1] + vectors[40:41] + vectors[80:81])
    labels = np.append(true, 0)
    labels[50] = 0
    quality = quality_of(np.concatenate([vectors, between]), single(labels))
    assert outliers(quality) == [50, len(true)]
    assert quality.distance[outliers(quality)].min() > OUTLIER_LIMIT
    assert np.all(quality.outlier_confidence[outliers(quality)] > 0.5)
    assert np.all(quality.outlier_confidence[outliers(quality)] < 1)
    assert np.median(quality.distance) < 0.9


def test_outliers__amid_a_tighter_label() -> None:
    """Two wrongly labelled items in a tight group are outliers of their label, although they are near each other."""
    loose, _ = groups(2, spread=0.8)
    tight, _ = groups(3, spread=0.1)
    labels = np.repeat(np.arange(3), 30)
    labels[70:72] = 0
    assert outliers(quality_of(np.concatenate([loose, tight[60:]]), single(labels))) == [70, 71]


@pytest.mark.parametrize(("members", "judged"), [(9, False), (10, True)])
def test_outliers__need_ten_of_a_label(members: int, judged: bool) -> None:
    """A label with fewer than ten items has no outliers."""
    vectors, true = groups(members=members)
    assert np.isfinite(quality_of(vectors, single(true)).distance).tolist() == [judged] * len(true)


def test_outliers__copies_in_few_rows_are_near_each_other() -> None:
    """Items of a label that are copies of a few images find each other, with one neighbour or none."""
    vectors, true = groups(count=4, members=2)
    quality = quality_of(np.tile(vectors, (8, 1)), single(np.tile(true, 8)))
    assert outliers(quality) == []
    assert np.all(quality.distance == 0)


def test_labels__same_in_small_blocks(tuning: Tuning) -> None:
    """The size of blocks does not change the result, and progress ends at one."""
    vectors, true = groups()
    labels = single(flipped(true, 0.1)[0])
    whole = quality_of(vectors, labels)
    tuning.label_rows = 50
    shares: list[float] = []
    parts = label_quality(nearest(vectors), np.arange(len(vectors)), labels, progress=shares.append)
    for name in LabelQuality.__dataclass_fields__.keys() - {"statistics"}:
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    np.testing.assert_array_equal(whole.statistics.typical, parts.statistics.typical)
    np.testing.assert_array_equal(whole.statistics.limit, parts.statistics.limit)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)
    assert len(shares) > 10


@pytest.mark.parametrize(
    ("codes", "offsets"),
    [([0, 1], [0, 1]), ([0, 1], [0, 1, 1]), ([0, 1], [0, 3, 2]), ([0, 2], [0, 1, 2]), ([-1, 0], [0, 1, 2])],
)
def test_labels__wrong_input_is_refused(codes: list[int], offsets: list[int]) -> None:
    """Invalid offsets and codes are refused with a message that names them."""
    labels = Labels(np.array(codes, dtype=np.int32), np.array(offsets), 2)
    with pytest.raises(InvalidInput, match="must"):
        quality_of(uniform(2, 4), labels)


def reference_support(vectors: Vectors, items: Sequence[set[int]], k: int) -> list[float]:
    """Return support of each item's labels, counted vote by vote."""
    first, inverse = unique_rows(vectors)
    graph = nearest(vectors[first], k=k)
    found = []
    for item, own in enumerate(items):
        row = inverse[item]
        far = np.clip(1 - graph.similarity[row].astype(np.float64), 0, 2)
        usual = max(far.mean(), 1e-6) if len(far) else 1.0
        copies = [other for other in np.flatnonzero(inverse == row).tolist() if other != item and items[other]]
        voters = [(np.exp(-2.0) * min(1, 20 / len(copies)), [items[other]]) for other in copies]
        for place, neighbour in enumerate(graph.rows[row]):
            ballots = [items[other] for other in np.flatnonzero(inverse == neighbour).tolist() if items[other]]
            if ballots:
                voters.append((np.exp(-4 * max(far[place] / usual, 0.5)), ballots))
        total = sum(weight for weight, _ in voters)
        if not own or not total:
            found.append(np.nan)
            continue
        share = {
            code: sum(w * sum(code in b for b in ballots) / len(ballots) for w, ballots in voters) / total
            for code in set().union(*items)
        }
        least = min(share[code] for code in own)
        most = max((share[code] for code in share if code not in own), default=0)
        found.append((least + 0.01) / (least + most + 0.02))
    return found


@examples(80)
@given(st.integers(1, 40), st.integers(0, 6), st.integers(1, 6), st.integers(0, 2**16))
def test_mislabels__law(count: int, k: int, kinds: int, seed: int) -> None:
    """Support equals that of counting each vote, with copies, unlabelled items and several labels."""
    random = np.random.default_rng(seed)
    vectors = unit(random.integers(-1, 2, (count, 3)) + 0.5)
    items = [set(random.choice(kinds, random.integers(0, min(kinds, 3) + 1), replace=False).tolist()) for _ in vectors]
    quality = quality_of(vectors, labels_of([sorted(item) for item in items], kinds), k=k)
    np.testing.assert_allclose(quality.support, reference_support(vectors, items, k), atol=1e-6)
    assert np.flatnonzero(quality.suggested >= 0).tolist() == mislabelled(quality)
    assert all(quality.suggested[item] not in items[item] for item in mislabelled(quality))
