"""POST /files: its fields, limits, statuses and bodies, and that nothing stays of what failed."""
import hashlib
import os
import re
import resource
import sqlite3

import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies

from answers import assert_error, header_of, status_of
from gateway import NO_TLS, SANITIZED, Gateway, wait_until
from test_tls import certificate, secure  # fixtures
from wire import GET_HEALTH, Wire, bearer, request, with_body

MIB = 1024 * 1024
CAP = 3 * MIB
FRAME_BYTES_MAX = MIB  # what a form may hold besides the file
BOUNDARY = "----boundary-7f"
PART_HEADER_BYTES_MAX = 8 * 1024
PART_HEADERS_MAX = 16
PARTS_MAX = 64
TOKEN = re.compile(r"ff_[A-Za-z0-9_-]{43}")


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    gateway = Gateway(tmp_path_factory.mktemp("files") / "gateway",
                      flags=["--max-file-bytes", str(CAP)]).start()
    yield gateway
    gateway.finish()


@pytest.fixture(scope="module")
def token(forge):
    return forge.mint("files-app")["token"]


# Forms

def part(name, content, filename=None, headers=()):
    """One part as bytes, without the boundary before it."""
    disposition = f'Content-Disposition: form-data; name="{name}"'
    if filename is not None:
        disposition += f'; filename="{filename}"'
    lines = [disposition, *headers, "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + content


def form(*parts, boundary=BOUNDARY, end="--\r\n"):
    mark = b"--" + boundary.encode()
    return b"".join(mark + b"\r\n" + each + b"\r\n" for each in parts) + mark + end.encode()


def form_type(boundary=BOUNDARY):
    return f"Content-Type: multipart/form-data; boundary={boundary}"


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def post(gateway, token, body, *headers, content_type=form_type(), target="/files"):
    """Over a connection of its own, which is gone afterwards."""
    with Wire(gateway) as wire:
        return wire.ask(with_body(f"POST {target}", body, bearer(token), content_type, *headers))


def assert_uploaded(answer, size, ttl_secs=3600):
    """A good answer; gives the file's token."""
    assert status_of(answer) == 200, getattr(answer, "body", None) or answer.content
    assert header_of(answer, "Content-Type") == "application/json"
    body = answer.json()
    assert set(body) == {"file_token", "ttl_secs", "size"}
    assert (body["ttl_secs"], body["size"]) == (ttl_secs, size)
    assert TOKEN.fullmatch(body["file_token"])
    return body["file_token"]


# What is kept

def digest_of(file_token):
    return hashlib.sha256(file_token.encode()).hexdigest()


def rows(gateway, where="1"):
    ledger = sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10)
    try:
        ledger.row_factory = sqlite3.Row
        return [dict(row) for row in ledger.execute(f"SELECT * FROM uploads WHERE {where}")]
    finally:
        ledger.close()


def change(gateway, sql):
    ledger = sqlite3.connect(gateway.data_dir / "clawdforge.db", timeout=10, isolation_level=None)
    ledger.execute(sql)
    ledger.close()


def names(gateway):
    place = gateway.data_dir / "uploads"
    return sorted(os.listdir(place)) if place.exists() else []


def content_of(gateway, file_token):
    return (gateway.data_dir / "uploads" / digest_of(file_token)).read_bytes()


def kept(gateway):
    """All that is there; the ledger and the directory must agree."""
    files = names(gateway)
    assert files == sorted(row["file_token_sha256"] for row in rows(gateway))
    return files


def assert_refused(gateway, token, body, status, code, **options):
    """Refused, and nothing is kept of it."""
    before = kept(gateway)
    answer = post(gateway, token, body, **options)
    problem = assert_error(answer, status, code)
    wait_until(lambda: names(gateway) == before, "the directory as it was")
    assert kept(gateway) == before
    return problem


# Good files

@pytest.mark.parametrize("size", [0, 1, 2, 70, 4096, 256 * 1024 - 1, 256 * 1024, 512 * 1024 + 1,
                                  MIB, CAP - 1, CAP])
def test_a_file_of_any_size_up_to_the_cap_is_kept_as_it_was_sent(forge, token, size):
    content = os.urandom(size)
    answer = post(forge, token, form(part("file", content, "a.bin")))
    file_token = assert_uploaded(answer, size)
    assert content_of(forge, file_token) == content
    assert os.stat(forge.data_dir / "uploads" / digest_of(file_token)).st_mode & 0o077 == 0


