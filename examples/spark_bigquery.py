"""Spark, BigQuery, Databricks: Arrow in, Arrow out. DuckDB stands in for the warehouse here.

How-to: docs/howto/spark-bigquery.md
"""

from __future__ import annotations

import duckdb

import rarevote

VOTES = """
SELECT * FROM (VALUES (1, 'ann', 'ok'), (1, 'bob', 'ok'), (1, 'cy', 'defect'),
                      (2, 'ann', 'defect'), (2, 'bob', 'ok'), (2, 'cy', 'defect')) AS votes(task, worker, label)
"""


def main() -> None:
    """A relation streams its rows; ids keep their type."""
    result = rarevote.fit(duckdb.sql(VOTES)).decide()
    print(dict(zip(result.tasks.tolist(), result.labels.tolist(), strict=True)))


if __name__ == "__main__":
    main()
