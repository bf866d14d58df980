"""States of log-ins: of one browser, for a time, with a path within the service."""

import hashlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from framedex.errors import InvalidInput
from framedex.service.oidc.states import LIFE_S, LoginStates, local_path, new_browser_secret

NOW = 1_900_000_000


def derive(*parts: object) -> str:
    """Return a text of 43 characters that follows from its parts."""
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:43]


STATES = LoginStates(derive)
BROWSER = new_browser_secret()


def test_states__of_a_browser() -> None:
    """The browser that began a log-in ends it, with the same secrets; each log-in has others."""
    first, second = (STATES.new(BROWSER, "/albums?x=é", now=NOW) for _ in range(2))
    assert STATES.check(first.state, BROWSER, now=NOW + LIFE_S - 1) == first
    assert first.path == "/albums?x=é"
    assert len({first.state, second.state, first.nonce, second.nonce, first.verifier, second.verifier}) == 6
    assert len(first.verifier) == 43
    assert first.verifier not in first.state


def test_states__that_are_refused() -> None:
    """Another browser, no browser, another time and other text are refused."""
    state = STATES.new(BROWSER, "/", now=NOW).state
    for text, browser, now in (
        (state, new_browser_secret(), NOW),
        (state, "", NOW),
        (state, "x", NOW),
        (state, BROWSER, NOW + LIFE_S),
        (state[:-1], BROWSER, NOW),
        (state + "x", BROWSER, NOW),
        (state.replace(".19", ".29", 1), BROWSER, NOW),
        ("", BROWSER, NOW),
        ("x" * 10_000, BROWSER, NOW),
    ):
        with pytest.raises(InvalidInput, match="begin again"):
            STATES.check(text, browser, now=now)


@given(st.text(), st.text())
def test_states__of_any_text(state: str, browser: str) -> None:
    """No text is a state by accident, and none breaks the check."""
    with pytest.raises(InvalidInput, match="begin again"):
        STATES.check(state, browser, now=NOW)


INSIDE = ["/", "/albums", "/albums/x?y=1&z=//a#b", "/a//b", "/%2F%2Fevil.example", "/@evil.example", "/:80"]
OUTSIDE = [
    "", "//evil.example", "///evil.example", "/\\evil.example", "\\\\evil.example", "https://evil.example", "https:e",
    "javascript:alert(1)", "albums", " /", "/ /evil", "/\t/evil.example", "/\n/evil.example", "/a\r\nSet-Cookie: x=y",
    "/\x00", "/a\\b", "/é", "/" + "x" * 2048, "?x", "#x", ".", "@evil.example",
]  # fmt: skip


def test_paths() -> None:
    """A path within the service is kept; anything else becomes the first page."""
    assert [local_path(text) for text in INSIDE] == INSIDE
    assert {local_path(text) for text in OUTSIDE} == {"/"}


@pytest.mark.slow
@given(st.text() | st.text(alphabet="/\\:%2Fe.@ \t\r\n?#"))
@example("/%5Cevil.example")
def test_paths__of_any_text(text: str) -> None:
    """No text leads to another host: what is kept begins with one slash, and browsers read nothing else into it."""
    path = local_path(text)
    assert path.startswith("/")
    assert not path.startswith(("//", "/\\"))
    assert not set(path) & set("\\ \t\r\n")
    assert path in ("/", text)