def test_an_ordinary_client_can_upload_and_goes_on_with_its_connection(forge, token):
    with forge.client(token) as client:
        for content in (b"one", os.urandom(MIB)):
            answer = client.post("/files", files={"file": ("notes.md", content, "text/markdown")},
                                 data={"ttl_secs": "60"})
            file_token = assert_uploaded(answer, len(content), 60)
            assert content_of(forge, file_token) == content
            assert client.get("/whoami").status_code == 200


def test_the_row_holds_the_digest_and_never_the_token(forge, token):
    file_token = assert_uploaded(
        post(forge, token, form(part("file", b"abc", "Report.Final.PDF"))), 3)
    row, = rows(forge, f"file_token_sha256 = '{digest_of(file_token)}'")
    assert (row["app_name"], row["size"], row["extension"]) == ("files-app", 3, ".pdf")
    assert row["expires_at"] - row["created_at"] == 3600
    assert row["instance_id"]
    for place in (forge.data_dir / "clawdforge.db", forge.data_dir / "clawdforge.db-wal",
                  forge.stderr_file):
        assert file_token[3:].encode() not in place.read_bytes()


def test_two_uploads_of_the_same_file_have_two_tokens(forge, token):
    body = form(part("file", b"abc", "a.txt"))
    first, second = (assert_uploaded(post(forge, token, body), 3) for _ in range(2))
    assert first != second
    assert content_of(forge, first) == content_of(forge, second) == b"abc"


@pytest.mark.parametrize("content", [
    b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"one\r\ntwo\r\n", b"\x00" * 10, b"--" + BOUNDARY.encode(),
    b"--" + BOUNDARY.encode() + b"--", b"\n--" + BOUNDARY.encode() + b"--\r\n",
    b"\r--" + BOUNDARY.encode(), b"\r\n--" + BOUNDARY.encode()[:-1] + b"g\r\n",
    b"\r\n--" + BOUNDARY.encode()[:-1], b"\r\n-" + BOUNDARY.encode(), b"\r\n--\r\n--", b"\r\r\r\n-",
    b"\r\n--" + BOUNDARY.upper().encode(), form(part("file", b"inner"), boundary="other")])
def test_data_that_nearly_is_a_boundary_stays_data(forge, token, content):
    file_token = assert_uploaded(post(forge, token, form(part("file", content))), len(content))
    assert content_of(forge, file_token) == content


@settings(max_examples=40, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=strategies.lists(
    strategies.sampled_from([b"\r", b"\n", b"-", b"--", b"\r\n--", b"\r\n--b", b"b", b"x", b"\0"]),
    max_size=30))
def test_any_bytes_without_the_boundary_come_back(forge, token, pieces):
    content = b"".join(pieces)
    body = form(part("file", content), boundary="bb")
    expected_end = content.find(b"\r\n--bb")
    if expected_end >= 0:
        return
    answer = post(forge, token, body, content_type=form_type("bb"))
    assert content_of(forge, assert_uploaded(answer, len(content))) == content


@pytest.mark.parametrize("boundary, written", [
    ("b", "b"), ("x" * 70, "x" * 70), ("a b", '"a b"'), ("'()+_,-./:=?", "\"'()+_,-./:=?\""),
    ("abc", '"abc"'), ("abc", "abc; charset=utf-8"), ("--", "--")])
def test_every_legal_boundary_is_understood(forge, token, boundary, written):
    body = form(part("file", b"abc"), boundary=boundary)
    assert_uploaded(post(forge, token, body, content_type=form_type(written)), 3)


def test_what_surrounds_the_parts_is_ignored(forge, token):
    body = b"a preamble\r\n" + form(part("file", b"abc"), end="--\r\nan epilogue\r\n--x\r\n")
    assert_uploaded(post(forge, token, body), 3)
    padded = form(part("file", b"abc")).replace(BOUNDARY.encode() + b"\r\n",
                                                BOUNDARY.encode() + b" \t\r\n", 1)
    assert_uploaded(post(forge, token, padded), 3)
    assert_uploaded(post(forge, token, form(part("file", b"abc"), end="--")), 3)


