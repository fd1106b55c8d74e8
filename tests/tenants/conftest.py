import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

from gateway import PROGRAM  # noqa: E402


def pytest_collection_modifyitems(config, items):
    if not PROGRAM.exists():
        raise pytest.UsageError(f"{PROGRAM} is not there: build it first, or set CLAWDFORGE_BIN")


def pytest_terminal_summary(terminalreporter):
    """The figures of docs/security.md."""
    rows = [dict(report.user_properties)["row"] for reports in terminalreporter.stats.values()
            for report in reports
            if getattr(report, "when", None) == "call" and "row" in dict(report.user_properties)]
    if rows:
        terminalreporter.write_line("| attack | well-behaved app p50 | p99 | resident |")
        terminalreporter.write_line("| --- | --- | --- | --- |")
    for row in rows:
        terminalreporter.write_line(row)


def pytest_configure(config):
    config.addinivalue_line("markers", "kinds(...): see tests/blackbox/conftest.py")
