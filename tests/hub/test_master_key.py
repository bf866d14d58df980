"""Secrets that are computed from the master key: known values, and the same for one and for many."""

import base64
import hashlib
import hmac

from framedex.hub.master_key import MasterKey

KEY = bytes(range(32))


def test_derived__is_the_code_of_its_parts() -> None:
    """A secret is the HMAC of the label and the parts, so it stays the same over restarts and versions."""
    expected = base64.urlsafe_b64encode(hmac.new(KEY, b"uri:7:ann:/a/b", hashlib.sha256).digest()).rstrip(b"=").decode()
    assert MasterKey(KEY).derived("uri", 7, "ann", "/a/b") == expected
    assert len({MasterKey(KEY).derived(*each) for each in (("uri",), ("uri", ""), ("uri", 7), ("key", 7))}) == 4


def test_deriver__returns_the_same() -> None:
    """The function for many secrets returns what is returned for each, in any order."""
    key = MasterKey(KEY)
    derive = key.deriver("uri", 7, "ann")
    for path in ("/a/b", "", "/ü", "/a/b"):
        assert derive(path) == key.derived("uri", 7, "ann", path)