def test_other_fields_are_ignored(forge, token):
    body = form(part("comment", b"x" * 100_000), part("file", b"abc", "a.txt"),
                part("more", b"", "b.txt", ["Content-Type: text/plain", "X-Other: 1"]))
    assert_uploaded(post(forge, token, body), 3)


# How it arrives

def test_chunked_bodies_are_taken(forge, token):
    content = os.urandom(MIB)
    body = form(part("file", content, "a.bin"))
    head = request("POST /files", bearer(token), form_type(), "Transfer-Encoding: chunked")
    for size in (len(body), 65_537, 999):
        pieces = [body[i:i + size] for i in range(0, len(body), size)]
        with Wire(forge) as wire:
            file_token = assert_uploaded(wire.ask(head + chunked(*pieces)), len(content))
            assert wire.ask(GET_HEALTH).status == 200, "the connection goes on"
        assert content_of(forge, file_token) == content


def test_a_client_that_streams_from_a_generator_is_taken(forge, token):
    body = form(part("file", b"x" * 200_000))
    with forge.client(token) as client:
        answer = client.post("/files", content=(body[i:i + 777] for i in range(0, len(body), 777)),
                             headers={"Content-Type": form_type().split(": ", 1)[1]})
    assert_uploaded(answer, 200_000)


def test_a_body_may_come_byte_by_byte(forge, token):
    content = b"\r\n--" + BOUNDARY.encode()[:-1] + b"\r\n"
    body = form(part("ttl_secs", b"77"), part("file", content, "a.txt"))
    with Wire(forge) as wire:
        wire.socket.setsockopt(6, 1, 1)  # TCP_NODELAY: each byte travels alone
        wire.send(request("POST /files", bearer(token), form_type(),
                          f"Content-Length: {len(body)}"))
        for byte in body:
            wire.send(bytes([byte]))
        file_token = assert_uploaded(wire.read(), len(content), 77)
    assert content_of(forge, file_token) == content


def test_a_boundary_may_be_cut_anywhere(forge, token):
    body = form(part("ttl_secs", b"60"), part("file", b"a\r\n--b", "a.txt"), boundary="bb")
    head = request("POST /files", bearer(token), form_type("bb"), "Transfer-Encoding: chunked")
    with Wire(forge) as wire:
        for cut in range(1, len(body)):
            # A chunk of its own: the gateway sees the cut, however the network joins them.
            file_token = assert_uploaded(wire.ask(head + chunked(body[:cut], body[cut:])), 6, 60)
            assert content_of(forge, file_token) == b"a\r\n--b"


def test_continue_is_said_only_to_a_body_that_is_wanted(forge, token):
    body = form(part("file", b"abc"))
    head = ["POST /files", bearer(token), form_type(), "Expect: 100-continue"]
    with Wire(forge) as wire:
        assert wire.ask(request(*head, f"Content-Length: {len(body)}")).status == 100
        assert_uploaded(wire.ask(body), 3)
    with Wire(forge) as wire:
        too_large = CAP + FRAME_BYTES_MAX + 1
        answer = wire.ask(request(*head, f"Content-Length: {too_large}"))
        assert_error(answer, 413, "body_too_large")
    with Wire(forge) as wire:
        head[1] = bearer("cf_" + "A" * 43)
        answer = wire.ask(request(*head, f"Content-Length: {len(body)}"))
        assert_error(answer, 401, "unauthorized")


def test_a_file_can_come_over_tls(secure):
    content = os.urandom(2 * MIB)
    with secure.client(secure.mint("app")["token"]) as client:
        for _ in range(2):
            answer = client.post("/files", files={"file": ("a.bin", content)})
            assert content_of(secure, assert_uploaded(answer, len(content))) == content


def test_pipelined_uploads_are_answered_in_their_order(forge, token):
    bodies = [form(part("file", b"x" * size)) for size in (5, 70_000, 1, 300_000, 0)]
    with Wire(forge) as wire:
        wire.send(b"".join(with_body("POST /files", body, bearer(token), form_type())
                           for body in bodies))
        assert [wire.read().json()["size"] for _ in bodies] == [5, 70_000, 1, 300_000, 0]


# Names

