"""Webhooks: what is told, to whom, how it is signed, and what becomes of it when the receiver fails,
hangs, lies or is away, and when the gateway is killed."""
import json
import os
import re
import signal
import subprocess
import sys

import pytest

from agents import NUMBERS
from answers import assert_error
from gateway import REPO, Gateway, run_program, wait_until
from hooks import NO_CONTENT, Receiver, is_signed_by, status, tls_context
from sessions import Talker, processes_below, session_options

ASK = {"permission": {"kind": "edit", "title": "Change it"}}
QUICK = {"webhook_max_pause_secs": 1, "webhook_timeout_secs": 2, "permission_timeout_secs": 1,
         "max_live_sessions": 500}
DELIVERY_KEYS = {"delivery_id", "app_name", "url", "type", "state", "attempts", "created_at",
                 "next_at", "ended_at", "last_status", "last_error"}


def make_certificate(place, name):
    place.mkdir(exist_ok=True)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=hooks", "-addext", f"subjectAltName={name}",
         "-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem")],
        check=True, capture_output=True, timeout=60)
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("hooks")


@pytest.fixture(scope="module")
def certificates(place):
    """One for this machine, one for another name, one that is not trusted."""
    made = {name: make_certificate(place / name, subject) for name, subject in
            {"right": "IP:127.0.0.1", "other": "DNS:other.example", "strange": "IP:127.0.0.1"}.items()}
    trusted = place / "trusted.pem"
    trusted.write_text("".join((made[name] / "cert.pem").read_text() for name in ("right", "other")))
    return made | {"trusted": trusted}


def new_gateway(place, env=None, **settings):
    options = session_options(place, **QUICK | settings)
    options["env"] |= env or {}
    return Gateway(place / f"gateway-{next(NUMBERS)}", **options)


@pytest.fixture(scope="module")
def forge(place, certificates):
    gateway = new_gateway(place, {"SSL_CERT_FILE": str(certificates["trusted"])}).start()
    yield gateway
    gateway.finish()
    assert not processes_below(gateway.root)


@pytest.fixture
def receiver():
    with Receiver() as it:
        yield it


class Hooked(Talker):
    """An app that may be called at some addresses."""

    def __init__(self, gateway, *urls):
        super().__init__(gateway, f"app-{next(NUMBERS)}")
        answer = gateway.admin.patch(f"/admin/tokens/{self.name}", json={"webhook_urls": list(urls)})
        assert answer.status_code == 200, answer.text
        self.secret = answer.json()["webhook_secret"]

    def ask(self, url):
        """A question of an agent is told to `url`; it expires by itself."""
        session = self.session(permission_mode="ask", webhook=url, webhook_events=["permission"])
        assert session.turn(ASK).status_code == 200
        return session

    def deliveries(self, **parameters):
        answer = self.gateway.admin.get("/admin/deliveries", params={"app": self.name, **parameters})
        assert answer.status_code == 200, answer.text
        found = answer.json()["deliveries"]
        assert all(set(one) == DELIVERY_KEYS for one in found)
        return found

    def one(self, **wanted):
        """Its only delivery, once it has become what is wanted."""
        def look():
            found, = self.deliveries() or [None]
            return found and all(found[key] == value for key, value in wanted.items()) and found
        return wait_until(look, f"a delivery is {wanted}: {self.deliveries()}")


def until_called(receiver, count=1):
    wait_until(lambda: len(receiver.calls) >= count, f"the receiver has {count} calls")
    return receiver.calls


# What is told

