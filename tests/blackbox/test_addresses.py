"""Which addresses may call: the global list, an app's own list, and proxies."""
import socket

import httpx
import pytest

from answers import assert_error
from gateway import SECONDS_MAX, Gateway, wait_until
from wire import GET_HEALTH, Wire, bearer, request

PROXIED = {"CLAWDFORGE_TRUSTED_PROXIES": "127.0.0.1/32",
           "CLAWDFORGE_ALLOW_CIDRS": "203.0.113.0/24,2001:db8::/32"}


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6 loopback")


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("proxied") / "gateway", env=PROXIED).start()
    yield gateway
    gateway.finish()


def forwarded(gateway, *values, path="/healthz", token=None, source=None):
    """The answer to a request with one X-Forwarded-For header for each value."""
    headers = [f"X-Forwarded-For: {value}" for value in values]
    if token:
        headers.append(bearer(token))
    with Wire(gateway, source) as wire:
        return wire.ask(request(f"GET {path}", *headers))


# An app's own list

@pytest.mark.parametrize("cidrs, allowed, refused", [
    (["127.0.0.2/32"], ["127.0.0.2"], ["127.0.0.1", "127.0.0.3"]),
    (["127.0.0.2"], ["127.0.0.2"], ["127.0.0.1"]),
    (["127.0.0.2/31"], ["127.0.0.2", "127.0.0.3"], ["127.0.0.1", "127.0.0.4"]),
    (["127.1.0.0/16", "127.0.0.3/32"], ["127.1.2.3", "127.0.0.3"], ["127.0.0.1", "127.2.0.0"]),
    (["127.0.0.0/8"], ["127.0.0.1", "127.255.255.254"], []),
    (["0.0.0.0/0"], ["127.0.0.1"], []),
    (["::/0"], [], ["127.0.0.1"]),
    (["10.0.0.0/8"], [], ["127.0.0.1"]),
    (["::ffff:127.0.0.2/128"], ["127.0.0.2"], ["127.0.0.1"]),
    ([], ["127.0.0.1", "127.0.0.2"], [])])
def test_an_app_is_narrowed_by_its_own_list_loopback_included(gateway, cidrs, allowed, refused):
    token = gateway.mint("narrowed", ip_cidrs=cidrs)["token"]
    for source in allowed:
        assert gateway.whoami(token, source) == 200, source
    for source in refused:
        answer = gateway.client(token, source).get("/whoami")
        assert_error(answer, 403, "address_not_allowed")


def test_an_apps_list_does_not_touch_others_nor_the_paths_without_a_token(gateway):
    far = gateway.mint("far", ip_cidrs=["10.0.0.0/8"])["token"]
    near = gateway.mint("near")["token"]
    assert gateway.whoami(far) == 403
    assert gateway.whoami(near) == 200
    assert gateway.client(far).get("/healthz").status_code == 200


