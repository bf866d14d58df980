"""cleanlab's flags: ``python mislabels_worker.py cleanlab FOLDER ANSWER``, in the environment of cleanlab.

FOLDER has ``labelled.npz`` with the vectors, shape (N, D), and the given labels, shape (seeds, N). The flags go to
``flags.npy`` in the same folder: bool, shape (seeds, N).
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

FOLDS, NEIGHBOURS = 5, 10


def main() -> None:
    """Flag wrong labels."""
    from cleanlab.filter import find_label_issues
    from sklearn.model_selection import cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier

    folder, answer = Path(sys.argv[2]), Path(sys.argv[3])
    labelled = np.load(folder / "labelled.npz")
    model = KNeighborsClassifier(NEIGHBOURS, metric="cosine")
    started, flags = time.perf_counter(), []
    for given in labelled["given"]:
        probabilities = cross_val_predict(model, labelled["vectors"], given, cv=FOLDS, method="predict_proba")
        flags.append(find_label_issues(given, probabilities, n_jobs=1))
    np.save(folder / "flags.npy", np.stack(flags))
    answer.write_text(json.dumps({"seconds": time.perf_counter() - started}), "utf-8")


if __name__ == "__main__":
    main()
