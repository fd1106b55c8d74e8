import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

from gateway import PROGRAM, Gateway  # noqa: E402


def pytest_collection_modifyitems(config, items):
    if not PROGRAM.exists():
        raise pytest.UsageError(f"{PROGRAM} is not there: build it first, or set CLAWDFORGE_BIN")


@pytest.fixture
def new_gateway(tmp_path):
    """Makes gateways that end with the test."""
    made = []

    def make(**options):
        made.append(Gateway(tmp_path / f"gateway-{len(made)}", **options))
        return made[-1].start()
    yield make
    for gateway in made:
        gateway.finish()
