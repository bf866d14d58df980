"""Labelled images of either half, as embeddings: photos by group, crops by class, digits, drawn shapes.

The *groups* of ImageNet's classes are coarse: birds, dogs, vehicles, food. The label of a crop is its class in the
annotations of COCO and Pascal VOC, that of a digit its number.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt
from halves import FOLDERS, HALVES, SEED, half, photos_of

from framedex.encoders import Encoder, decode_side_px
from framedex.media.decode import decode
from framedex.media.decoded_image import reduced

Vectors = npt.NDArray[np.float32]
Pixels = npt.NDArray[np.uint8]
_LEAST_SIDE = 32  # pixels of a crop
_DIGIT_SIDE = 96
# The first and the last WordNet number of animals, by group; numbers between the ranges belong to no group.
_ANIMALS = {
    "fish": ((1440764, 1498041), (2514041, 2655020)),
    "bird": ((1503061, 1622779), (1791625, 1860187), (2002556, 2058221)),
    "reptile or amphibian": ((1629819, 1756291),),
    "arthropod": ((1768244, 1784675), (2165105, 2281787), (1978287, 1990800)),
    "dog": ((2085620, 2113978),),
    "mammal": ((1871265, 1883070), (2066245, 2077923), (2114367, 2138441), (2325366, 2510455)),
}
_THINGS = {
    "vehicle": "airliner amphibian beach_wagon bicycle-built-for-two cab canoe catamaran gondola jinrikisha liner "
    "minivan pirate schooner space_shuttle steam_locomotive thresher tow_truck unicycle wing projectile",
    "building": "barbershop birdhouse breakwater cliff_dwelling dock drilling_platform greenhouse library mobile_home "
    "mosque shoe_shop stupa tobacco_shop viaduct water_tower picket_fence worm_fence fire_screen "
    "window_screen",
    "clothing": "academic_gown bonnet buckle Christmas_stocking cuirass feather_boa football_helmet fur_coat "
    "hair_slide jean military_uniform ski_mask sombrero stole sunglass muzzle purse mailbag",
    "device": "cash_machine computer_keyboard dial_telephone entertainment_center hard_disc laptop loudspeaker "
    "monitor oscilloscope Polaroid_camera slot switch tape_player wall_clock refrigerator web_site "
    "parking_meter",
    "furniture": "chest cradle crib dining_table four-poster medicine_chest pool_table tray tub washbasin pedestal "
    "vault",
    "tool": "corkscrew hatchet hook paintbrush power_drill screwdriver shovel spindle safety_pin matchstick chain "
    "knot strainer swab rifle bow tripod",
    "vessel": "ashcan barrow beer_bottle coffee_mug Dutch_oven goblet hamper pill_bottle rain_barrel soap_dispenser "
    "Petri_dish plastic_bag packet paper_towel cup",
    "instrument": "banjo bassoon ocarina sax",
    "food": "guacamole ice_cream pretzel head_cabbage spaghetti_squash artichoke Granny_Smith fig custard_apple "
    "chocolate_sauce potpie",
    "landscape": "cliff promontory volcano mountain_tent",
    "fungus": "agaric hen-of-the-woods",
}


@dataclass(frozen=True)
class LabelledImages:
    """Images of one kind with their labels.

    Attributes:
        name: the kind.
        labels: the label of each image.
        photos: the photo that each image is, or was cut from.
        pixels: returns an iterator over the images: uint8, shape (H, W, 3), RGB.
    """

    name: str
    labels: list[str]
    photos: list[str]
    pixels: Callable[[], Iterator[Pixels]]


def labelled_images(data: Path, name: str) -> list[LabelledImages]:
    """Return all kinds of labelled images of one half: photos by group, crops by class, digits."""
    photos = half(data, name)
    return [_groups(photos), _crops(photos), _digits(name)]


def single_photos(data: Path, name: str | None = None) -> list[Path]:
    """Return ImageNet's photos, one of each class, of one half or of both."""
    return photos_of(data, FOLDERS[0]) if name is None else half(data, name, FOLDERS[:1])


