"""The COCO format: the names of its files, and what reading and writing share.

:mod:`framedex.annotations.coco_reader` reads it, :mod:`framedex.annotations.coco_writer` writes it.
"""

FILE, CAPTIONS_FILE = "annotations.json", "captions.json"
IMAGE_LABEL = "image_label"
"""Key of annotations whose box is not an object but the whole image, which has the label."""
DETAILS = ("keypoints", "skeleton")
"""Further values of categories that are kept."""
NUMBER = "^(0|-?[1-9][0-9]*)$"
"""Pattern of ids that are numbers in the file."""
