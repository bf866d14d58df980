"""Counts in words, with the noun and the verb in the singular or the plural."""

import re

_ENDINGS = (("ies", "y"), ("sses", "ss"), ("xes", "x"), ("tches", "tch"), ("s", ""))
_SINGULARS = {"media": "media item", "indices": "index"}
_VERBS = {"are": "is", "have": "has", "were": "was"}
_MORE = re.compile(r" (?:of|with|without|that) ")  # the noun stands before it


def counted(count: int, nouns: str, verb: str = "") -> str:
    """Return a count with a noun, and with a verb if one is given: "1 image has", "1,000 images have".

    Args:
        count: the count.
        nouns: the noun in the plural, or two with "or", with other words around it, as "new results of a view".
        verb: ``are``, ``have`` or ``were``.
    """
    if count == 1:
        nouns, verb = _singular(nouns), _VERBS.get(verb, verb)
    return f"{count:,} {nouns} {verb}".rstrip()


def _singular(nouns: str) -> str:
    """Return a noun in the singular, with the other words around it."""
    end = more.start() if (more := _MORE.search(nouns)) else len(nouns)
    return " or ".join(map(_singular_of_last, nouns[:end].split(" or "))) + nouns[end:]


def _singular_of_last(words: str) -> str:
    """Return words of which the last one, a noun, is in the singular."""
    before, space, noun = words.rpartition(" ")
    if noun in _SINGULARS:
        return f"{before}{space}{_SINGULARS[noun]}"
    ending, singular = next((each for each in _ENDINGS if noun.endswith(each[0])), ("", ""))
    return f"{before}{space}{noun.removesuffix(ending)}{singular}"
