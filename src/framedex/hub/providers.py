"""Identity providers: where accounts live beside the database of the service."""

from typing import Protocol


class IdentityProvider(Protocol):
    """A provider of identities. Each method raises an :class:`framedex.Error` if it did nothing."""

    def create(self, username: str, password: str) -> str | None:
        """Create an account and return its id there; None if the database of the service is all there is."""

    def rename(self, identity: str | None, username: str) -> None:
        """Rename an account."""

    def enable(self, identity: str | None, *, enabled: bool) -> None:
        """Let an account log in, or not any more."""

    def set_password(self, identity: str | None, password: str) -> None:
        """Set the password of an account, which its user must change at the next log-in."""

    def log_out(self, identity: str | None) -> None:
        """End the sessions of an account there."""

    def delete(self, identity: str | None) -> None:
        """Delete an account; it is no error if there is none."""


class LocalProvider:
    """The database of the service itself, in whose transactions all is done."""

    def create(self, username: str, password: str) -> str | None:
        """Do nothing; see :class:`IdentityProvider`."""
        return None

    def rename(self, identity: str | None, username: str) -> None:
        """Do nothing."""

    def enable(self, identity: str | None, *, enabled: bool) -> None:
        """Do nothing."""

    def set_password(self, identity: str | None, password: str) -> None:
        """Do nothing."""

    def log_out(self, identity: str | None) -> None:
        """Do nothing."""

    def delete(self, identity: str | None) -> None:
        """Do nothing."""
