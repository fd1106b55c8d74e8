import tempfile

import pytest
from hypothesis import configuration

from gateway import PROGRAM, Gateway

# What it remembers between runs belongs to the machine, not into the tree.
configuration.set_hypothesis_home_dir(tempfile.gettempdir() + "/clawdforge-hypothesis")


def pytest_collection_modifyitems(config, items):
    if not PROGRAM.exists():
        raise pytest.UsageError(f"{PROGRAM} is not there: build it first, or set CLAWDFORGE_BIN")
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(120))
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
    # The long groups first, so that no worker is left with one at the end.
    items.sort(key=lambda item: group_of(item) == item.nodeid)


def group_of(item):
    """The tests that must run in one process, in their order: those of a file that share a gateway,
    for each kind of agent. A test that shares nothing is a group of its own."""
    fixtures = item._fixtureinfo.name2fixturedefs.items()
    if not any(fixture.scope in ("module", "class") for name, overridden in fixtures
               for fixture in overridden if name != "agent_kind"):
        return item.nodeid
    callspec = getattr(item, "callspec", None)
    return item.module.__name__ + (callspec.params.get("agent_kind", "") if callspec else "")


def pytest_configure(config):
    config.addinivalue_line("markers", "kinds(...): the kinds of agent that a test holds for")


def pytest_generate_tests(metafunc):
    """The tests of a file run on each of its KINDS of agent: see sessions.py."""
    if "agent_kind" not in metafunc.fixturenames:
        return
    kinds = getattr(metafunc.module, "KINDS", ("acp",))
    mark = metafunc.definition.get_closest_marker("kinds")
    if mark:
        kinds = [kind for kind in kinds if kind in mark.args]
    metafunc.parametrize("agent_kind", kinds, scope="module")


@pytest.fixture
def new_gateway(tmp_path):
    """Makes gateways that end, and are checked, with the test."""
    made = []

    def make(*, start=True, **options):
        gateway = Gateway(tmp_path / f"gateway-{len(made)}", **options)
        made.append(gateway)
        return gateway.start() if start else gateway

    yield make
    failures = []
    for gateway in made:
        try:
            gateway.finish()
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)


@pytest.fixture
def gateway(new_gateway):
    """A gateway for one test alone."""
    return new_gateway()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One gateway for the tests of a file that leave nothing behind."""
    gateway = Gateway(tmp_path_factory.mktemp("shared") / "gateway").start()
    yield gateway
    gateway.finish()


@pytest.fixture(scope="module")
def shared_app(shared):
    """The token of an app of the shared gateway."""
    return shared.mint("shared-app")["token"]
