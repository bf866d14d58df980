"""Groups of duplicates on which nobody has decided yet, and what their proposals would remove."""

from collections.abc import Callable, Set
from dataclasses import dataclass

from framedex.api.dataset import Dataset
from framedex.core.checks import check_fraction
from framedex.records import DuplicateGroup

_GROWTH = 4


@dataclass(frozen=True)
class ProposedCopies:
    """Members of duplicate groups that are proposed for removal.

    Attributes:
        media_ids: their ids, each once, in the order of the groups.
        n_groups: the number of groups that they are of.
        n_unsure: the number of open groups that are left out, because it is not sure which member is the original.
    """

    media_ids: list[str]
    n_groups: int
    n_unsure: int


def is_open(group: DuplicateGroup, basket: Set[str]) -> bool:
    """Return whether nobody has decided on a group: at least two of its members are outside the basket."""
    return sum(each not in basket for each in group.media_ids) > 1


def groups_by_state(
    read: Callable[[int], list[DuplicateGroup]], basket: Set[str], *, is_wanted_open: bool, count: int
) -> list[DuplicateGroup]:
    """Return the first groups that are open, or that are not.

    Args:
        read: returns the first groups, up to a number of them.
        basket: the ids of the media in the basket.
        is_wanted_open: whether open groups are wanted.
        count: the maximum number of groups.
    """
    limit = count
    while True:
        groups = read(limit)
        found = [each for each in groups if is_open(each, basket) == is_wanted_open]
        if len(found) >= count or len(groups) < limit:
            return found[:count]
        limit *= _GROWTH


def proposed_copies(
    dataset: Dataset, similarity: float, confidence: float = 0.0, *, unsure: bool = False
) -> ProposedCopies:
    """Return what accepting the proposals of all open groups would put into the basket.

    Of each group the member to keep stays, and what people chose to keep. Groups of which it is not sure which member
    is the original are left to people, unless they are wanted, too.

    Args:
        dataset: the dataset.
        similarity: as for :meth:`framedex.View.duplicates`.
        confidence: minimum confidence of a group, 0 to 1.
        unsure: whether groups of which the original is not sure count, too.

    Raises:
        InvalidInput: the similarity or the confidence is out of its range.
    """
    check_fraction("confidence", confidence)
    basket, chosen = set(dataset.basket.media_ids()), set(dataset.kept_ids())
    ids: dict[str, None] = {}
    n_groups = n_unsure = 0
    for group in dataset.duplicates(similarity):
        if group.confidence >= confidence and is_open(group, basket):
            stays = chosen | {group.keep}
            going = [each for each in group.media_ids if each not in stays and each not in basket]
            if not (group.is_sure or unsure):
                n_unsure += bool(going)
                continue
            n_groups += bool(going)
            ids.update(dict.fromkeys(going))
    return ProposedCopies(list(ids), n_groups, n_unsure)