@pytest.mark.parametrize("filename, extension", [
    ("a.txt", ".txt"), ("A.TXT", ".txt"), ("archive.tar.gz", ".gz"), ("noextension", ""), ("", ""),
    ("a.", ""), (".", ""), ("..", ""), ("../../etc/passwd", ""), ("a.txt/../../x", ""),
    ("a.sh;rm -rf", ""), ("C:\\\\dir\\\\b.doc", ".doc"), ("C:\\dir\\b.doc", ".doc"),
    ('say \\"hi\\".txt', ".txt"), ("say %22hi%22.txt", ".txt"), ("a.t%22xt", ""), ("a.é", ""),
    ("日本.txt", ".txt"), ("a.\x01\x02", ""), ("\x01\x7f\t.txt", ".txt"), ("a.tx\x1bt", ""),
    ("a.\udcff\udcfe", ""), ("x" * 1000 + ".txt", ".txt"), ("a." + "x" * 16, "." + "x" * 16),
    ("a." + "x" * 17, ""), ("a; name=\\\"other\\\".txt", ".txt"), ("a%0d%0aX: y.txt", ".txt")])
def test_only_a_safe_extension_survives_of_a_name(forge, token, filename, extension):
    file_token = assert_uploaded(post(forge, token, form(part("file", b"abc", filename))), 3)
    row, = rows(forge, f"file_token_sha256 = '{digest_of(file_token)}'")
    assert row["extension"] == extension
    assert content_of(forge, file_token) == b"abc"


def test_a_file_without_a_name_is_taken(forge, token):
    file_token = assert_uploaded(post(forge, token, form(part("file", b"abc"))), 3)
    row, = rows(forge, f"file_token_sha256 = '{digest_of(file_token)}'")
    assert row["extension"] == ""


def test_the_encoded_form_of_a_name_does_not_count(forge, token):
    body = form(b'Content-Disposition: form-data; name=file; filename="a.txt"; '
                b"filename*=UTF-8''b.exe\r\n\r\nabc")
    file_token = assert_uploaded(post(forge, token, body), 3)
    row, = rows(forge, f"file_token_sha256 = '{digest_of(file_token)}'")
    assert row["extension"] == ".txt"


# Time to live

@pytest.mark.parametrize("asked, given_", [
    ("60", 60), ("59", 60), ("0", 60), ("-5", 60), ("61", 61), ("86400", 86400), ("86401", 86400),
    ("9" * 30, 86400), ("-" + "9" * 30, 60), ("00120", 120)])
def test_the_time_to_live_is_clamped_wherever_it_stands(forge, token, asked, given_):
    ttl, file = part("ttl_secs", asked.encode()), part("file", b"abc", "a.txt")
    for body in (form(ttl, file), form(file, ttl)):
        file_token = assert_uploaded(post(forge, token, body), 3, given_)
        row, = rows(forge, f"file_token_sha256 = '{digest_of(file_token)}'")
        assert row["expires_at"] - row["created_at"] == given_
    answer = post(forge, token, form(file), target=f"/files?ttl_secs={asked}")
    assert_uploaded(answer, 3, given_)


def test_the_field_of_the_form_beats_the_query(forge, token):
    body = form(part("file", b"abc"), part("ttl_secs", b"100"))
    assert_uploaded(post(forge, token, body, target="/files?ttl_secs=200"), 3, 100)
    assert_uploaded(post(forge, token, body, target="/files?ttl_secs=nonsense&x=1"), 3, 100)


@pytest.mark.parametrize("wrong", ["x", "1.5", "60s", "1e3", "0x10", "+60", " 60", "-", "--5",
                                   "null", "6 0", "\u0661", "9" * 65])
def test_a_time_to_live_that_is_no_whole_number_is_422(forge, token, wrong):
    problem = assert_refused(forge, token, form(part("file", b"abc"),
                                                part("ttl_secs", wrong.encode())),
                             422, "validation_failed")
    assert [error["field"] for error in problem["errors"]] == ["ttl_secs"]
    escaped = "".join(f"%{byte:02x}" for byte in wrong.encode())
    assert_refused(forge, token, form(part("file", b"abc")), 422, "validation_failed",
                   target=f"/files?ttl_secs={escaped}")


def test_a_time_to_live_that_comes_twice_is_422(forge, token):
    twice = form(part("ttl_secs", b"60"), part("ttl_secs", b"60"), part("file", b"abc"))
    assert_refused(forge, token, twice, 422, "validation_failed")
    assert_refused(forge, token, form(part("file", b"abc")), 422, "validation_failed",
                   target="/files?ttl_secs=60&ttl_secs=60")


