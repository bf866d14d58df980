"""Candidates for copies: pairs of images that may show the same, also turned, mirrored, cut out or framed.

An image has several *units*: the whole image, and its panels. Each unit is described in several poses. A turned image
takes the same canonical pose as its original, in which the centre of light lies at the upper left; where light hardly
tells a pose from another one, the unit takes both. So one search finds copies in all poses.

Most copies are neither turned nor mirrored, so units are also compared as they are only; else the poses of others take
their places. The search uses projections to the principal components of a sample, then compares the full descriptors.

The order of verification also depends on single parts of images: a banner, a caption or a crop leaves some parts nearly
equal, while the parts of different images are all moderately alike.

The work on units and pairs is done in blocks, on any executor. Neither their size nor the number of workers changes the
result: within a block the steps have a fixed size, and of equal similarities the first row counts.

What does not fit into memory lies in files: then the search is one by groups of cells, as of
:mod:`framedex.analysis.grouped`, and pairs are sorted by their images. It finds nearly the same pairs; the sizes of the
groups, which follow from the memory and the number of workers, may decide between about equally near units.
"""

from framedex.analysis.copies.budget import Costs, affordable
from framedex.analysis.copies.candidates import find_candidates
from framedex.analysis.copies.poses import canonical_poses
from framedex.analysis.copies.searches import OnDisk
from framedex.analysis.copies.units import Candidates, Units

__all__ = ["Candidates", "Costs", "OnDisk", "Units", "affordable", "canonical_poses", "find_candidates"]
