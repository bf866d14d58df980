"""Objects in buckets are read whole or not at all; a broken object is told from a service that is gone."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from framedex.core.assumed_roles import AssumedRole
from framedex.errors import CannotDecode, InvalidInput, Unavailable
from framedex.media import remote
from framedex.media.remote import INVALID_URI, ObjectStore, is_remote, split_uri
from framedex.media.s3 import BucketAccess
from tests.buckets import Service, Wire
from tests.environment import Environment

_LIMIT = 10**6


@pytest.fixture
def wire(service: Service) -> Iterator[Wire]:
    """A way to the service that can be cut."""
    opened = Wire(service)
    yield opened
    opened.stop()


def store(service: Service, **changes: Any) -> ObjectStore:
    """Return a reader of the service."""
    return ObjectStore(BucketAccess.of(service.settings(**changes)))


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("s3://bucket", ("bucket", "")),
        ("s3://bucket/", ("bucket", "")),
        ("s3://my.bucket-1/a b/c#?%20é.jpg", ("my.bucket-1", "a b/c#?%20é.jpg")),
        ("s3://bucket/a/b/", ("bucket", "a/b")),
    ],
)
def test_split_uri__is_taken_literally(uri: str, expected: tuple[str, str]) -> None:
    """A URI is a bucket and a key as it is, nothing of it escaped."""
    assert split_uri(uri) == expected
    assert is_remote(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "", "s3://", "s3:///a", "s3:/bucket/a", "S3://bucket/a", "http://bucket/a", "bucket/a", "s3://b", "s3://a b/c",
        "s3://bucket/a//b", "s3://bucket/../other/x", "s3://bucket/./x", "s3://bucket/a\nb", "s3://user@bucket/a",
        "s3://bucket/\udcff", None, 5, b"s3://bucket/a",
    ],
)  # fmt: skip
def test_split_uri__that_is_none(uri: Any) -> None:
    """An invalid URI raises the interface's message, with a note that names it."""
    with pytest.raises(InvalidInput) as raised:
        split_uri(uri)
    assert str(raised.value) == INVALID_URI
    assert raised.value.__notes__ == [f"an object-storage URI must be s3://bucket/folder, not {uri!r}"]


@pytest.mark.slow
def test_list__all_below_a_folder(service: Service) -> None:
    """The objects below a folder come in the order of their keys, with sizes and times, and no others."""
    for key in ("f/b.jpg", "f/a/x.png", "f/a b#?%.gif", "f/é.jpg", "fx/c.jpg", "f.jpg"):
        service.put(f"listed/{key}", key.encode())
    found = store(service).list("s3://listed/f/")
    assert found["key"].to_pylist() == ["a b#?%.gif", "a/x.png", "b.jpg", "é.jpg"]
    assert found["size_bytes"].to_pylist() == [len(f"f/{key}".encode()) for key in found["key"].to_pylist()]
    assert all(when > 1.7e18 for when in found["modified_ns"].to_pylist())
    assert len(store(service).list("s3://listed")) == 6
    assert len(store(service).list("s3://listed/nothing")) == 0


@pytest.mark.slow
@pytest.mark.only_soak
def test_list__of_several_pages(service: Service) -> None:
    """More objects than a page has are all listed."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: service.put(f"many/f/{number:04}.jpg", b""), range(1010)))
    assert store(service).list("s3://many/f")["key"].to_pylist() == [f"{number:04}.jpg" for number in range(1010)]


@pytest.mark.slow
def test_list__a_bucket_that_does_not_exist(service: Service) -> None:
    """A bucket that is not there has the interface's message, and a note that names it."""
    with pytest.raises(InvalidInput) as raised:
        store(service).list("s3://nowhere-at-all/f")
    assert (str(raised.value), raised.value.__notes__) == (INVALID_URI, ["there is no bucket 'nowhere-at-all'"])


def test_list__without_rights(service: Service) -> None:
    """Without the right to list, the error has the message of the service."""
    service.put("private/a.jpg", b"x")
    with service.closed(), pytest.raises(Unavailable, match=r"cannot list 's3://private': InvalidAccessKeyId"):
        store(service).list("s3://private")


def test_read__content_and_time(service: Service) -> None:
    """An object is read whole, up to the limit; its time is that of its last change."""
    content = bytes(range(256)) * 1000
    service.put("read/a b#?%25.jpg", content)
    modified_ns, data = store(service).read("s3://read/a b#?%25.jpg", len(content))
    assert data == content
    assert modified_ns == store(service).list("s3://read")["modified_ns"][0].as_py()
    with pytest.raises(CannotDecode, match="the object has 256,000 bytes, more than 255,999"):
        store(service).read("s3://read/a b#?%25.jpg", len(content) - 1)


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("none.jpg", "there is no such object"),
        ("folder", "there is no such object"),
        ("a//b.jpg", "its key has parts that are empty"),
        ("../read/x.jpg", "its key has parts that are empty, '.' or '..'"),
        ("folder/", "its key has parts that are empty"),
    ],
)
def test_read__what_is_no_object(service: Service, key: str, reason: str) -> None:
    """A key that is not there, or that cannot be asked for, is a broken object with the reason."""
    service.put("broken/folder/a.jpg", b"x")
    service.put("read/x.jpg", b"x")
    with pytest.raises(CannotDecode, match=reason):
        store(service).read(f"s3://broken/{key}", _LIMIT)


