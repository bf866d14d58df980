"""What a filter may say."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from framedex.errors import InvalidFilter
from framedex.records import IssueType


def _encodable(text: str) -> str:
    # JSON can spell half of a surrogate pair, which no table can hold.
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("text must be valid Unicode, without lone surrogates")
    return text


UNTAGGED = "untagged"
"""In place of a tag: pictures that have none. No tag is named so."""
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, AfterValidator(_encodable)]


class _Node(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LabelsTest(_Node):
    """Pictures by their labels; ``is_not`` and ``not_one_of`` are the complements."""

    op: Literal["is", "is_not", "one_of", "not_one_of"]
    value: Text | list[Text]

    @property
    def names(self) -> list[str]:
        """The labels, whichever way they were given."""
        return [self.value] if isinstance(self.value, str) else self.value


class TagsTest(_Node):
    """Pictures that have any of some tags, each given by its id or name; ``untagged`` stands for having none."""

    op: Literal["is"]
    value: Text | list[Text]

    @property
    def names(self) -> list[str]:
        """The tags, whichever way they were given."""
        return [self.value] if isinstance(self.value, str) else self.value

    def numbers(self, tags: Mapping[str, int]) -> list[int]:
        """Return the numbers of the tags that there are, which *tags* has by id and by name."""
        return sorted({tags[name] for name in self.names if name in tags and name != UNTAGGED})


class IssuesTest(_Node):
    """Pictures with an issue of that confidence (``in``), or all others (``out``)."""

    op: Literal["issue"]
    value: IssueType
    mode: Literal["in", "out"] = "in"
    confidence_min: Share = 0.0
    confidence_max: Share = 1.0


class DuplicatesTest(_Node):
    """Members of near-duplicate groups formed at that similarity, or at the next stricter of the eight levels."""

    op: Literal["duplicates"]
    value: Share


class UniquenessTest(_Node):
    """Pictures whose uniqueness is at least the value."""

    op: Literal["uniqueness"]
    value: Share


class _Element(_Node):
    id: str | int | None = Field(default=None, exclude=True, description="ignored")


class Labels(_Element):
    """``{"labels": …}``."""

    labels: LabelsTest


class Tags(_Element):
    """``{"tags": …}``."""

    tags: TagsTest


class Issues(_Element):
    """``{"issues": …}``."""

    issues: IssuesTest


class Duplicates(_Element):
    """``{"duplicates": …}``."""

    duplicates: DuplicatesTest


class Uniqueness(_Element):
    """``{"uniqueness": …}``."""

    uniqueness: UniquenessTest


class AnyOf(_Element):
    """``{"any": […]}``: at least one of the elements holds; none of an empty list does."""

    any: "list[Element]"


class Not(_Element):
    """``{"not": …}``: the complement of an element, or of a list combined with AND."""

    negated: "Element | list[Element]" = Field(alias="not")


Element = Labels | Tags | Issues | Duplicates | Uniqueness | AnyOf | Not
Filter = tuple[Element, ...]
KEYS: dict[str, type[_Element]] = {
    "labels": Labels,
    "tags": Tags,
    "issues": Issues,
    "duplicates": Duplicates,
    "uniqueness": Uniqueness,
    "any": AnyOf,
    "not": Not,
}
AnyOf.model_rebuild()
Not.model_rebuild()
_ADAPTER: TypeAdapter[list[Element]] = TypeAdapter(list[Element])
_MAX_DEPTH = 50


def parse(vql: Sequence[Any] | None) -> Filter:
    """Return the filter that a JSON array describes; None and an empty array mean everything.

    Raises:
        InvalidFilter: with the JSON path of the part that is wrong.
    """
    if vql is None:
        return ()
    if isinstance(vql, str) or not isinstance(vql, Sequence):
        raise InvalidFilter("$", f"a filter is an array of objects, not {type(vql).__name__}")
    return tuple(_element(part, f"$[{place}]", 1) for place, part in enumerate(vql))


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of filters."""
    return _ADAPTER.json_schema(by_alias=True)


def _element(part: Any, path: str, depth: int) -> Element:
    if depth > _MAX_DEPTH:
        raise InvalidFilter(path, f"filters may be nested {_MAX_DEPTH} deep")
    if isinstance(part, tuple(KEYS.values())):
        return part  # type: ignore[return-value] # KEYS holds exactly the members of Element
    if not isinstance(part, dict):
        raise InvalidFilter(path, f"expected an object with one key, not {part!r}")
    keys = [key for key in part if key != "id"]
    if len(keys) != 1 or keys[0] not in KEYS:
        raise InvalidFilter(path, f"expected one key of {', '.join(KEYS)}; found {keys}")
    key = keys[0]
    inner = part[key]
    if key == "any":
        if not isinstance(inner, list):
            raise InvalidFilter(f"{path}.any", "expected an array")
        inner = [_element(each, f"{path}.any[{place}]", depth + 1) for place, each in enumerate(inner)]
    elif key == "not" and isinstance(inner, list):
        inner = [_element(each, f"{path}.not[{place}]", depth + 1) for place, each in enumerate(inner)]
    elif key == "not":
        inner = _element(inner, f"{path}.not", depth + 1)
    content = {**part, key: inner}
    try:
        return KEYS[key].model_validate(content)  # type: ignore[return-value] # as above
    except ValidationError as error:
        raise _as_filter_error(error, content, path) from None


def _as_filter_error(error: ValidationError, content: Any, path: str) -> InvalidFilter:
    """Return the first of the errors that lie deepest in the filter."""
    errors = error.errors(include_url=False)
    where = [_steps(each["loc"], content) for each in errors]
    deepest = max(range(len(errors)), key=lambda place: len(where[place]))
    found = errors[deepest]
    return InvalidFilter(path + "".join(where[deepest]), f"{found['msg']}; found {found['input']!r}")


def _steps(loc: Sequence[int | str], content: Any) -> list[str]:
    """Return pydantic's location as steps of a JSON path: it also names the members of unions, which are no steps."""
    steps: list[str] = []
    for part in loc:
        if isinstance(part, int):
            steps.append(f"[{part}]")
            content = content[part]
        elif isinstance(content, dict):
            steps.append(f".{part}")
            content = content.get(part)
    return steps
