"""A database of LightlyStudio: ``python web_peers_workers.py lightly-studio FOLDER ANSWER``, in its environment.

The folder holds ``photos``, whose folders become tags. The model that LightlyStudio takes by default is downloaded, so
that its own embedder of random vectors stands in for it: the time is without that of a model.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

DATABASE = "lightly_studio.db"
_DIMENSION = 512


def lightly_studio(folder: Path) -> dict[str, Any]:
    """Add the photographs to a database, without reports over the network."""
    os.environ["LIGHTLY_STUDIO_ANALYTICS_ENABLED"] = "false"
    import lightly_studio as studio
    from lightly_studio.database import db_manager
    from lightly_studio.embed.random_embedder import RandomEmbedder

    started = time.perf_counter()
    db_manager.connect(db_file=str(folder / DATABASE))
    studio.register_default_embedder(RandomEmbedder(_DIMENSION))
    dataset = studio.ImageDataset.create()
    dataset.add_images_from_path(str(folder / "photos"), tag_depth=1)
    db_manager.close()
    return {"seconds": time.perf_counter() - started}


TASKS = {"lightly-studio": lightly_studio}


def main() -> None:
    """Run the task that the command line names."""
    task, folder, answer = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    answer.write_text(json.dumps(TASKS[task](folder)), "utf-8")


if __name__ == "__main__":
    main()
