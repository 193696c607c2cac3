"""The page on audits says what the evidence says, and the evidence says what was asked for."""

from __future__ import annotations

from benchmarks import audit_pages


def test_the_page_is_up_to_date() -> None:
    text = audit_pages.PAGE.read_text(encoding="utf-8")
    assert text == audit_pages.filled(), "the figures changed: run python -m benchmarks.audit_pages"


def test_certificates_were_true() -> None:
    rows = audit_pages.evidence_of("audit")
    assert {row["score"] for row in rows} >= {"sampled", "reported"}
    assert len({row["crowd"] for row in rows}) >= 9
    for row in rows:
        assert int(row["audits"]) >= 400
        assert not row["true"] or float(row["true"]) >= 0.95, row["crowd"]


def test_bad_sets_were_seldom_certified() -> None:
    rows = audit_pages.evidence_of("audit_boundary")
    assert len(rows) == 9
    for row in rows:
        n = int(row["audits"])
        assert n >= 2000
        assert float(row["false"]) <= 0.05 + 3 * (0.05 * 0.95 / n) ** 0.5, row
