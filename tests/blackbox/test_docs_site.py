"""The documents as the gateway serves them at /docs: every link, every heading that a link names, the index for searching, and that
nothing is asked of another host. The commands that they show are run by test_documents.py."""
import gzip
import json
import re
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

import pytest
import yaml

from answers import assert_error
from gateway import REPO
from wire import Wire

ROOT = "/docs/"


class Read(HTMLParser):
    """What a page links to, what it fetches, and which places it has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.fetched, self.ids, self.inline = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        for name in ("src", "srcset", "data-search", "poster"):
            if name in given:
                self.fetched.append(given[name])
        if tag == "link":
            self.fetched.append(given["href"])
        self.inline += [name for name in given if name == "style" or name.startswith("on")]
        self.inline += [tag] * (tag in ("style", "iframe", "form", "base", "object") or (tag == "script" and "src" not in given))


@pytest.fixture(scope="module")
def site(shared):
    """Each page that can be reached from the first one, by its path."""
    client = shared.client()
    pages, files, waiting = {}, {}, [ROOT]
    while waiting:
        path = waiting.pop()
        if path in pages or path in files:
            continue
        answer = client.get(path)
        assert answer.status_code == 200, f"{path} is {answer.status_code}"
        if not answer.headers["Content-Type"].startswith("text/html"):
            files[path] = answer
            continue
        pages[path] = Read(answer.text)
        for link in pages[path].links + pages[path].fetched:
            if not urlsplit(link).scheme:
                waiting.append(urlsplit(urljoin(path, link)).path)
    return pages, files


def test_every_document_has_its_page(site):
    pages, _ = site
    sources = [*(REPO / "docs").glob("*.md"), *(REPO / "docs/adr").glob("*.md")]
    assert len(sources) > 60
    for source in sources:
        name = ("adr-" if source.parent.name == "adr" else "") + source.stem + ".html"
        assert ROOT + name in pages, f"no link leads to {source}"


def test_every_link_leads_to_a_page_and_a_heading_that_are_there(site):
    pages, files = site
    wrong = []
    for path, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), f"{path} has two places of one name"
        for link in page.links:
            parts = urlsplit(urljoin(path, link))
            if parts.scheme:
                continue
            if parts.fragment and parts.fragment not in pages[parts.path].ids:
                wrong.append(f"{path}: {link}")
            # All are relative, so that the site works below any path of a proxy.
            assert not link.startswith("/"), f"{path}: {link}"
    assert not wrong, "\n".join(wrong)
    assert {path for path in files if not path.startswith(ROOT)} == {"/openapi.json"}


def test_no_other_host_is_asked_and_nothing_is_inline(site):
    pages, files = site
    for path, page in pages.items():
        assert not page.inline, f"{path} has {page.inline}"
        for fetched in page.fetched:
            assert not urlsplit(fetched).scheme and not fetched.startswith("/"), f"{path} fetches {fetched}"
    for path, answer in files.items():
        if path.endswith(".css"):
            assert "url(" not in answer.text and "@import" not in answer.text


def test_the_script_has_no_sink_for_markup(site):
    text = "".join(answer.text for path, answer in site[1].items() if path.endswith(".js"))
    assert text
    for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "setTimeout(\"", "srcdoc"):
        assert sink not in text


def test_the_index_for_searching_leads_to_headings_that_are_there(site):
    pages, files = site
    index = json.loads(next(answer.text for path, answer in files.items() if "/search-" in path))
    assert len(index["sections"]) > 400
    for page, place, title, text in index["sections"]:
        assert place in pages[ROOT + index["pages"][page][0]].ids, (index["pages"][page], place)
    # What a reader looks for is there.
    for word in ("max_runs", "Idempotency-Key", "drain_grace_secs", "install.sh", "/sessions/{id}/turn"):
        assert any(word in title or word in text for _, _, title, text in index["sections"]), word


def test_the_reference_has_every_call_and_every_shape(shared):
    page = Read(shared.client().get("/docs/reference.html").text)
    document = yaml.safe_load((REPO / "docs/openapi.yaml").read_text())
    calls = [call for path in document["paths"].values() for method, call in path.items() if isinstance(call, dict)]
    assert len(calls) > 40
    for call in calls:
        assert "call-" + re.sub(r"[^a-z0-9]+", "-", call["operationId"].lower()) in page.ids
    for name in document["components"]["schemas"]:
        assert f"schema-{name.lower()}" in page.ids


def test_the_way_to_the_documents_is_relative(shared):
    answer = shared.client().get("/docs", follow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (302, "docs/")


def test_a_page_comes_packed_with_a_policy_and_a_tag(shared):
    client = shared.client()
    whole = client.get("/docs/api.html", headers={"Accept-Encoding": "identity"})
    assert "Content-Encoding" not in whole.headers
    with client.stream("GET", "/docs/api.html", headers={"Accept-Encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
        assert answer.headers["Content-Encoding"] == "gzip"
        assert answer.headers["Cache-Control"] == "no-cache"
    assert gzip.decompress(packed) == whole.content and len(packed) < len(whole.content) / 3
    policy = whole.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "trusted-types 'none'" in policy
    again = client.get("/docs/api.html", headers={"Accept-Encoding": "identity", "If-None-Match": whole.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_style_script_and_index_may_be_kept(site):
    for path, answer in site[1].items():
        if path.startswith(ROOT):
            assert "immutable" in answer.headers["Cache-Control"], path


@pytest.mark.parametrize("name", ["nothing", "..%2Findex.html", "style.css", "api", "API.html", "x" * 2000])
def test_what_is_not_a_page_is_404(shared, name):
    assert_error(shared.client().get(f"/docs/{name}"), 404, "path_not_found")


def test_a_page_of_another_name_cannot_read_them(shared):
    for path in ("/docs", "/docs/", "/docs/api.html"):
        with Wire(shared) as wire:
            answer = wire.ask(b"GET " + path.encode() + b" HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        assert_error(answer, 421, "host_not_allowed")
