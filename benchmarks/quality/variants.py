"""Pictures of sets that share a template: the random numbers of the template, and those of each picture."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from printed import Random

SET = 10
"""Pictures of one template."""


@dataclass(frozen=True)
class Variant:
    """A picture of a set: the same template as the others, its own content."""

    seed: int
    kind: int
    """Number of the kind of picture."""
    number: int
    """Number of the picture among all of its kind."""

    @property
    def set(self) -> int:
        """Number of the template."""
        return self.number // SET

    @cached_property
    def template(self) -> Random:
        """Random numbers that are the same for all pictures of the set."""
        return np.random.default_rng((self.seed, self.kind, 0, self.set))

    @cached_property
    def own(self) -> Random:
        """Random numbers of this picture."""
        return np.random.default_rng((self.seed, self.kind, 1, self.number))

    @cached_property
    def before(self) -> Random:
        """Random numbers as those of the picture before."""
        return np.random.default_rng((self.seed, self.kind, 1, self.number - 1))
