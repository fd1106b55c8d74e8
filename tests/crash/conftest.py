import collections
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

from gateway import PROGRAM  # noqa: E402


def pytest_collection_modifyitems(config, items):
    if not PROGRAM.exists():
        raise pytest.UsageError(f"{PROGRAM} is not there: build it first, or set CLAWDFORGE_BIN")


def pytest_terminal_summary(terminalreporter):
    """The figures of all lives together, whichever worker had them."""
    total = collections.Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", None) == "call":
                total.update(dict(report.user_properties))
    for name in sorted(total):
        terminalreporter.write_line(f"{name:36} {total[name]:>10g}")


def pytest_configure(config):
    config.addinivalue_line("markers", "kinds(...): see tests/blackbox/conftest.py")
