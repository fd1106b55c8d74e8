"""TLS with a certificate and a key from files."""
import signal
import socket
import ssl
import stat
import subprocess

import pytest

from gateway import SECONDS_MAX, refused_start, run_program, wait_until
from wire import GET_HEALTH, Wire


def make_certificate(place):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(place / "key.pem"),
         "-out", str(place / "cert.pem")], check=True, capture_output=True, timeout=60)
    return place


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("certificate"))


def settings(certificate):
    return {"CLAWDFORGE_TLS_CERT": str(certificate / "cert.pem"),
            "CLAWDFORGE_TLS_KEY": str(certificate / "key.pem")}


@pytest.fixture
def secure(new_gateway, certificate):
    gateway = new_gateway(env=settings(certificate), start=False)
    gateway.verify = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    return gateway.start()


def test_https_works_and_keeps_its_connection(secure):
    assert secure.scheme == "https"
    token = secure.mint("over-tls")["token"]
    with secure.client(token) as client:
        assert [client.get("/whoami").status_code for _ in range(10)] == [200] * 10
        assert client.get("/nowhere").status_code == 404
        assert client.post("/whoami", content=b"x" * 100000).status_code == 405


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_current_versions_of_tls_are_spoken(secure, version):
    secure.verify.minimum_version = version
    secure.verify.maximum_version = version
    assert secure.client().get("/healthz").status_code == 200


def test_plain_http_at_the_tls_port_gets_nothing_and_does_no_harm(secure):
    for noise in (GET_HEALTH, b"\x00" * 100, b"\x16\x03\x01\xff\xff" + b"a" * 70000):
        with Wire(secure) as wire:
            wire.send(noise)
            received = b""
            try:
                while piece := wire.socket.recv(4096):
                    received += piece
            except ConnectionResetError:
                pass
            assert b"200" not in received and b'"ok":true' not in received
    assert secure.client().get("/healthz").status_code == 200


def test_a_caller_that_hangs_up_during_the_handshake_does_no_harm(secure):
    for count in (0, 1, 5, 50):
        with Wire(secure) as wire:
            wire.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"a" * count)
    assert secure.client().get("/healthz").status_code == 200


def test_the_command_line_speaks_https_when_it_is_told_to(secure, certificate):
    done = run_program("token", "mint", "by-hand", "--data-dir", secure.data_dir,
                       home=secure.root, env=settings(certificate))
    assert done.returncode == 0, done.stderr
    assert secure.whoami(done.stdout.strip()) == 200


def test_the_command_line_does_not_trust_a_strange_certificate(secure):
    done = run_program("token", "list", "--data-dir", secure.data_dir, "--url", secure.url,
                       home=secure.root)
    assert done.returncode == 1, (done.stdout, done.stderr)


@pytest.mark.parametrize("change, code", [
    ({"CLAWDFORGE_TLS_KEY": None}, {2}), ({"CLAWDFORGE_TLS_CERT": None}, {2}),
    ({"CLAWDFORGE_TLS_CERT": "/nonexistent/cert.pem"}, {1, 2}),
    ({"CLAWDFORGE_TLS_KEY": "/dev/null"}, {1, 2})])
def test_half_a_setting_or_a_bad_file_stops_the_start(tmp_path, certificate, change, code):
    env = {k: v for k, v in (settings(certificate) | change).items() if v is not None}
    assert refused_start(tmp_path, env=env)[0] in code


# Forward secrecy

@pytest.mark.parametrize("ciphers, works", [
    ("ECDHE-ECDSA-AES128-GCM-SHA256", True), ("ECDHE-ECDSA-CHACHA20-POLY1305", True),
    ("ECDHE-ECDSA-AES128-SHA", False), ("ECDHE-ECDSA-AES256-SHA384", False)])
def test_tls_1_2_takes_only_modern_ciphers_with_forward_secrecy(secure, ciphers, works):
    secure.verify.maximum_version = ssl.TLSVersion.TLSv1_2
    secure.verify.set_ciphers(ciphers)
    assert speaks(secure) is works


def test_tls_1_2_does_not_encrypt_with_the_key_of_the_certificate(new_gateway, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")],
                   check=True, capture_output=True, timeout=60)
    gateway = new_gateway(env=settings(tmp_path), start=False)
    gateway.verify = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    gateway.start()
    assert speaks(gateway) is True
    gateway.verify.maximum_version = ssl.TLSVersion.TLSv1_2
    gateway.verify.set_ciphers("AES128-GCM-SHA256:AES256-GCM-SHA384")
    assert speaks(gateway) is False


def speaks(gateway):
    try:
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=SECONDS_MAX) as plain:
            with gateway.verify.wrap_socket(plain, server_hostname="127.0.0.1"):
                return True
    except ssl.SSLError:
        return False


# Another certificate without a restart

def served(gateway):
    return ssl.get_server_certificate(("127.0.0.1", gateway.port), timeout=SECONDS_MAX)


def test_sighup_reloads_the_certificate_and_keeps_the_old_one_if_the_new_is_bad(
        new_gateway, tmp_path):
    place, other = tmp_path / "now", tmp_path / "next"
    for directory in (place, other):
        directory.mkdir()
        make_certificate(directory)
    gateway = new_gateway(env=settings(place), start=False)
    gateway.verify = ssl.create_default_context(cafile=str(place / "cert.pem"))
    gateway.start()
    first = served(gateway)
    with gateway.client() as held:
        assert held.get("/healthz").status_code == 200

        (place / "cert.pem").write_bytes((other / "cert.pem").read_bytes())
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: any("was not reloaded" in line["message"]
                               for line in gateway.log_lines()), "it says so")
        assert served(gateway) == first, "the new one does not belong to the key"

        (place / "key.pem").write_bytes((other / "key.pem").read_bytes())
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: served(gateway) != first, "the new certificate is served")
        assert served(gateway) == (other / "cert.pem").read_text()
        assert held.get("/healthz").status_code == 200, "an open connection goes on"


# Who can read the files

def test_a_key_that_all_users_can_read_is_warned_of(new_gateway, tmp_path):
    make_certificate(tmp_path)
    for mode, warns in ((0o600, False), (0o640, False), (0o644, True)):
        (tmp_path / "key.pem").chmod(mode)
        gateway = new_gateway(env=settings(tmp_path))
        assert gateway.stop() == 0
        said = [line for line in gateway.log_lines() if "TLS key" in line["message"]]
        assert [line["level"] for line in said] == (["warn"] if warns else []), oct(mode)


def test_a_token_file_that_others_can_read_is_closed_with_a_warning(gateway):
    place = gateway.data_dir / "admin-token"
    token = gateway.admin_token
    place.chmod(0o644)
    gateway.restart()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    wait_until(lambda: "file of the admin token" in gateway.stderr(), "it says so")
    assert [line["level"] for line in gateway.log_lines()
            if "file of the admin token" in line["message"]] == ["warn"]
    assert gateway.whoami(token) == 200, "an upgrade goes on working"
