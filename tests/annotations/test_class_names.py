"""Class names are read in all forms of YOLO tools, and other forms are rejected."""

import tempfile
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.annotations.class_names import data_yaml, read_class_names
from framedex.errors import InvalidInput
from tests.laws import examples


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("names: ['a', \"b\", c d, it's]\n", ["a", "b", "c d", "it's"]),
        ("nc: 2\nnames: [a, # first\n  b # second\n ]\nval: x\n", ["a", "b"]),
        ("names: [\n 'a',\n 'b',\n]\n", ["a", "b"]),
        ("names: {0: a, 1: 'b: c', 2: \"d, e\"}\n", ["a", "b: c", "d, e"]),
        ("names:\n- a\n- 'b'\n\n# x\n-  c # no\nval: x\n", ["a", "b", "c"]),
        ("names: [no, 1.10, ~, 0x1F, 2024-01-01, true]\n", ["no", "1.10", "~", "0x1F", "2024-01-01", "true"]),
        ("names:\n  0: |-\n    two\n    lines\n  1: 'one\n    line'\n", ["two\nlines", "one line"]),
        ("first: &cat cat\nnames: &all [*cat, dog]\nothers: *all\n", ["cat", "dog"]),
        ("names: !!python/tuple [!unknown a, !!int 1]\n", ["a", "1"]),
        ("--- \nnames: [a]\n---\nnames: [b]\n", ["a"]),
        ("names:\n  - traffic light\n  - -1\n", ["traffic light", "-1"]),
        ("train: x\nnames:\n  0: person\n  1: traffic light # x\ntrain: y", ["person", "traffic light"]),
        ("names:\r\n  0: a\r\n  '1': b#c\r\n", ["a", "b#c"]),
        ("names:\n  0: 'it''s \\n'\n  1: \"\\U0001F600\\x41\\u00e9\\n\\\"\\\\\\L\"\n", ["it's \\n", '😀Aé\n"\\\u2028']),
        ("\ufeff'names':\n  - a", ["a"]),
        ("names: []\n", []),
        ("names: {}", []),
        ("names:\n", []),
        ("names:\nnc: 0\n", []),
    ],
)
def test_yaml__forms(tmp_path: Path, text: str, names: list[str]) -> None:
    """Lists and mappings are read, in block or flow style, with and without quotes and comments."""
    (tmp_path / "data.yaml").write_bytes(text.encode())
    assert read_class_names(tmp_path / "data.yaml") == dict(enumerate(names))


def test_yaml__numbers_that_are_not_in_order(tmp_path: Path) -> None:
    """The keys of a mapping are class numbers in any order."""
    (tmp_path / "data.yaml").write_text("names:\n  7: b\n  3: a\n")
    assert read_class_names(tmp_path / "data.yaml") == {7: "b", 3: "a"}


@pytest.mark.parametrize(
    "text", ["", "x: 1\n", "- names\n", "other:\n  names: [a]\n", "names2: [a]\n", "# names: [a]\n"]
)
def test_yaml__without_names(tmp_path: Path, text: str) -> None:
    """A file without class names is another kind of file, and no error."""
    (tmp_path / "data.yaml").write_text(text)
    assert read_class_names(tmp_path / "data.yaml") is None


@pytest.mark.parametrize(
    "text",
    ["names: abc", "names: 'abc'", "names: [a, [b]]", "names: [a, {b: c}]", "names:\n  a: b\n", "names:\n  - [a]\n",
     "names:\n  0: {a: b}\n", "names: {-1: a}", "names: {9999999999: a}"],
)  # fmt: skip
def test_yaml__other_forms(tmp_path: Path, text: str) -> None:
    """Values that are not names are rejected, with the file and the valid form."""
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(InvalidInput, match=r"data\.yaml: 'names' must be a list of class names"):
        read_class_names(tmp_path / "data.yaml")


@pytest.mark.parametrize(
    "text",
    ["names: [a", 'names:\n  0: "a\\q"\n', "names:\n  0: *alias\n", 'names: ["a" "b"]', "names: [a]\n\t- b\n",
     'names:\n  0: "\\U00110000"\n', "names: &a [*a]", "names: [a]\n{[x]: y}: z\n"],
)  # fmt: skip
def test_yaml__that_is_none(tmp_path: Path, text: str) -> None:
    """Invalid YAML is rejected with its position, in one line."""
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(InvalidInput, match=r"^cannot read \S*data\.yaml as YAML: .*line \d") as error:
        read_class_names(tmp_path / "data.yaml")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("opening", ["[", "- ", "a: {", "? "])
def test_yaml__collections_within_each_other(tmp_path: Path, opening: str) -> None:
    """Deep nesting, which would overflow the parser's stack, is rejected."""
    (tmp_path / "data.yaml").write_text(f"names: [a]\nx:\n  {opening * 200_000}")
    with pytest.raises(InvalidInput, match="nested more than 32 deep"):
        read_class_names(tmp_path / "data.yaml")


def test_yaml__aliases_that_multiply(tmp_path: Path) -> None:
    """Nested aliases that stand for 4**20 names are rejected without expansion."""
    lines = ["a0: &a0 [cat]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 4)}]" for n in range(1, 21))]
    (tmp_path / "data.yaml").write_text("\n".join([*lines, "names: *a20"]))
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="'names' must be a list"):
        read_class_names(tmp_path / "data.yaml")
    assert tracemalloc.get_traced_memory()[1] < 2**25
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["data.yaml", "classes.txt"])
def test_names__of_any_size(tmp_path: Path, name: str) -> None:
    """A file that is too large is rejected."""
    with (tmp_path / name).open("wb") as file:
        file.truncate(2**24 + 1)
    with pytest.raises(InvalidInput, match="16,777,216 bytes"):
        read_class_names(tmp_path / name)


@examples(100)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), max_size=5))
def test_data_yaml__comes_back(names: list[str]) -> None:
    """Names of any text are restored."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "data.yaml").write_bytes(
            data_yaml(names, {"train": ["images"], "val": ["images/a", "b: c"]}).encode()
        )
        assert read_class_names(Path(folder) / "data.yaml") == dict(enumerate(names))


def test_text__a_name_a_line(tmp_path: Path) -> None:
    """A text file has one name in each line that is not empty."""
    (tmp_path / "classes.txt").write_bytes(b"\xef\xbb\xbfcat\r\n traffic light \r\n\r\n")
    assert read_class_names(tmp_path / "classes.txt") == {0: "cat", 1: "traffic light"}


@pytest.mark.parametrize("name", ["data.yaml", "classes.txt"])
def test_names__bytes_that_are_no_text(tmp_path: Path, name: str) -> None:
    """Invalid UTF-8 is an error that names the file."""
    (tmp_path / name).write_bytes(b"names: [\xff]")
    with pytest.raises(InvalidInput, match=name):
        read_class_names(tmp_path / name)
