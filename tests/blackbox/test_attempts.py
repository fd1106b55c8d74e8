"""Guessing tokens is slowed down for each address, and only guessing."""
import secrets

from answers import assert_error
from gateway import SANITIZED
from wire import Wire, bearer, request

FREE_ATTEMPTS = 20


def guess(gateway, count, source):
    """`count` different wrong tokens from one address; gives the answers."""
    with Wire(gateway, source) as wire:
        return [wire.ask(request("GET /whoami", bearer("cf_" + secrets.token_urlsafe(32))))
                for _ in range(count)]


def ask(gateway, token, source, path="/whoami"):
    with Wire(gateway, source) as wire:
        return wire.ask(request(f"GET {path}", bearer(token)))


def test_twenty_different_wrong_tokens_are_free_and_then_it_is_429(gateway):
    answers = guess(gateway, FREE_ATTEMPTS + 10, "127.0.0.2")
    assert [a.status for a in answers[:FREE_ATTEMPTS]] == [401] * FREE_ATTEMPTS
    assert answers[-1].status == 429
    assert_error(answers[-1], 429, "too_many_attempts")
    assert 1 <= int(answers[-1].header("Retry-After")) <= 60


def test_a_stale_token_repeated_for_ever_is_not_guessing(gateway):
    stale = "cf_" + "S" * 43
    with Wire(gateway, "127.0.0.2") as wire:
        statuses = {wire.ask(request("GET /whoami", bearer(stale))).status for _ in range(200)}
    assert statuses == {401}
    assert ask(gateway, gateway.admin_token, "127.0.0.2").status == 200


def test_no_token_at_all_is_not_guessing(gateway):
    with Wire(gateway, "127.0.0.2") as wire:
        assert {wire.ask(request("GET /whoami")).status for _ in range(100)} == {401}


def test_an_app_goes_on_working_while_its_address_is_slowed_down(gateway):
    token = gateway.mint("neighbour")["token"]
    guess(gateway, FREE_ATTEMPTS + 10, "127.0.0.2")
    for _ in range(50):
        assert ask(gateway, token, "127.0.0.2").status == 200


def test_the_admin_goes_on_working_while_its_address_is_slowed_down(gateway):
    assert guess(gateway, FREE_ATTEMPTS + 20, "127.0.0.2")[-1].status == 429
    for _ in range(10):
        assert ask(gateway, gateway.admin_token, "127.0.0.2", "/admin/tokens").status == 200
    assert guess(gateway, 1, "127.0.0.2")[0].status == 429, "what is right forgives nothing"


def test_each_address_is_counted_for_itself(gateway):
    guess(gateway, FREE_ATTEMPTS + 10, "127.0.0.2")
    assert {a.status for a in guess(gateway, 5, "127.0.0.3")} == {401}


def test_paths_without_a_token_stay_open(gateway):
    guess(gateway, FREE_ATTEMPTS + 10, "127.0.0.2")
    with Wire(gateway, "127.0.0.2") as wire:
        assert wire.ask(request("GET /healthz", bearer("cf_x"))).status == 200
        assert wire.ask(request("GET /nowhere")).status == 404


def test_the_forwarded_address_is_the_one_that_counts(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_TRUSTED_PROXIES": "127.0.0.1/32",
                               "CLAWDFORGE_ALLOW_CIDRS": "203.0.113.0/24,2001:db8::/32"})

    def statuses(address_of):
        with Wire(gateway) as wire:
            return [wire.ask(request("GET /whoami", bearer("cf_" + secrets.token_urlsafe(32)),
                                     f"X-Forwarded-For: {address_of(i)}")).status
                    for i in range(FREE_ATTEMPTS + 10)]
    assert statuses(lambda i: "203.0.113.7")[-1] == 429
    assert set(statuses(lambda i: f"203.0.113.{100 + i}")) == {401}
    # One caller owns all of a /64, so its addresses count as one.
    assert statuses(lambda i: f"2001:db8::{i + 1:x}")[-1] == 429
    assert set(statuses(lambda i: f"2001:db8:0:{i + 1:x}::1")) == {401}


def test_guessing_from_very_many_addresses_costs_no_memory_to_speak_of(new_gateway):
    gateway = new_gateway(env={"CLAWDFORGE_TRUSTED_PROXIES": "127.0.0.1/32",
                               "CLAWDFORGE_ALLOW_CIDRS": "10.0.0.0/8"})
    statm = f"/proc/{gateway.process.pid}/statm"
    before = int(open(statm).read().split()[1])
    for block in range(20):
        with Wire(gateway) as wire:
            wire.send(b"".join(
                request("GET /whoami", bearer(f"cf_{block}-{i}"),
                        f"X-Forwarded-For: 10.{block}.{i >> 8}.{i & 255}") for i in range(1000)))
            assert {wire.read().status for _ in range(1000)} <= {401, 429}
    grown_kb = (int(open(statm).read().split()[1]) - before) * 4
    assert grown_kb < (1024 if SANITIZED else 16) * 1024
