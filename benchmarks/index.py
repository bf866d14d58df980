"""The index engine: ``python benchmarks/index.py PART [options]``; ``PART --help`` lists a part's options.

scale: growth and memory up to a million rows. recall: of the neighbours. clusters: against scikit-learn. peers: other
tools on the same vectors. duplicates: precision and recall. mislabels: beside cleanlab. incremental: adding 1 %.
stable: which clusters keep their ids. visits: between groups of cells.
"""

import sys

import index_clusters
import index_duplicates
import index_incremental
import index_mislabels
import index_peers
import index_recall
import index_scale
import index_stable
import index_visits

PARTS = {
    "scale": index_scale.main,
    "recall": index_recall.main,
    "clusters": index_clusters.main,
    "peers": index_peers.main,
    "duplicates": index_duplicates.main,
    "mislabels": index_mislabels.main,
    "incremental": index_incremental.main,
    "stable": index_stable.main,
    "visits": index_visits.main,
}


def main() -> None:
    """Run the part that the command line names."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    if part not in PARTS:
        sys.exit(f"{__doc__}\nName one of these parts: {', '.join(PARTS)}")
    PARTS[part](sys.argv[2:])


if __name__ == "__main__":
    main()
