"""The fake Label Studio of tests/io/live."""

from tests.io.live.conftest import site as site
