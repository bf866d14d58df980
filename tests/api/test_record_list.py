"""Records and lists of them, as they are printed and as a notebook displays them."""

import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest

from framedex import Workspace
from framedex.api.record_list import RecordList
from framedex.records import DuplicateGroup, LabelCount, Tag
from tests.gallery import embedded
from tests.render.test_html import Outline


def tags(count: int) -> RecordList[Tag]:
    """Return so many tags, the last one with a long name."""
    time = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    names = [f"tag {number}" for number in range(count - 1)] + ["x" * 500]
    return RecordList(
        Tag(tag_id=str(number), name=name, created_at=time, created_by="ann", count=number)
        for number, name in enumerate(names)
    )


def test_record__is_a_line_or_two() -> None:
    """What is long is cut or counted, what has no value is left out; nothing is lost."""
    group = DuplicateGroup(
        group_id="g" * 36, threshold=0.96, similarity=0.98, media_ids=["m" * 36] * 300, file_names=["f"] * 300,
        paths=["p"] * 300, keep="m" * 36, keep_reason="It is the largest.", confidence=0.9,
    )  # fmt: skip
    text = repr(group)
    assert len(text) < 280
    assert "media_ids=[300 items]" in text
    assert f"group_id='{'g' * 36}'" in text
    assert str(tags(1)[0]).endswith("count=0")
    assert "x" * 130 not in repr(tags(1)[0])
    assert len(group.model_dump()["media_ids"]) == 300


def test_list__is_printed_by_lines() -> None:
    """Each record has a line; of many the first are shown and the rest is counted."""
    assert repr(RecordList()) == "[]"
    lines = repr(tags(23)).splitlines()
    assert len(lines) == 21
    assert lines[1].startswith(" Tag(tag_id='1', name='tag 1', created_at='2026-01-02 03:04:05+00:00'")
    assert lines[-1] == " … and 3 more]"


def test_list__is_a_list() -> None:
    """It is equal to a plain list, can be cut and pickled, and is a table for pandas."""
    found = tags(3)
    assert found == list(found)
    assert pickle.loads(pickle.dumps(found)) == found
    pytest.importorskip("pandas")
    assert found.to_pandas()["name"].tolist() == [tag.name for tag in found]


def test_list__in_a_notebook() -> None:
    """The fields that have a value are columns; names are text."""
    shown = Outline(RecordList([LabelCount(name="<b>", count=1234), LabelCount(name="b", count=1)])._repr_html_())
    assert [tag for tag, _ in shown.tags].count("tr") == 3
    assert {"<b>", "1,234", "name", "count"} <= set(shown.texts)
    assert "and 3 more" in tags(23)._repr_html_()
    assert "none" in RecordList()._repr_html_()


def test_workspace__in_a_notebook(tmp_path: Path) -> None:
    """A workspace shows a table of its datasets; an empty one says how to make one."""
    with Workspace(tmp_path) as workspace:
        assert "no datasets yet" in workspace._repr_html_()
        workspace.create_dataset("a & b", embedded([[1, 0], [0, 1]]))
        texts = Outline(workspace._repr_html_()).texts
        assert {"a & b", "2", "READY", str(tmp_path)} <= set(texts)
