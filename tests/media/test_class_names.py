"""Class names are read in the forms in which YOLO tools write them, and others are refused."""

from pathlib import Path

import pytest

from framedex.errors import InvalidInput
from framedex.media.class_names import read_class_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("names: ['a', \"b\", c d, it's]\n", ["a", "b", "c d", "it's"]),
        ("nc: 2\nnames: [a, # first\n  b # second\n ]\nval: x\n", ["a", "b"]),
        ("names: [\n 'a',\n 'b',\n]\n", ["a", "b"]),
        ("names: {0: a, 1: 'b: c', 2: \"d, e\"}\n", ["a", "b: c", "d, e"]),
        ("names:\n- a\n- 'b'\n\n# x\n-  c # no\nval: x\n- d\n", ["a", "b", "c"]),
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
    """Lists and mappings are read, in lines or in brackets, with and without quotes and comments."""
    (tmp_path / "data.yaml").write_bytes(text.encode())
    assert read_class_names(tmp_path / "data.yaml") == dict(enumerate(names))


def test_yaml__numbers_that_are_not_in_order(tmp_path: Path) -> None:
    """The numbers of a mapping are those of the classes, whatever their order."""
    (tmp_path / "data.yaml").write_text("names:\n  7: b\n  3: a\n")
    assert read_class_names(tmp_path / "data.yaml") == {7: "b", 3: "a"}


@pytest.mark.parametrize(
    "text", ["", "x: 1\n", "- names\n", "other:\n  names: [a]\n", "names2: [a]\n", "# names: [a]\n"]
)
def test_yaml__without_names(tmp_path: Path, text: str) -> None:
    """A file without names of classes is one of another kind, and no error."""
    (tmp_path / "data.yaml").write_text(text)
    assert read_class_names(tmp_path / "data.yaml") is None


@pytest.mark.parametrize(
    "text",
    ["names: abc", "names: 'abc'", "names: &x [a]", "names: [a", "names: [a, [b]]", "names: [a, {b: c}]",
     "names:\n  a: b\n", "names:\n  0: |\n    text\n", 'names:\n  0: "a\\q"\n', "names:\n  0: *alias\n",
     "names:\n  0: 'a\n    b'\n", "names:\n  - [a]\n", 'names: ["a" "b"]', 'names:\n  0: "\\U00110000"\n'],
)  # fmt: skip
def test_yaml__other_forms(tmp_path: Path, text: str) -> None:
    """What is written in another way is refused, with the file and what would be right."""
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(InvalidInput, match=r"data\.yaml: 'names' must be a list of class names"):
        read_class_names(tmp_path / "data.yaml")


def test_text__a_name_a_line(tmp_path: Path) -> None:
    """A text file has a name in each line that is not empty."""
    (tmp_path / "classes.txt").write_bytes(b"\xef\xbb\xbfcat\r\n traffic light \r\n\r\n")
    assert read_class_names(tmp_path / "classes.txt") == {0: "cat", 1: "traffic light"}


@pytest.mark.parametrize("name", ["data.yaml", "classes.txt"])
def test_names__bytes_that_are_no_text(tmp_path: Path, name: str) -> None:
    """Bytes that are no UTF-8 are an error that names the file."""
    (tmp_path / name).write_bytes(b"names: [\xff]")
    with pytest.raises(InvalidInput, match=name):
        read_class_names(tmp_path / name)
