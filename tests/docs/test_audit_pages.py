"""The evidence of the page on audits says what was asked for."""

from __future__ import annotations

from benchmarks.evidence import read


def test_certificates_were_true() -> None:
    rows = read("audit")
    assert {row["score"] for row in rows} >= {"sampled", "reported"}
    assert len({row["crowd"] for row in rows}) >= 9
    for row in rows:
        assert int(row["audits"]) >= 400
        assert not row["true"] or float(row["true"]) >= 0.95, row["crowd"]


def test_bad_sets_were_seldom_certified() -> None:
    rows = read("audit_boundary")
    assert len(rows) == 9
    for row in rows:
        n = int(row["audits"])
        assert n >= 2000
        assert float(row["false"]) <= 0.05 + 3 * (0.05 * 0.95 / n) ** 0.5, row
