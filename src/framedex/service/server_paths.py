"""Paths of the server in messages for users, who may be on other machines."""

import re

_QUOTED = re.compile(r"""(?P<quote>['"])(?:file://)?/(?:[^'"/]*/)*(?P<name>[^'"/]*)/?(?P=quote)""")
_BARE = re.compile(r"""(?<![\w:/.…])(?:file://)?/(?:[^\s'"/:;,]+/)+(?P<name>[^\s'"/:;,]*)""")


def without_folders(message: str) -> str:
    """Return a message in which absolute paths are replaced by the names of their files, after an ellipsis.

    URIs of buckets and paths within a source stay as they are.
    """
    quoted = _QUOTED.sub(r"\g<quote>…/\g<name>\g<quote>", message)
    return _BARE.sub(r"…/\g<name>", quoted)