def embed(encoder: Encoder, images: Iterable[Pixels]) -> Vectors:
    """Return the embeddings of images as ingestion computes them: float32, shape (N, D), unit length."""
    return np.concatenate(
        [
            np.asarray(encoder.encode_images(encoder.prepare(reduced(each, decode_side_px(encoder)))[None]), np.float32)
            for each in images
        ]
    )


def read_all(paths: Sequence[Path], encoder: Encoder | None = None) -> Iterator[Pixels]:
    """Yield the pixels of photos; with an encoder, in the size in which ingestion decodes them for it."""
    detail = None if encoder is None else decode_side_px(encoder)
    for path in paths:
        yield decode(path.read_bytes(), max_pixels=10**8, detail=detail).pixels


def group_of(photo: Path) -> str | None:
    """Return the coarse group of a photo of ImageNet by its name, ``n01440764_tench.JPEG``; None without a group."""
    number, _, name = photo.stem.partition("_")
    animals = (
        group
        for group, ranges in _ANIMALS.items()
        if any(first <= int(number[1:]) <= last for first, last in ranges) and number < "n026560"
    )
    things = (group for group, names in _THINGS.items() if name in names.split())
    return next(animals, None) or next(things, None)


def _groups(photos: Sequence[Path]) -> LabelledImages:
    grouped = [(path, group) for path in photos if "imagenet" in path.parent.name and (group := group_of(path))]
    paths = [path for path, _ in grouped]
    return LabelledImages(
        "groups", [group for _, group in grouped], [path.name for path in paths], lambda: read_all(paths)
    )


def _crops(photos: Sequence[Path]) -> LabelledImages:
    boxes = {path: list(_boxes(path)) for path in photos if path.parent.name == "images"}
    boxes = {
        path: [each for each in some if min(each[3] - each[1], each[4] - each[2]) >= _LEAST_SIDE]
        for path, some in boxes.items()
    }

    def pixels() -> Iterator[Pixels]:
        for path, whole in zip(boxes, read_all(list(boxes)), strict=True):
            for _, left, top, right, bottom in boxes[path]:
                yield np.ascontiguousarray(whole[top:bottom, left:right])

    cut = [(path.name, label) for path, some in boxes.items() for label, *_ in some]
    return LabelledImages("crops", [label for _, label in cut], [photo for photo, _ in cut], pixels)


def _boxes(path: Path) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield the label and the edges of each box of a photo, in pixels: left, top, right, bottom."""
    xml = path.parent.with_name("annotations") / f"{path.stem}.xml"
    if xml.is_file():
        for each in ElementTree.parse(xml).iter("object"):
            edges = [int(float(each.findtext(f"bndbox/{name}", ""))) for name in ("xmin", "ymin", "xmax", "ymax")]
            yield each.findtext("name", ""), edges[0], edges[1], edges[2], edges[3]
        return
    text = path.parent.with_name("labels") / f"{path.stem}.txt"
    height, width = next(read_all([path])).shape[:2]
    for line in text.read_text().splitlines() if text.is_file() else ():
        number, *shares = line.split()
        x, y, w, h = (float(each) for each in shares)
        edges = [(x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height]
        left, top, right, bottom = (max(round(each), 0) for each in edges)
        yield f"class {number}", left, top, min(right, width), min(bottom, height)


def digits_of(name: str) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Return scikit-learn's digits of one half: pixels, 0 to 1, shape (N, 64), and the digits, shape (N,)."""
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.default_rng(SEED).permutation(len(data.target))
    middle = len(order) // 2
    chosen = np.sort(order[:middle] if name == HALVES[0] else order[middle:])
    return data.data[chosen] / 16, data.target[chosen]


def _digits(name: str) -> LabelledImages:
    values, digits = digits_of(name)

    def pixels() -> Iterator[Pixels]:
        import cv2

        for each in values:
            grey = (each.reshape(8, 8) * 255).astype(np.uint8)
            large = cv2.resize(grey, (_DIGIT_SIDE, _DIGIT_SIDE), interpolation=cv2.INTER_CUBIC)
            yield np.repeat(large[:, :, None], 3, axis=2)

    return LabelledImages(
        "digits", [str(digit) for digit in digits], [f"{name} {place}" for place in range(len(digits))], pixels
    )