# What is refused

def test_a_form_without_a_file_is_422_and_names_the_field(forge, token):
    for body in (form(), form(part("ttl_secs", b"60")), form(part("File", b"abc", "a.txt")),
                 form(part("files", b"abc", "a.txt"))):
        problem = assert_refused(forge, token, body, 422, "validation_failed")
        assert [error["field"] for error in problem["errors"]] == ["file"]
        assert "file" in problem["detail"]


def test_a_form_with_two_files_is_422(forge, token):
    small = form(part("file", b"abc", "a.txt"), part("file", b"def", "b.txt"))
    large = form(part("file", b"abc"), part("file", b"x" * 2 * MIB))
    for body in (small, large):
        problem = assert_refused(forge, token, body, 422, "validation_failed")
        assert [error["field"] for error in problem["errors"]] == ["file"]


def test_every_mistake_of_a_form_is_named(forge, token):
    problem = assert_refused(forge, token, form(part("ttl_secs", b"x")), 422, "validation_failed")
    assert {error["field"] for error in problem["errors"]} == {"file", "ttl_secs"}


def test_after_a_refused_form_the_connection_goes_on(forge, token):
    with Wire(forge) as wire:
        refused = with_body("POST /files", form(), bearer(token), form_type())
        assert_error(wire.ask(refused), 422, "validation_failed")
        assert wire.ask(GET_HEALTH).status == 200


@pytest.mark.parametrize("content_type", [
    "Content-Type: application/json", "Content-Type: text/plain", "X-None: 1",
    "Content-Type: multipart/mixed; boundary=b", "Content-Type: application/octet-stream",
    "Content-Type: application/x-www-form-urlencoded", "Content-Type:",
    "Content-Type: multipart/form-datax; boundary=b"])
def test_another_type_of_body_is_415(forge, token, content_type):
    assert_refused(forge, token, form(part("file", b"abc"), boundary="b"), 415,
                   "unsupported_content_type", content_type=content_type)


@pytest.mark.parametrize("parameters", [
    "", ";", "; charset=utf-8", "; boundary=", '; boundary=""', '; boundary="b', "; boundary=b*c",
    '; boundary="b "', "; boundary=b; boundary=b", "; boundary", "; boundary=" + "x" * 71,
    "; boundary=b\xff", " boundary=b"])
def test_a_boundary_that_is_missing_or_bad_is_400(forge, token, parameters):
    assert_refused(forge, token, form(part("file", b"abc"), boundary="b"), 400, "bad_multipart",
                   content_type="Content-Type: multipart/form-data" + parameters)


GOOD = form(part("file", b"abc", "a.txt"))
DISPOSITION = b'Content-Disposition: form-data; name="file"'


@pytest.mark.parametrize("body", [
    b"", b"abc", b"{}", GOOD.replace(b"\r\n", b"\n"), GOOD.replace(b"\r\n", b"\r"),
    GOOD.replace(b"abc\r\n", b"abc\n"), GOOD.replace(b"\r\n\r\nabc", b"\n\nabc"),
    GOOD.replace(BOUNDARY.encode(), b"other"), GOOD.replace(BOUNDARY.encode() + b"--", b""),
    GOOD.replace(BOUNDARY.encode() + b"--", BOUNDARY.encode()), GOOD[:-5], GOOD[:-10],
    GOOD.replace(b"abc", b"a\r\n--" + BOUNDARY.encode() + b"x\r\nc"),
    b"p" * 20_000 + b"\r\n" + GOOD,
    form(b"\r\nabc"), form(b"X: y\r\n\r\nabc"), form(b"no colon\r\n\r\nabc"),
    form(b"Content-Disposition: attachment; name=file\r\n\r\nabc"),
    form(b"Content-Disposition: form-data\r\n\r\nabc"),
    form(b"Content-Disposition: form-data; filename=a\r\n\r\nabc"),
    form(b'Content-Disposition: form-data; name="file\r\n\r\nabc'),
    form(DISPOSITION + b"; name=file\r\n\r\nabc"),
    form(DISPOSITION + b"; filename=a; filename=b\r\n\r\nabc"),
    form(DISPOSITION + b"\r\n" + DISPOSITION + b"\r\n\r\nabc"),
    form(DISPOSITION + b"\r\n folded\r\n\r\nabc"), form(DISPOSITION + b"\nX: y\r\n\r\nabc"),
    form(DISPOSITION + b"\rX: y\r\n\r\nabc"), form(DISPOSITION + b"\r\nX: \0\r\n\r\nabc"),
    form(DISPOSITION + b"\r\nContent-Transfer-Encoding: base64\r\n\r\nYWJj")])
