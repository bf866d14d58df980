"""Wrong labels: Framedex's score beside cleanlab's, where 5 % of the labels were replaced by chance.

Of scikit-learn's digits, and of embeddings of photos, labelled by the photo they were made from, of which there are
many versions or few. cleanlab gets the probabilities of cross-validated models on the same vectors: logistic regression
on standardised values, and nearest neighbours. Figures are means over several seeds; precision is that among as many
items as are wrong, highest scores first.
"""

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import PINS, arguments, environment, photos, save, table, verdict
from index_jobs import framedex_python, job_folder, photo_embeddings, run_job

VERSIONS = {"digits": 0, "photos": 40, "few": 8}  # by kind, of each photo
MODELS = {"cleanlab-regression": "logistic regression", "cleanlab-neighbours": "nearest neighbours"}
TITLES = {"framedex": "Framedex", **{name: f"cleanlab, {model}" for name, model in MODELS.items()}}
FOLDS, NEIGHBOURS = 5, 10


def main(given: Sequence[str]) -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.prog = "index.py mislabels"
    parser.add_argument("--kinds", nargs="+", choices=VERSIONS, default=list(VERSIONS), help="of labelled vectors")
    parser.add_argument("--share", type=float, default=0.05, help="of the labels that are replaced")
    parser.add_argument("--seeds", type=int, default=5, help="how many times")
    parser.add_argument("--classes", type=int, default=50, help="photos that stand for classes")
    options = parser.parse_args(given)
    pythons = {"framedex": framedex_python(options.peers), "cleanlab": environment(options.peers, "cleanlab")}
    kinds = {kind: _measure(pythons, kind, options) for kind in options.kinds}
    print(f"\n{options.share:.0%} of the labels replaced, {options.seeds} seeds; {PINS['cleanlab'][0]}")
    _print(kinds)
    save("index-mislabels", {"share": options.share, "seeds": options.seeds, "kinds": kinds})


def _measure(pythons: Mapping[str, Path], kind: str, options: argparse.Namespace) -> dict[str, Any]:
    embeddings = photo_embeddings(options.peers, options.data) if VERSIONS[kind] else None
    with job_folder() as folder:
        labelled = folder / "labelled.npz"
        made = run_job(
            pythons["framedex"], "write_labelled", folder,
            versions=VERSIONS[kind], target=labelled, share=options.share, seeds=options.seeds, classes=options.classes,
            embeddings=embeddings, photos=len(photos(options.data)) if embeddings else 0,
        ).result  # fmt: skip
        found = {tool: folder / f"{tool}.npy" for tool in TITLES}
        runs = {
            "framedex": run_job(pythons["framedex"], "mislabels", folder, labelled=labelled, target=found["framedex"])
        }
        for tool, model in MODELS.items():
            runs[tool] = run_job(
                pythons["cleanlab"], "cleanlab", folder,
                labelled=labelled, target=found[tool], model=model, folds=FOLDS, k=NEIGHBOURS,
            )  # fmt: skip
        paths = {tool: str(path) for tool, path in found.items()}
        answer = run_job(pythons["framedex"], "auroc", folder, labelled=labelled, found=paths).result
    tools = {
        tool: {"auroc": answer["auroc"][tool], "precision": answer["precision"][tool], "seconds": run.call_s}
        for tool, run in runs.items()
    }
    print(f"{kind} done", flush=True)
    return {"rows": made["rows"], "classes": made["classes"], "flipped": made["flipped"], "tools": tools}


def _print(kinds: Mapping[str, Any]) -> None:
    headers = ["vectors", "rows", "classes", "tool", "AUROC", "least", "precision", "seconds a seed"]
    rows = [
        [
            kind, each["rows"], each["classes"], TITLES[tool], f"{statistics.mean(figures['auroc']):.4f}",
            f"{min(figures['auroc']):.4f}", statistics.mean(figures["precision"]), figures["seconds"],
        ]
        for kind, each in kinds.items()
        for tool, figures in each["tools"].items()
    ]  # fmt: skip
    print(table(headers, rows))
    print()
    for kind, each in kinds.items():
        means = {tool: statistics.mean(figures["auroc"]) for tool, figures in each["tools"].items()}
        best = max(mean for tool, mean in means.items() if tool != "framedex")
        print(verdict(f"AUROC on {kind}, against cleanlab's better one", round(means["framedex"], 3), round(best, 3)))