def test_a_question_is_told_once_and_signed(forge, receiver):
    app = Hooked(forge, receiver.url)
    session = app.ask(receiver.url + "/hook?key=1")
    delivery = app.one(state="delivered")
    call, = receiver.calls
    assert call.path == "/hook?key=1"
    assert call.headers["content-type"] == "application/json"
    assert call.headers["host"] == receiver.url.removeprefix("http://")
    assert is_signed_by(app.secret, call)
    assert abs(int(call.headers["webhook-timestamp"]) - delivery["created_at"]) < 600
    assert set(call.event) == {"type", "timestamp", "data"}
    assert call.event["type"] == "session.permission_asked" == delivery["type"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", call.event["timestamp"])
    assert call.event["data"]["session_id"] == session.id
    question = call.event["data"]["permission"]
    assert (question["title"], question["kind"], question["turn_index"]) == ("Change it", "edit", 1)
    assert question["options"] and question["expires_at"] >= question["asked_at"]
    assert delivery["delivery_id"] == call.id and delivery["attempts"] == 1
    assert (delivery["last_status"], delivery["last_error"]) == (204, None)
    assert (delivery["next_at"], delivery["app_name"]) == (None, app.name)


def test_without_a_webhook_nothing_is_told(forge, receiver):
    app = Hooked(forge, receiver.url)
    assert app.session(permission_mode="ask").turn(ASK).status_code == 200
    app.ask(receiver.url)
    app.one(state="delivered")
    assert len(receiver.calls) == 1


def test_a_rule_that_decides_tells_nothing(forge, receiver):
    app = Hooked(forge, receiver.url)
    session = app.session(permission_mode="approve_all", webhook=receiver.url,
                          webhook_events=["permission"])
    assert session.turn(ASK).status_code == 200
    assert app.deliveries() == []


@pytest.mark.parametrize("fields", [
    {"webhook": "BASE/x"}, {"webhook_events": ["permission"]}, {"webhook": 1},
    {"webhook": "BASE/x", "webhook_events": []}, {"webhook": "BASE/x", "webhook_events": ["all"]},
    {"webhook": "BASE/x", "webhook_events": "permission"}])
def test_wrong_fields_are_422(forge, receiver, fields):
    app = Hooked(forge, receiver.url)
    if isinstance(fields.get("webhook"), str):
        fields = fields | {"webhook": fields["webhook"].replace("BASE", receiver.url)}
    assert_error(app.create(**fields), 422, "validation_failed")


@pytest.mark.parametrize("url", [
    "BASE/other", "BASE/hooks-2", "BASE/hooks/../other", "BASE/hooks/%2e%2e/other", "BASE",
    "BASE/hooks%2f..%2fother", "http://127.0.0.1:1/hooks", "http://user@HOST/hooks",
    "https://HOST/hooks", "http://127.0.0.1@evil.example/hooks", "/hooks", "HOST/hooks",
    "http://evil.example/hooks?BASE/hooks", "http://localhost/hooks"])
def test_an_address_that_the_owner_did_not_name_is_422(forge, receiver, url):
    app = Hooked(forge, receiver.url + "/hooks")
    url = url.replace("BASE", receiver.url).replace("HOST", receiver.url.removeprefix("http://"))
    answer = app.create(webhook=url, webhook_events=["permission"])
    assert_error(answer, 422, "webhook_not_allowed")


def test_without_webhook_urls_there_are_no_webhooks(forge, receiver):
    app = Talker(forge, f"app-{next(NUMBERS)}")
    answer = app.create(webhook=receiver.url, webhook_events=["permission"])
    assert_error(answer, 422, "webhook_not_allowed")


# Receivers that misbehave

def test_one_that_fails_three_times_gets_it_at_last_with_the_same_id(forge):
    left = [500, 404, 429]
    with Receiver(lambda call: status(left.pop(0)) if left else NO_CONTENT) as receiver:
        app = Hooked(forge, receiver.url)
        app.ask(receiver.url)
        delivery = app.one(state="delivered")
        assert delivery["attempts"] == 4 and len(set(receiver.ids())) == 1
        assert len(receiver.calls) == 4
        assert all(is_signed_by(app.secret, call) for call in receiver.calls)
        assert len({call.body for call in receiver.calls}) == 1


def test_one_that_hangs_is_given_up_and_delays_no_other_app(forge, receiver):
    with Receiver() as silent:
        silent.behave = silent.hang
        stuck = Hooked(forge, silent.url)
        for _ in range(6):
            stuck.ask(silent.url)
        until_called(silent, 4)
        app = Hooked(forge, receiver.url)
        app.ask(receiver.url)
        app.one(state="delivered")
        found = wait_until(lambda: [one for one in stuck.deliveries() if one["last_error"]],
                           "an attempt was given up")
        assert "no answer within 2 s" in found[0]["last_error"]
        assert (found[0]["state"], found[0]["last_status"]) == ("waiting", None)
        assert forge.admin.delete(f"/admin/tokens/{stuck.name}").status_code == 200


@pytest.mark.parametrize("answer", [
    None, b"HTTP/1.1 200 OK\r\n", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000])
def test_one_that_closes_early_or_talks_nonsense_gets_it_again(forge, answer):
    answers = [answer]
    with Receiver(lambda call: answers.pop() if answers else NO_CONTENT) as receiver:
        app = Hooked(forge, receiver.url)
        app.ask(receiver.url)
        delivery = app.one(state="delivered")
        assert delivery["attempts"] == 2 and len(set(receiver.ids())) == 1


def endless(_):
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    while True:
        yield b"x" * 65536


def test_an_answer_without_an_end_is_cut(forge):
    with Receiver(endless) as receiver:
        app = Hooked(forge, receiver.url)
        app.ask(receiver.url)
        delivery = app.one(state="delivered")
        assert (delivery["attempts"], delivery["last_status"]) == (1, 200)


def test_a_head_without_an_end_is_not_an_answer(forge):
    def babble(_):
        yield b"HTTP/1.1 200 OK\r\n"
        while True:
            yield b"X: " + b"x" * 1000 + b"\r\n"
    with Receiver(babble) as receiver:
        app = Hooked(forge, receiver.url)
        app.ask(receiver.url)
        wait_until(lambda: app.deliveries()[0]["last_error"], "it was no answer")
        assert app.deliveries()[0]["state"] == "waiting"


def test_a_redirect_is_not_followed(forge, receiver):
    with Receiver(lambda call: status(302, b"Location: %s/\r\n" % receiver.url.encode())) as wrong:
        app = Hooked(forge, wrong.url, receiver.url)
        app.ask(wrong.url)
        until_called(wrong, 2)
        assert receiver.calls == []
        assert app.deliveries()[0]["last_error"] == "the receiver answered 302"


def test_one_that_is_not_there_gets_it_when_it_is(forge):
    with Receiver() as receiver:
        url = receiver.url
    app = Hooked(forge, url)
    app.ask(url)
    wait_until(lambda: app.deliveries()[0]["last_error"], "it is not there")


@pytest.mark.parametrize("name, works", [("right", True), ("other", False), ("strange", False)])
def test_tls_needs_a_certificate_that_is_trusted_and_of_this_host(forge, certificates, name, works):
    with Receiver(tls=tls_context(certificates[name])) as receiver:
        app = Hooked(forge, receiver.url)
        app.ask(receiver.url)
        if works:
            app.one(state="delivered")
            assert is_signed_by(app.secret, receiver.calls[0])
        else:
            wait_until(lambda: app.deliveries()[0]["last_error"], "it is refused")
            assert "certificate" in app.deliveries()[0]["last_error"]
            assert receiver.calls == []


# What lasts

def test_a_kill_in_the_middle_of_a_delivery_loses_nothing(place, receiver):
    gateway = new_gateway(place).start()
    try:
        app = Hooked(gateway, receiver.url)
        receiver.behave = receiver.hang
        app.ask(receiver.url)
        until_called(receiver)
        gateway.kill()
        receiver.behave = lambda call: NO_CONTENT
        receiver.let_go.set()
        gateway.start()
        until_called(receiver, 2)
        assert app.one(state="delivered") and len(set(receiver.ids())) == 1
        gateway.stop(signal.SIGTERM)
        gateway.start()
        assert len(app.deliveries(state="delivered")) == 1
        gateway.finish()
    finally:
        if gateway.process is not None:
            gateway.kill()


def test_a_dead_delivery_is_listed_and_can_be_tried_again(place):
    gateway = new_gateway(place, webhook_give_up_secs=1).start()
    try:
        with Receiver(lambda call: status(500)) as receiver:
            app = Hooked(gateway, receiver.url)
            app.ask(receiver.url)
            dead = app.one(state="dead")
            assert dead["ended_at"] and dead["last_status"] == 500
            assert dead["last_error"] == "the receiver answered 500"
            assert [one["delivery_id"] for one in app.deliveries(state="dead")] == [dead["delivery_id"]]
            assert app.deliveries(state="waiting") == app.deliveries(state="delivered") == []
            receiver.behave = lambda call: NO_CONTENT
            again = gateway.admin.post(f"/admin/deliveries/{dead['delivery_id']}/retry")
            assert (again.status_code, again.json()["state"]) == (200, "waiting"), again.text
            app.one(state="delivered")
            assert len(set(receiver.ids())) == 1
            again = gateway.admin.post(f"/admin/deliveries/{dead['delivery_id']}/retry")
            assert_error(again, 409, "delivery_not_dead")
            assert_error(gateway.admin.post("/admin/deliveries/none/retry"), 404,
                         "delivery_not_found")
        metrics = gateway.admin.get("/metrics").text
        assert 'clawdforge_deliveries_total{outcome="delivered"} 1' in metrics
        assert 'clawdforge_deliveries_total{outcome="dead"} 1' in metrics
        assert "clawdforge_deliveries_waiting" in metrics
        gateway.finish()
    finally:
        if gateway.process is not None:
            gateway.kill()


def test_pages_and_filters(forge, receiver):
    app = Hooked(forge, receiver.url)
    for _ in range(3):
        app.ask(receiver.url)
    wait_until(lambda: len(app.deliveries(state="delivered")) == 3, "all are delivered")
    found, cursor = [], None
    while True:
        parameters = {"app": app.name, "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = forge.admin.get("/admin/deliveries", params=parameters).json()
        assert page["count"] == len(page["deliveries"])
        found += [one["delivery_id"] for one in page["deliveries"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert sorted(found) == sorted(receiver.ids()) and len(found) == 3
    assert_error(forge.admin.get("/admin/deliveries", params={"state": "lost"}), 422,
                 "validation_failed")
    assert_error(app.get("/admin/deliveries"), 403, "wrong_token_kind")


def test_an_address_that_the_owner_takes_back_is_not_called_again(forge):
    with Receiver(lambda call: status(500)) as receiver:
        app = Hooked(forge, receiver.url)
        app.ask(receiver.url)
        until_called(receiver)
        answer = forge.admin.patch(f"/admin/tokens/{app.name}",
                                   json={"webhook_urls": ["https://other.example/"]})
        assert "webhook_secret" not in answer.json(), "the secret stays"
        dead = app.one(state="dead")
        assert "do not allow" in dead["last_error"]


def test_a_revoked_app_has_no_deliveries(forge):
    with Receiver(lambda call: status(500)) as receiver:
        app = Hooked(forge, receiver.url)
        app.ask(receiver.url)
        until_called(receiver)
        assert forge.admin.delete(f"/admin/tokens/{app.name}").status_code == 200
        assert app.deliveries() == []


# The secret

def test_the_secret_is_shown_once_and_can_be_replaced(forge, receiver):
    name = f"app-{next(NUMBERS)}"
    minted = forge.admin.post("/admin/tokens", json={"name": name, "webhook_urls": [receiver.url]})
    secret = minted.json()["webhook_secret"]
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    again = forge.admin.patch(f"/admin/tokens/{name}", json={"webhook_urls": [receiver.url]})
    assert "webhook_secret" not in again.json()
    assert again.json()["webhook_urls"] == [receiver.url + "/"]
    assert "whsec_" not in forge.admin.get("/admin/tokens").text
    assert "webhook_secret" not in forge.admin.post(f"/admin/tokens/{name}/rotate").json()
    replaced = forge.admin.post(f"/admin/tokens/{name}/webhook-secret")
    assert set(replaced.json()) == {"name", "webhook_secret"}
    assert replaced.json()["webhook_secret"] != secret
    events = forge.admin.get("/admin/events", params={"app": name}).json()["events"]
    assert "webhook_secret" in [event["event"] for event in events]
    assert "whsec_" not in json.dumps(events)
    assert "whsec_" not in forge.stderr()


def test_the_new_secret_signs_from_the_next_attempt_on(forge):
    left = [500]
    with Receiver(lambda call: status(left.pop()) if left else NO_CONTENT) as receiver:
        app = Hooked(forge, receiver.url)
        app.ask(receiver.url)
        until_called(receiver)
        answer = forge.admin.post(f"/admin/tokens/{app.name}/webhook-secret")
        until_called(receiver, 2)
        # It may have been signed just before the secret was replaced.
        new = answer.json()["webhook_secret"]
        assert is_signed_by(app.secret, receiver.calls[0])
        assert is_signed_by(new, receiver.calls[-1]) or is_signed_by(app.secret, receiver.calls[-1])


def test_without_webhook_urls_there_is_no_secret(forge):
    app = Talker(forge, f"app-{next(NUMBERS)}")
    answer = forge.admin.post(f"/admin/tokens/{app.name}/webhook-secret")
    assert_error(answer, 409, "no_webhooks")
    assert_error(forge.admin.post("/admin/tokens/absent/webhook-secret"), 404, "token_not_found")


def test_the_command_line_sets_and_replaces_them(forge):
    def cli(*arguments):
        return run_program(*arguments, "--data-dir", forge.data_dir, home=forge.root)
    name = f"cli-{next(NUMBERS)}"
    minted = cli("token", "mint", name, "--webhook-url", "https://a.example/x")
    assert minted.returncode == 0 and minted.stdout.startswith("cf_")
    assert "whsec_" in minted.stderr and "whsec_" not in minted.stdout
    shown = cli("token", "set", name, "--webhook-url", "https://a.example/x", "--webhook-url",
                "https://b.example")
    assert "https://b.example/" in shown.stdout and "whsec_" not in shown.stdout
    replaced = cli("token", "webhook-secret", name)
    assert replaced.returncode == 0 and replaced.stdout.startswith("whsec_")
    assert cli("token", "set", name, "--reset", "webhook_urls").returncode == 0


# The examples

@pytest.mark.parametrize("command", [
    [sys.executable, str(REPO / "examples" / "webhook_receiver.py")],
    ["node", str(REPO / "examples" / "webhook-receiver.mjs")]], ids=["python", "node"])
def test_the_examples_take_what_is_signed_and_nothing_else(forge, tmp_path, command):
    def begin(secret, port="0"):
        err = open(tmp_path / f"err-{next(NUMBERS)}", "w+b")  # pylint: disable=consider-using-with
        process = subprocess.Popen([*command, port], stdout=subprocess.PIPE, stderr=err,
                                   env={"PATH": os.environ["PATH"], "WEBHOOK_SECRET": secret})
        found = wait_until(lambda: re.search(rb"http://\S+", (tmp_path / err.name).read_bytes()),
                           "the example listens")
        return process, err, found.group().decode()

    process, err, url = begin("whsec_" + "A" * 43 + "=")
    try:
        app = Hooked(forge, url)
        app.ask(url)
        wait_until(lambda: b"signature is wrong" in (tmp_path / err.name).read_bytes(),
                   "another's signature is refused")
    finally:
        process.kill()
        process.communicate()
        err.close()
    process, err, _ = begin(app.secret, url.rpartition(":")[2])
    try:
        delivery = app.one(state="delivered")
        event = json.loads(process.stdout.readline())
        assert event["id"] == delivery["delivery_id"]
        assert event["type"] == "session.permission_asked"
    finally:
        process.kill()
        process.communicate()
        err.close()


def test_the_example_in_python_refuses_what_is_old_or_changed():
    sys.path.insert(0, str(REPO / "examples"))
    try:
        import webhook_receiver as example  # pylint: disable=import-outside-toplevel
    finally:
        sys.path.pop(0)
    # Made with another program: openssl dgst -sha256 -mac HMAC, of a key of the bytes 0 to 31.
    secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    body = '{"type":"job.succeeded","data":{"text":"grüße"}}'.encode()
    headers = {"webhook-id": "msg_1", "webhook-timestamp": "1700000000",
               "webhook-signature": "v1,rf1BBDn2IaUFVWspNJnRcApvqBHzdJU+MD94/hA6aWE="}
    assert example.verify(secret, headers, body, 1700000000)["type"] == "job.succeeded"
    for changed, at in [({}, 1700000301), ({}, 1699999699), ({"webhook-id": "msg_2"}, 1700000000),
                        ({"webhook-timestamp": "1700000001"}, 1700000000),
                        ({"webhook-timestamp": "x"}, 1700000000),
                        ({"webhook-signature": "v1,"}, 1700000000),
                        ({"webhook-signature": "v2,rf1B"}, 1700000000)]:
        with pytest.raises(example.Refused):
            example.verify(secret, headers | changed, body, at)
    with pytest.raises(example.Refused):
        example.verify(secret, headers, body + b" ", 1700000000)