@pytest.mark.slow
def test_read__one_object_that_is_cut_off(service: Service, wire: Wire) -> None:
    """An answer that ends in the middle is never taken for the whole; the service is there, so the object is broken."""
    for name in ("a", "b"):
        service.put(f"cut/{name}.jpg", bytes(100_000))
    wire.cut = lambda method, path: method == "GET" and path.endswith("a.jpg")
    opened = store(service, s3_endpoint=wire.address)
    with pytest.raises(CannotDecode, match="cannot be read: the connection broke within the answer"):
        opened.read("s3://cut/a.jpg", _LIMIT)
    assert opened.read("s3://cut/b.jpg", _LIMIT)[1] == bytes(100_000)
    opened.check_any_read()


@pytest.mark.slow
def test_read__is_tried_again(service: Service, wire: Wire) -> None:
    """A connection that breaks once, at the head or in the content, costs nothing but time."""
    service.put("again/a.jpg", bytes(100_000))
    broken: set[str] = set()

    def once(method: str, _path: str) -> bool:
        is_new = method == "GET" and method not in broken
        broken.add(method)
        return is_new

    wire.cut = once
    assert store(service, s3_endpoint=wire.address, s3_attempts=3).read("s3://again/a.jpg", _LIMIT)[1] == bytes(100_000)
    assert [method for method, _ in wire.asked].count("GET") == 2


@pytest.mark.slow
def test_read__a_service_that_is_gone(service: Service) -> None:
    """A refused connection is no broken object: the service is said to be gone, by reading and by listing."""
    service.put("gone/a.jpg", b"x")
    wire = Wire(service)
    opened = store(service, s3_endpoint=wire.address)
    assert opened.read("s3://gone/a.jpg", _LIMIT)[1] == b"x"
    wire.stop()
    with pytest.raises(Unavailable, match=r"cannot read 's3://gone/a\.jpg': Could not connect"):
        opened.read("s3://gone/a.jpg", _LIMIT)
    with pytest.raises(Unavailable, match="cannot list 's3://gone': Could not connect"):
        opened.list("s3://gone")
    with pytest.raises(Unavailable, match=r"cannot look for 's3://gone/a\.jpg'"):
        opened.exists("s3://gone/a.jpg")


@pytest.mark.slow
def test_read__when_all_fail(service: Service) -> None:
    """Single refusals are broken objects; when nothing was ever read, or for long, that is no chance."""
    service.put("closed/open.jpg", b"x", public=True)
    service.put("closed/a.jpg", b"x")
    opened = store(service, s3_anonymous=True)
    opened.check_any_read()
    with pytest.raises(CannotDecode, match=r"403 \(GetObject\) Forbidden"):
        opened.read("s3://closed/a.jpg", _LIMIT)
    with pytest.raises(Unavailable, match=r"no object could be read: 1 object failed, the last: 's3://closed/a\.jpg'"):
        opened.check_any_read()
    opened.read("s3://closed/open.jpg", _LIMIT)
    opened.check_any_read()
    for _ in range(remote._MAX_FAILURES - 1):
        with pytest.raises(CannotDecode):
            opened.read("s3://closed/a.jpg", _LIMIT)
    with pytest.raises(Unavailable, match="100 objects in a row could not be read"):
        opened.read("s3://closed/a.jpg", _LIMIT)


def test_read__credentials_that_are_unknown(service: Service) -> None:
    """Credentials that the service does not know are no fault of an object."""
    service.put("stranger/a.jpg", b"x")
    with service.closed(), pytest.raises(Unavailable, match=r"cannot read 's3://stranger/a\.jpg': InvalidAccessKeyId"):
        store(service).read("s3://stranger/a.jpg", _LIMIT)


@pytest.mark.slow
@pytest.mark.only_soak
def test_read__missing_objects_are_no_outage(service: Service) -> None:
    """Any number of missing objects does not make the service unavailable."""
    opened = store(service)
    for _ in range(remote._MAX_FAILURES + 1):
        with pytest.raises(CannotDecode, match="no such object"):
            opened.read("s3://closed/none.jpg", _LIMIT)
    opened.check_any_read()


@pytest.mark.slow
def test_access__by_role(service: Service, wire: Wire, environment: Environment) -> None:
    """A role is assumed where one is named, with the media before the settings; never without credentials."""
    usual, own = AssumedRole("arn:aws:iam::123456789012:role/usual"), AssumedRole("arn:aws:iam::1:role/own", "ours")
    settings = service.settings(s3_role_arn=usual.arn)
    assert BucketAccess.of(settings).role == usual
    assert BucketAccess.of(settings, own).role == own
    service.put("roles/a.jpg", b"x")
    environment["AWS_ENDPOINT_URL"] = wire.address  # where roles are assumed
    assert ObjectStore(BucketAccess.of(settings)).read("s3://roles/a.jpg", _LIMIT)[1] == b"x"
    assert wire.asked == [("POST", "/")]
    anonymous = service.settings(s3_role_arn="arn:aws:iam::1:role/x", s3_anonymous=True)
    with pytest.raises(InvalidInput, match="no role can be assumed without credentials"):
        ObjectStore(BucketAccess.of(anonymous)).read("s3://roles/a.jpg", _LIMIT)


@pytest.mark.slow
def test_access__anonymous(service: Service, wire: Wire) -> None:
    """Without credentials public objects are read and no others, and requests carry none."""
    service.put("public/a.jpg", b"x", public=True)
    service.put("public/b.jpg", b"x")
    opened = store(service, s3_anonymous=True, s3_endpoint=wire.address)
    assert opened.read("s3://public/a.jpg", _LIMIT)[1] == b"x"
    with pytest.raises(CannotDecode, match="Forbidden"):
        opened.read("s3://public/b.jpg", _LIMIT)
    assert wire.signed == set()
    assert store(service, s3_endpoint=wire.address).read("s3://public/a.jpg", _LIMIT)[1] == b"x"
    assert wire.signed == {("reader", "us-east-1")}
