"""Encoding: images a second from files to committed rows, beside the bare model on prepared tensors.

The bare model gets what the encoder would give it, in the same batches, in the same process with the same threads; the
two take turns, and ratios are taken within a round. CLIP has random weights: speed does not depend on them.
"""

import multiprocessing
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from common import arguments, link_all, machine, median, photos, require, save, table, verdict
from encode_workers import AHEAD, IN_TURN, measure

CLIP, LARGE_CLIP = "open_clip:ViT-B-32?random", "open_clip:ViT-L-14?random"
AIM_CLIP, AIM_MOBILENET = 0.9, 0.8


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--photos", type=int, default=625, help="for MobileNetV2, and on a GPU; of the 1,250")
    parser.add_argument("--clip-photos", type=int, default=96, help="for CLIP on processors")
    options = parser.parse_args()
    mobilenet = f"onnx:{require(options.data, 'models') / 'mobilenetv2-12-int8.onnx'}"
    found = photos(options.data)
    gpu = alone(_has_gpu)
    print("" if gpu else "no GPU: CLIP runs on processors, ViT-L-14 not at all\n", flush=True)
    aims = {CLIP: AIM_CLIP, mobilenet: AIM_MOBILENET, **({LARGE_CLIP: AIM_CLIP} if gpu else {})}
    results = []
    for model, aim in aims.items():
        count = options.clip_photos if model == CLIP and not gpu else options.photos
        with tempfile.TemporaryDirectory(prefix="bench-encode-") as work:
            source = link_all(found[:: max(len(found) // count, 1)][:count], Path(work) / "photos")
            results.append(alone(measure, model, source, options.rounds))
        _print(results[-1], aim)
    save("encode", {"results": results})


def alone(work: Any, *args: Any) -> Any:
    """Return the result of a function that runs in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _print(found: dict[str, Any], aim: float) -> None:
    name, rounds, count = Path(found["model"]).name, found["rounds"], found["images"]
    for each in rounds:
        each["without index"] = each["seconds"] - each["parts"]["indexing"]
        # As if nothing were lost: what threads do ahead of the model takes its time from the same processors.
        each["allowed"] = each["bare"] + sum(each["parts"][part] for part in AHEAD) / machine()["processors"]
    print(f"{name}: {count:,} images in batches of {found['batch']}, medians of {len(rounds)} rounds")
    kinds = {
        "bare model": "bare",
        "files to committed rows": "seconds",
        "the same without the index": "without index",
        "what the processors allow": "allowed",
    }
    rows = [
        [kind, median(count / each[key] for each in rounds), median(each["bare"] / each[key] for each in rounds)]
        for kind, key in kinds.items()
        if not (found["gpu"] and key == "allowed")
    ]
    print(table(["", "images/s", "share of the bare model"], rows))
    by_cpu = median(each["bare cpu"] / each["cpu"] for each in rounds)
    print(f"share of the bare model by processor time, which other work on the machine changes less: {by_cpu:.3f}")
    if found["gpu"]:
        print(f"{found['gpu']['name']}: at most {found['gpu']['peak_mib']:,.0f} MiB of its memory")
    print(table(["part", "ms an image", "share of the time"], _parts(rounds, count)))
    print(verdict(f"{name}: share of the bare model", rows[1][2], aim), end="\n\n", flush=True)


def _parts(rounds: list[dict[str, Any]], count: int) -> list[list[Any]]:
    """Return each part of the work with its milliseconds an image and its share of the time that passed."""
    seconds = median(each["seconds"] for each in rounds)
    parts = {part: median(each["parts"][part] for each in rounds) for part in IN_TURN}
    parts["all else"] = seconds - sum(parts.values())
    parts |= {f"ahead, on threads: {part}": median(each["parts"][part] for each in rounds) for part in AHEAD}
    return [[part, 1000 * value / count, value / seconds] for part, value in parts.items()]


if __name__ == "__main__":
    main()
