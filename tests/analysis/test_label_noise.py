"""All labels are ranked by the evidence against them, and the rate of wrong ones is estimated."""

import numpy as np
import pytest

from framedex.analysis.label_noise import LEAST_LABELLED, Evidence, LabelNoise, label_noise
from framedex.analysis.labels import label_quality
from framedex.analysis.neighbours import nearest, unique_rows
from tests.analysis.arrays import Vectors
from tests.analysis.test_labels import Codes, flipped, groups, labels_of, single

BOTH = frozenset({Evidence.NEIGHBOURS, Evidence.HEAD})


def noise_of(vectors: Vectors, codes: Codes, evidence: frozenset[Evidence] = BOTH) -> LabelNoise:
    """Return the noise of single labels."""
    first, inverse = unique_rows(vectors)
    found = label_noise(nearest(vectors[first]), inverse, single(codes), evidence=evidence, vectors=vectors)
    assert found is not None
    return found


def scores(found: LabelNoise) -> np.ndarray:
    """Return the scores by item."""
    values = np.empty(len(found.item))
    values[found.item] = found.score
    return values


def area_under_curve(wrong: np.ndarray, ranking: np.ndarray) -> float:
    """Return the area under the ROC curve; scikit-learn's takes a second to import."""
    differences = ranking[wrong][:, None] - ranking[~wrong]
    return float(np.sign(differences).mean() + 1) / 2


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("evidence", [BOTH, {Evidence.NEIGHBOURS}, {Evidence.HEAD}])
def test_rate__is_near_the_truth(share: float, evidence: frozenset[Evidence]) -> None:
    """In clear groups the estimate is near the share of wrong labels, within its interval, and wrong ones are first."""
    vectors, true = groups(4, 60, spread=0.6)
    given, wrong = flipped(true, share)
    found = noise_of(vectors, given, frozenset(evidence))
    assert found.rate == pytest.approx(share, abs=0.03)
    assert found.low <= share <= found.high
    assert found.probability.mean() == pytest.approx(found.rate, abs=1e-3)
    assert wrong[found.item[: wrong.sum()]].all()
    assert found.suggested[: wrong.sum()].tolist() == true[found.item[: wrong.sum()]].tolist()
    assert found.code.tolist() == given[found.item].tolist()
    assert not found.is_uncertain


def test_ranking__class_noise_is_ranked_better_than_by_one_vote() -> None:
    """Where a third of each class has the label of the next one, the ranking beats that of the neighbours alone."""
    vectors, true = groups(5, 50, spread=1.2)
    wrong = np.random.default_rng(2).random(len(true)) < 0.33
    given = np.where(wrong, (true + 1) % 5, true).astype(np.int32)
    first, inverse = unique_rows(vectors)
    votes = area_under_curve(wrong, -label_quality(nearest(vectors[first]), inverse, single(given)).support)
    assert area_under_curve(wrong, scores(noise_of(vectors, given))) > votes + 0.03


@pytest.mark.parametrize(("evidence", "spread"), [(BOTH, 3), (BOTH, 5), ({Evidence.HEAD}, 3)])
def test_rate__is_uncertain_where_vectors_say_little(evidence: frozenset[Evidence], spread: float) -> None:
    """Where groups overlap, right labels are contradicted: the estimate is uncertain, and its interval begins at 0."""
    vectors, true = groups(6, 40, spread=spread)
    found = noise_of(vectors, true, frozenset(evidence))
    assert found.is_uncertain
    assert found.low == 0


def test_probabilities__alone_rank_by_their_margin() -> None:
    """Given probabilities alone rank by the difference of the best other label and the own one."""
    random = np.random.default_rng(3)
    vectors, true = groups(3, 10)
    chances = random.dirichlet(np.ones(3), len(true)).astype(np.float32)
    first, inverse = unique_rows(vectors)
    found = label_noise(
        nearest(vectors[first]),
        inverse,
        single(true),
        evidence=frozenset({Evidence.PROBABILITIES}),
        probabilities=chances,
    )
    assert found is not None
    own = chances[np.arange(len(true)), true]
    margins = [max(p for code, p in enumerate(row) if code != label) for row, label in zip(chances, true, strict=True)]
    assert found.item.tolist() == np.argsort(own - np.array(margins), kind="stable").tolist()


def test_noise__of_several_labels_and_none() -> None:
    """Of several labels the one with least evidence is named; items without labels are left out; few give nothing."""
    vectors, true = groups(4, 30)
    items = [[int(code), 4] for code in true]
    items[7], items[9] = [], [0, 3, 4]
    first, inverse = unique_rows(vectors)
    graph = nearest(vectors[first])
    found = label_noise(graph, inverse, labels_of(items), evidence=BOTH, vectors=vectors)
    assert found is not None
    assert len(found.item) == len(true) - 1
    assert (found.item[0], found.code[0]) == (9, 3)
    few = [each if 10 <= row < 10 + LEAST_LABELLED - 1 else [] for row, each in enumerate(items)]
    for labels in (labels_of(few), labels_of([[0]] * len(true))):
        assert label_noise(graph, inverse, labels, evidence=BOTH, vectors=vectors) is None
