"""Roles to assume for reading from buckets."""

from typing import NamedTuple


class AssumedRole(NamedTuple):
    """A role to assume for reading from buckets.

    Attributes:
        arn: the ARN of the role.
        external_id: the value that its trust policy may require, so that of all customers of a service only one can
            have the role assumed; None for no value. See "The confused deputy problem" in the IAM User Guide.
    """

    arn: str
    external_id: str | None = None
