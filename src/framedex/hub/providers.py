"""Identity providers: where accounts live beside the database of the service."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class NewAccount:
    """An account to create at an identity provider; the values were checked, and the names are free here."""

    username: str
    password: str = field(repr=False)
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    enabled: bool = True


class IdentityProvider(Protocol):
    """A provider of identities, which has accounts of the service's users.

    The hub stores the id that the provider gives an account, and no password of it. It calls the provider outside of
    its own transactions, before it commits the change, and takes the call back if the change fails. Each method raises
    an :class:`framedex.Error` if it did nothing. All but ``create`` may be repeated without harm.

    If the process is killed after ``create`` and before the user is stored, the account stays at the provider: nothing
    here knows its id, and a search by its name could find the account of somebody else.
    """

    @property
    def issuer(self) -> str:
        """The URL or another name of the provider; ids are unique within it."""

    def create(self, account: NewAccount) -> str | None:
        """Create an account and return its id there; None if the account lives in the service's database alone."""

    def rename(self, identity: str, username: str) -> None:
        """Rename an account."""

    def enable(self, identity: str, *, enabled: bool) -> None:
        """Let an account log in, or not any more."""

    def set_password(self, identity: str, password: str) -> None:
        """Set the password of an account, which its user must change at the next log-in."""

    def log_out(self, identity: str) -> None:
        """End the sessions of an account there."""

    def delete(self, identity: str) -> None:
        """Delete an account; it is no error if it does not exist."""


class LocalProvider:
    """The absence of a provider: accounts live in the database of the service alone, so no account has an id here."""

    issuer = ""

    def create(self, account: NewAccount) -> str | None:
        """Return None: the hub stores the account itself."""
        return None

    def rename(self, identity: str, username: str) -> None:
        """Do nothing."""

    def enable(self, identity: str, *, enabled: bool) -> None:
        """Do nothing."""

    def set_password(self, identity: str, password: str) -> None:
        """Do nothing."""

    def log_out(self, identity: str) -> None:
        """Do nothing."""

    def delete(self, identity: str) -> None:
        """Do nothing."""


@contextmanager
def compensated() -> Iterator[list[Callable[[], None]]]:
    """Yield a list of steps; if the block raises, they run, the last one first.

    A step that fails adds a note to the error, and the other steps still run.
    """
    steps: list[Callable[[], None]] = []
    try:
        yield steps
    except BaseException as error:
        for step in reversed(steps):
            try:
                step()
            except Exception as failure:
                error.add_note(f"the account at the identity provider could not be restored: {failure}")
        raise