def test_a_form_that_is_not_strictly_right_is_400(forge, token, body):
    assert_refused(forge, token, body, 400, "bad_multipart")


def test_every_cut_of_a_form_is_400(forge, token):
    end = GOOD.index(b"--\r\n", len(GOOD) - 5) + 2
    with Wire(forge) as wire:
        for size in range(end):
            cut = with_body("POST /files", GOOD[:size], bearer(token), form_type())
            assert_error(wire.ask(cut), 400, "bad_multipart")
    assert_uploaded(post(forge, token, GOOD[:end]), 3)


def test_the_number_and_size_of_headers_and_parts_is_limited(forge, token):
    plain = part("file", b"abc", "a.txt")
    others = [part(f"p{i}", b"") for i in range(PARTS_MAX)]
    assert_uploaded(post(forge, token, form(*others[:-1], plain)), 3)
    assert_refused(forge, token, form(*others, plain), 400, "bad_multipart")
    headers = [f"X-{i}: y" for i in range(PART_HEADERS_MAX)]
    assert_uploaded(post(forge, token, form(part("file", b"abc", None, headers[:-1]))), 3)
    assert_refused(forge, token, form(part("file", b"abc", None, headers)), 400, "bad_multipart")
    used = len(part("file", b"", None, ["X: "])) - 4  # without the empty line
    room = PART_HEADER_BYTES_MAX - used
    assert_uploaded(post(forge, token, form(part("file", b"abc", None, ["X: " + "y" * room]))), 3)
    longer = form(part("file", b"abc", None, ["X: " + "y" * (room + 1)]))
    assert_refused(forge, token, longer, 400, "bad_multipart")
    endless = form(b"X: " + b"y" * 500_000)
    assert_refused(forge, token, endless, 400, "bad_multipart")


