"""cleanlab's scores: ``python mislabels_worker.py cleanlab FOLDER ANSWER``, in the environment of cleanlab.

FOLDER has ``labelled.npz`` with the vectors, shape (N, D), and the given labels, shape (cases, N). The scores go to
``scores.npz`` in the same folder: ``neighbours`` and ``regression``, float64, shape (cases, N), higher where a label is
more likely wrong, and ``rate``, shape (cases,), the estimated share of wrong labels by neighbours.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np

FOLDS, NEIGHBOURS = 5, 10


def main() -> None:
    """Score labels."""
    from cleanlab.count import num_label_issues
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    warnings.simplefilter("ignore")
    folder, answer = Path(sys.argv[2]), Path(sys.argv[3])
    labelled = np.load(folder / "labelled.npz")
    vectors = labelled["vectors"]
    # The stronger penalty serves it better on vectors of many values.
    penalty = 0.1 if vectors.shape[1] < 500 else 0.01
    models = {
        "neighbours": KNeighborsClassifier(NEIGHBOURS, metric="cosine"),
        "regression": make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=300)),
    }
    started = time.perf_counter()
    scores = {name: [] for name in (*models, "rate")}
    for given in labelled["given"]:
        folds = StratifiedKFold(
            max(2, min(FOLDS, np.unique(given, return_counts=True)[1].min())), shuffle=True, random_state=0
        )
        for name, model in models.items():
            chances = cross_val_predict(model, vectors, given, cv=folds, method="predict_proba")
            scores[name].append(1 - get_label_quality_scores(given, chances))
            if name == "neighbours":
                scores["rate"].append(num_label_issues(given, chances) / len(given))
    np.savez(folder / "scores.npz", **{name: np.array(each) for name, each in scores.items()})
    answer.write_text(json.dumps({"seconds": time.perf_counter() - started}), "utf-8")


if __name__ == "__main__":
    main()