def test_every_loopback_address_is_allowed_although_the_list_names_others(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_ALLOW_CIDRS": "10.0.0.0/8"})
    for source in ("127.0.0.1", "127.9.9.9"):
        assert gateway.client(source=source).get("/healthz").status_code == 200


def test_the_old_name_of_the_list_works_too(new_gateway):
    gateway = new_gateway(env={"ALLOW_CIDRS": "203.0.113.0/24",
                               "CLAWDFORGE_TRUSTED_PROXIES": "127.0.0.1/32"})
    assert forwarded(gateway, "203.0.113.7").status == 200
    assert_error(forwarded(gateway, "198.51.100.1"), 403, "address_not_allowed")


# Behind a proxy

@pytest.mark.parametrize("values, status", [
    ([], 200),
    (["203.0.113.7"], 200),
    (["203.0.113.255"], 200),
    (["203.0.114.0"], 403),
    (["198.51.100.1"], 403),
    (["203.0.113.7, 198.51.100.1"], 403),
    (["198.51.100.1, 203.0.113.7"], 200),
    (["198.51.100.1,203.0.113.7"], 200),
    (["198.51.100.1 ,\t203.0.113.7 "], 200),
    (["203.0.113.7, 127.0.0.1"], 200),
    (["198.51.100.1, 127.0.0.1"], 403),
    (["203.0.113.7, 198.51.100.1, 127.0.0.1, 127.0.0.1"], 403),
    (["127.0.0.1"], 200),
    (["::ffff:203.0.113.7"], 200),
    (["::ffff:198.51.100.1"], 403),
    (["::ffff:127.0.0.1, 203.0.113.7"], 200),
    (["198.51.100.1, ::ffff:127.0.0.1"], 403),
    (["2001:db8::5"], 200),
    (["2001:DB8:0:0::5"], 200),
    (["2001:db9::5"], 403),
    (["nonsense, 203.0.113.7"], 200),
    (["203.0.113.7", "198.51.100.1"], 403),
    (["198.51.100.1", "203.0.113.7"], 200),
    (["203.0.113.7", "127.0.0.1"], 200)])
def test_the_rightmost_untrusted_address_counts(proxied, values, status):
    answer = forwarded(proxied, *values)
    assert answer.status == status
    if status == 403:
        assert_error(answer, 403, "address_not_allowed")


@pytest.mark.parametrize("value", [
    "nonsense", "203.0.113.7, nonsense", "203.0.113.7, 1.2.3", "203.0.113.7, 203.0.113.0/24",
    "203.0.113.7, 203.0.113.7.example", "203.0.113.7, 0203.0.113.7", "203.0.113.7, unknown",
    "203.0.113.7, 127.0.0.1.", "203.0.113.7, fe80::1%eth0", "203.0.113.7, -"])
def test_garbage_where_the_address_should_be_is_never_an_allowed_one(proxied, value):
    assert forwarded(proxied, value).status in (400, 403)


def test_a_very_long_chain_does_no_harm(proxied):
    assert forwarded(proxied, ", ".join(["198.51.100.1"] * 900 + ["203.0.113.7"])).status == 200
    assert forwarded(proxied, ", ".join(["203.0.113.7"] * 900 + ["198.51.100.1"])).status == 403


def test_the_header_is_ignored_from_anybody_but_a_proxy(proxied):
    token = proxied.mint("behind", ip_cidrs=["203.0.113.0/24"])["token"]
    assert forwarded(proxied, "198.51.100.1", source="127.0.0.2").status == 200
    assert forwarded(proxied, "203.0.113.7", path="/whoami", token=token).status == 200
    spoofed = forwarded(proxied, "203.0.113.7", path="/whoami", token=token, source="127.0.0.2")
    assert_error(spoofed, 403, "address_not_allowed")


def test_without_proxies_the_header_is_ignored(shared):
    assert forwarded(shared, "198.51.100.1").status == 200
    assert forwarded(shared, "nonsense").status == 200


def test_an_app_is_narrowed_by_the_forwarded_address(proxied):
    token = proxied.mint("one-host", ip_cidrs=["203.0.113.7/32", "2001:db8::7/128"])["token"]
    for value, status in (("203.0.113.7", 200), ("203.0.113.8", 403), ("2001:db8::7", 200),
                          ("2001:db8::8", 403), ("::ffff:203.0.113.7", 200)):
        assert forwarded(proxied, value, path="/whoami", token=token).status == status, value


def test_the_log_has_the_proxys_address_and_the_callers(proxied):
    with Wire(proxied) as wire:
        wire.ask(request("GET /healthz", "X-Forwarded-For: 203.0.113.7", "X-Request-Id: far-away"))
        wire.ask(request("GET /healthz", "X-Request-Id: near-by"))

    def logged(name):
        return next((line for line in proxied.requests_logged() if line["request_id"] == name), None)
    wait_until(lambda: logged("near-by"), "both are logged")
    assert (logged("far-away")["peer"], logged("far-away")["origin"]) == ("127.0.0.1", "203.0.113.7")
    assert logged("near-by")["peer"] == "127.0.0.1" and "origin" not in logged("near-by")


# IPv6

@needs_ipv6
def test_it_listens_on_ipv6_loopback(new_gateway):
    gateway = new_gateway(listen="[::1]:0")
    assert gateway.host == "[::1]"
    assert httpx.get(gateway.url + "/healthz", timeout=SECONDS_MAX,
                     trust_env=False).status_code == 200


@needs_ipv6
def test_on_a_dual_stack_socket_a_mapped_address_is_the_ipv4_address(new_gateway):
    gateway = new_gateway(listen="[::]:0")
    gateway.host = "127.0.0.1"
    gateway.url = f"http://127.0.0.1:{gateway.port}"
    try:
        with Wire(gateway) as wire:
            assert wire.ask(GET_HEALTH).status == 200
    except ConnectionRefusedError:
        pytest.skip("it listens on IPv6 alone")
    token = gateway.mint("mapped", ip_cidrs=["127.0.0.2/32"])["token"]
    assert gateway.whoami(token, "127.0.0.2") == 200
    assert gateway.whoami(token, "127.0.0.1") == 403