def test_a_file_over_the_cap_is_413_and_nothing_is_kept(forge, token):
    for size in (CAP + 1, CAP + 200_000):
        assert_refused(forge, token, form(part("file", b"x" * size)), 413, "file_too_large")
    pieces = [b"x" * 100_000] * (CAP // 100_000 + 20)
    head = request("POST /files", bearer(token), form_type(), "Transfer-Encoding: chunked")
    before = kept(forge)
    with Wire(forge) as wire:
        body = form(part("file", b"".join(pieces)))
        wire.send(head + chunked(*[body[i:i + 65_536] for i in range(0, len(body), 65_536)]))
        assert_error(wire.read(), 413, "file_too_large")
        assert wire.read() is None, "the connection ends"
    assert kept(forge) == before


def test_a_form_with_too_much_around_the_file_is_413(forge, token):
    announced = CAP + FRAME_BYTES_MAX + 1
    with Wire(forge) as wire:
        answer = wire.ask(request("POST /files", bearer(token), form_type(),
                                  f"Content-Length: {announced}"))
        assert_error(answer, 413, "body_too_large")
    before = kept(forge)
    body = form(part("other", b"x" * (CAP + FRAME_BYTES_MAX)), part("file", b"abc"))
    head = request("POST /files", bearer(token), form_type(), "Transfer-Encoding: chunked")
    with Wire(forge) as wire:
        wire.send(head + chunked(*[body[i:i + 65_536] for i in range(0, len(body), 65_536)]))
        assert_error(wire.read(), 413, "body_too_large")
    assert kept(forge) == before


def test_who_may_upload(forge, token):
    assert_error(post(forge, "cf_" + "A" * 43, GOOD), 401, "unauthorized")
    assert_error(post(forge, forge.admin_token, GOOD), 403, "wrong_token_kind")
    with forge.client(token) as client:
        for method in ("GET", "PUT", "DELETE"):
            answer = client.request(method, "/files")
            assert_error(answer, 405, "method_not_allowed")
            assert answer.headers["Allow"] == "POST"
        assert_error(client.post("/files/"), 404, "path_not_found")


# Tokens in runs

def run(gateway, token, *files):
    with gateway.client(token) as client:
        return client.post("/run", json={"prompt": "hello", "agent": "demo", "files": list(files)})


def test_a_file_can_be_used_in_a_run_of_its_app_only(gateway):
    mine, other = (gateway.mint(name)["token"] for name in ("mine", "other"))
    file_token = assert_uploaded(post(gateway, mine, GOOD), 3)
    assert run(gateway, mine, file_token).status_code == 200
    assert run(gateway, mine, file_token, file_token).status_code == 200
    foreign = assert_error(run(gateway, other, file_token), 404, "file_not_found")
    unknown = assert_error(run(gateway, other, "ff_" + "A" * 43), 404, "file_not_found")
    assert {**foreign, "request_id": ""} == {**unknown, "request_id": ""}
    for wrong in ("", "ff_", file_token[:-1], file_token + "A", mine, "../" + file_token, "x" * 9999):
        assert_error(run(gateway, mine, file_token, wrong), 404, "file_not_found")


def test_an_expired_file_is_gone_for_runs_at_once_and_swept(gateway):
    token = gateway.mint("app")["token"]
    file_token, stays = (assert_uploaded(post(gateway, token, GOOD), 3) for _ in range(2))
    change(gateway, "UPDATE uploads SET expires_at = 1 "
                    f"WHERE file_token_sha256 = '{digest_of(file_token)}'")
    assert_error(run(gateway, token, file_token), 404, "file_not_found")
    with gateway.admin as admin:
        swept = admin.post("/admin/sweep")
    assert swept.status_code == 200 and swept.json()["files_deleted"] == 1
    assert kept(gateway) == [digest_of(stays)]


def test_a_revoked_apps_files_cannot_be_used_by_its_successor(gateway):
    token = gateway.mint("app")["token"]
    file_token = assert_uploaded(post(gateway, token, GOOD), 3)
    with gateway.admin as admin:
        assert admin.delete("/admin/tokens/app").status_code == 200
    successor = gateway.mint("app")["token"]
    assert_error(run(gateway, successor, file_token), 404, "file_not_found")


def test_a_file_outlives_a_restart(gateway):
    token = gateway.mint("app")["token"]
    file_token = assert_uploaded(post(gateway, token, GOOD), 3)
    gateway.restart()
    assert content_of(gateway, file_token) == b"abc"
    assert run(gateway, token, file_token).status_code == 200


# What goes wrong on the way

def half_an_upload(wire, token, total=60 * MIB):
    """Sends so much that the gateway must have begun to write."""
    start = form(part("file", b"", "a.bin"))[:-len(BOUNDARY) - 8]
    wire.send(request("POST /files", bearer(token), form_type(), f"Content-Length: {total}"))
    wire.send(start)
    piece = os.urandom(MIB)
    for _ in range(total // MIB // 2):
        wire.send(piece)


def test_a_caller_who_hangs_up_leaves_nothing(gateway):
    token = gateway.mint("app")["token"]
    assert_uploaded(post(gateway, token, GOOD), 3)
    before = kept(gateway)
    for _ in range(3):
        with Wire(gateway) as wire:
            half_an_upload(wire, token, 20 * MIB)
    for size in range(0, len(GOOD), 7):  # at any place of the form
        with Wire(gateway) as wire:
            wire.send(with_body("POST /files", GOOD, bearer(token), form_type())[:-len(GOOD) + size])
    wait_until(lambda: sum(line["status"] == 499 for line in gateway.requests_logged()) >= 3,
               "hang-ups in the log")
    gateway.restart()  # waits for whatever is still under way
    assert kept(gateway) == before


def test_a_gateway_that_is_killed_leaves_nothing(gateway):
    token = gateway.mint("app")["token"]
    file_token = assert_uploaded(post(gateway, token, GOOD), 3)
    with Wire(gateway) as wire:
        half_an_upload(wire, token)
        gateway.kill()
    gateway.start()
    assert kept(gateway) == [digest_of(file_token)]
    assert_uploaded(post(gateway, token, GOOD), 3)


def test_a_file_and_a_row_that_have_lost_each_other_go_at_the_next_start(gateway):
    token = gateway.mint("app")["token"]
    first, second, third = (assert_uploaded(post(gateway, token, GOOD), 3) for _ in range(3))
    gateway.stop()
    change(gateway, f"DELETE FROM uploads WHERE file_token_sha256 = '{digest_of(first)}'")
    (gateway.data_dir / "uploads" / digest_of(second)).unlink()
    gateway.start()
    assert kept(gateway) == [digest_of(third)]


class CrampedGateway(Gateway):
    """No file of it may grow over FILE_BYTES, as if the disk were full then."""
    FILE_BYTES = 16 * MIB

    def _limit_files(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.FILE_BYTES, self.FILE_BYTES))


def test_a_full_disk_is_503_and_leaves_nothing(tmp_path):
    gateway = CrampedGateway(tmp_path / "gateway", files_soft=1).start()
    try:
        token = gateway.mint("app")["token"]
        assert_uploaded(post(gateway, token, GOOD), 3)
        too_much = form(part("file", b"x" * (CrampedGateway.FILE_BYTES + 1)))
        for _ in range(3):
            assert_refused(gateway, token, too_much, 503, "disk_full")
        assert_uploaded(post(gateway, token, GOOD), 3)
        assert not (set(names(gateway)) - {row["file_token_sha256"] for row in rows(gateway)})
    finally:
        gateway.finish()


def test_a_directory_that_cannot_be_written_is_503_and_heals(gateway):
    token = gateway.mint("app")["token"]
    assert_uploaded(post(gateway, token, GOOD), 3)
    place = gateway.data_dir / "uploads"
    aside = gateway.data_dir / "aside"
    place.rename(aside)
    place.write_text("in the way")
    answer = post(gateway, token, GOOD)
    assert_error(answer, 503, "workspace_unavailable")
    place.unlink()
    aside.rename(place)
    assert_uploaded(post(gateway, token, GOOD), 3)
    assert len(kept(gateway)) == 2


def test_a_ledger_that_does_not_take_the_row_leaves_no_file(gateway):
    token = gateway.mint("app")["token"]
    assert_uploaded(post(gateway, token, GOOD), 3)
    before = kept(gateway)
    lock = sqlite3.connect(gateway.data_dir / "clawdforge.db", isolation_level=None)
    lock.execute("BEGIN IMMEDIATE")
    try:
        with httpx.Client(base_url=gateway.url, trust_env=False, verify=NO_TLS, timeout=60) as client:
            answer = client.post("/files", files={"file": ("a.txt", b"abc")},
                                 headers={"Authorization": f"Bearer {token}"})
        assert_error(answer, 503, "ledger_unavailable")
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    wait_until(lambda: names(gateway) == before, "the file is gone again")
    assert kept(gateway) == before
    wait_until(lambda: post(gateway, token, GOOD).status == 200, "the ledger is well again")


def test_many_uploads_at_once_do_not_mix(gateway):
    token = gateway.mint("app")["token"]
    contents = [bytes([i]) * (100_000 + i) for i in range(24)]
    wires = [Wire(gateway) for _ in contents]
    bodies = [with_body("POST /files", form(part("file", content)), bearer(token), form_type())
              for content in contents]
    for at in range(0, max(map(len, bodies)), 20_000):
        for wire, body in zip(wires, bodies):
            wire.send(body[at:at + 20_000])
    for wire, content in zip(wires, contents):
        assert content_of(gateway, assert_uploaded(wire.read(), len(content))) == content
        wire.socket.close()
    assert len(kept(gateway)) == len(contents)


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps what was freed")
def test_a_large_upload_is_not_held_in_memory(gateway):
    token = gateway.mint("app")["token"]
    assert_uploaded(post(gateway, token, GOOD), 3)

    def resident_kib():
        text = open(f"/proc/{gateway.process.pid}/status", encoding="ascii").read()
        return int(re.search(r"VmHWM:\s+(\d+) kB", text).group(1))

    before = resident_kib()
    content = os.urandom(MIB) * 90
    file_token = assert_uploaded(post(gateway, token, form(part("file", content))), len(content))
    assert (gateway.data_dir / "uploads" / digest_of(file_token)).stat().st_size == len(content)
    assert resident_kib() - before < 32 * 1024
    assert len(kept(gateway)) == 2
