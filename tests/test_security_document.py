"""The table of threats: each row names tests that exist, and no rule is there twice."""

from collections import Counter

import pytest

from tests.test_conformance import ROOT, faults_of, rows

TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_rows__name_tests_that_exist() -> None:
    """Each row names one test or several, and nothing else; each is a test of the file that is named."""
    assert len(rows(TEXT)) > 20
    assert faults_of(TEXT) == []


def test_rows__are_there_once() -> None:
    """No rule of a threat is there twice."""
    counts = Counter((subject, rule) for _, subject, rule, _ in rows(TEXT))
    assert [row for row, count in counts.items() if count > 1] == []
