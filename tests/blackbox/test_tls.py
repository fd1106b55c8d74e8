"""TLS with a certificate and a key from files."""
import ssl
import subprocess

import pytest

from gateway import refused_start, run_program
from wire import GET_HEALTH, Wire


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    place = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(place / "key.pem"),
         "-out", str(place / "cert.pem")], check=True, capture_output=True, timeout=60)
    return place


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
