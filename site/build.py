"""Makes the pages that the gateway serves at /docs from the Markdown of this tree (cmark-gfm) and from docs/openapi.yaml.

    build.py CMARK TARGET VERSION

Every page is one file in TARGET, and every link is relative, so that the site works below any path of a proxy and asks no other
host for anything. Style, script and the index for searching have a sum in their names. A link that leads nowhere stops the build.
"""
import hashlib
import html
import json
import os
import pathlib
import re
import subprocess
import sys
from html.parser import HTMLParser

import reference

REPO = pathlib.Path(__file__).resolve().parents[1]
SITE = REPO / "site"
# What is left out of the lists of folders.
NOT_SHOWN = {"__pycache__", "dist", "node_modules"}
SECTION_LEVEL_MAX = 3  # a heading below that belongs to the section above it
INDEX_BYTES_MAX = 6000  # of one section
BRIEF_BYTES_MAX = 300  # of one section of a page that is searched for by its headings

# What is on the left of each page: a group, and its sources with the name that the list has for each.
NAVIGATION = [
    ("Start", [("README.md", "Overview"), ("docs/install.md", "Install"), ("docs/cli.md", "Command line"),
               ("docs/migration.md", "From the original")]),
    ("Write an app", [("docs/api.md", "HTTP API"), ("docs/openapi.yaml", "API reference"), ("clients/python", "Python client"),
                      ("clients/typescript", "TypeScript client"), ("examples", "Examples")]),
    ("Run it", [("docs/operations.md", "Operations"), ("docs/security.md", "Security"), ("docs/limits.md", "Limits"),
                ("contrib", "Proxies and monitoring"), ("docs/performance.md", "Performance")]),
    ("Look inside", [("docs/architecture.md", "Architecture"), ("docs/glossary.md", "Glossary"), ("docs/adr", "Decisions"),
                     ("CONTRIBUTING.md", "Contributing"), ("CHANGELOG.md", "Changelog")]),
]
NAMES = {"README.md": "index.html", "docs/openapi.yaml": "reference.html", "docs/adr": "decisions.html"}


def page_name(source):
    """docs/api.md is api.html, docs/adr/0001-x.md is adr-0001-x.html, contrib/nginx/x.conf is contrib-nginx-x.conf.html."""
    path = source.removesuffix("/README.md")
    if path in NAMES:
        return NAMES[path]
    return path.removeprefix("docs/").removesuffix(".md").replace("/", "-").lower() + ".html"


def source_of(target):
    """The file or folder that a link means; a folder with a page of its own is that page."""
    if (REPO / target / "README.md").exists() and target:
        return f"{target}/README.md"
    return target or "README.md"


def slug(title, taken):
    """As GitHub makes it, by which the documents already link to headings."""
    base = re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")
    name, number = base, 0
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    taken.add(name)
    return name


class Page(HTMLParser):
    """What cmark-gfm made of one file, with ids for headings, links to pages, and the text of each section."""

    VOID = {"br", "hr", "img", "input"}

    def __init__(self, source, text, on_link):
        super().__init__(convert_charrefs=False)
        self.source, self.on_link = source, on_link
        self.out, self.sections, self.ids, self.title = [], [], set(), ""
        self.heading = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if re.fullmatch("h[1-6]", tag):
            self.heading = (tag, [], len(self.out), attributes.get("id"))
            return
        if tag == "a" and "href" in attributes:
            attributes["href"] = self.on_link(self.source, attributes["href"])
            if "://" in attributes["href"]:
                attributes |= {"rel": "noreferrer", "class": "outside"}
        if tag == "table":
            self.out.append('<div class="wide" tabindex="0">')
        self.out.append("<" + tag + "".join(f' {name}="{html.escape(value or "")}"' for name, value in attributes.items()) + ">")

    def handle_endtag(self, tag):
        if self.heading and tag == self.heading[0]:
            self.end_heading(tag)
            return
        if tag not in self.VOID:
            self.out.append(f"</{tag}>")
        if tag == "table":
            self.out.append("</div>")

    def end_heading(self, tag):
        inner = "".join(self.out[self.heading[2]:])
        del self.out[self.heading[2]:]
        title = "".join(self.heading[1])
        name = self.heading[3] or slug(title, self.ids)
        self.ids.add(name)
        self.heading = None
        if tag == "h1" and not self.title:
            self.title = title
            self.out.append(f'<h1 id="{name}">{inner}</h1>')
        else:
            self.out.append(f'<{tag} id="{name}">{inner} <a class="here" href="#{name}" aria-label="Link to this heading">#</a></{tag}>')
        if int(tag[1]) <= SECTION_LEVEL_MAX or not self.sections:
            self.sections.append({"level": int(tag[1]), "id": name, "title": title, "text": []})
        else:
            self.sections[-1]["text"].append(f" {title} ")

    def handle_data(self, data):
        self.take(html.escape(data, quote=False), data)

    def handle_entityref(self, name):
        self.take(f"&{name};", html.unescape(f"&{name};"))

    def handle_charref(self, name):
        self.take(f"&#{name};", html.unescape(f"&#{name};"))

    def take(self, markup, text):
        self.out.append(markup)
        if self.heading:
            self.heading[1].append(text)
        elif self.sections:
            self.sections[-1]["text"].append(text)

    @property
    def body(self):
        return "".join(self.out)


class Site:
    def __init__(self, cmark, target, version):
        self.cmark, self.target, self.version = cmark, target, version
        self.pages, self.wanted, self.links = {}, [], []
        self.assets = {}

    def markdown(self, text):
        """Without raw HTML: comments are for the tests, and there is nothing else."""
        done = subprocess.run([self.cmark, "--to", "html", "-e", "table", "-e", "strikethrough"], input=text, capture_output=True,
                              text=True, check=True)
        return re.sub(r"<!-- raw HTML omitted -->\n?", "", done.stdout)

    def link(self, source, href):
        """A link of a document as one of the site; what it leads to becomes a page."""
        if re.match(r"[a-z]+:", href) or href == "../openapi.json":  # the gateway's own
            return href
        path, _, fragment = href.partition("#")
        if not path:
            target = source
        else:
            target = source_of(os.path.relpath(REPO / pathlib.PurePath(source).parent / path, REPO).removeprefix("."))
            if not (REPO / target).exists():
                sys.exit(f"{source}: the link {href} leads nowhere")
        self.want(target)
        if fragment:
            self.links.append((source, href, target, fragment))
        return ("" if target == source else page_name(target)) + (f"#{fragment}" if fragment else "")

    def want(self, source):
        if source not in self.pages and source not in self.wanted:
            self.wanted.append(source)

    def read(self, source):
        path = REPO / source
        if source == "docs/openapi.yaml":
            return reference.page(path, self.markdown)
        if path.is_dir():
            return self.markdown(self.folder(source))
        if path.suffix == ".md":
            # Pictures are for those who read the files: the program does not carry them.
            return self.markdown(re.sub(r"!\[[^]]*\]\([^)]*\)", "", path.read_text()))
        return f"<h1>{html.escape(source)}</h1>\n<pre><code>{html.escape(path.read_text(), quote=False)}</code></pre>\n"

    def folder(self, source):
        """A list of what is in it; decisions with their titles."""
        if source == "docs/adr":
            titles = [(path.name, path.read_text().partition("\n")[0].removeprefix("# ")) for path in sorted((REPO / source).glob("*.md"))]
            return "# Decisions\n\nWhy things are as they are, one page each.\n\n" + "".join(f"- [{t}](adr/{n})\n" for n, t in titles)
        names = sorted(path.name for path in (REPO / source).iterdir() if path.name not in NOT_SHOWN)
        folder = pathlib.PurePath(source).name
        return f"# {source}\n\n" + "".join(f"- [{name}]({folder}/{name})\n" for name in names)

    def build(self):
        for _, entries in NAVIGATION:
            for source, _ in entries:
                self.want(source_of(source))
        while self.wanted:
            source = self.wanted.pop(0)
            self.pages[source] = None
            self.pages[source] = Page(source, self.read(source), self.link)
        for source, href, target, fragment in self.links:
            if fragment not in self.pages[target].ids:
                sys.exit(f"{source}: the link {href} leads to no heading of {target}")
        names = [page_name(source) for source in self.pages]
        assert len(names) == len(set(names)), "two sources have one page"
        self.write_assets()
        for source, page in self.pages.items():
            (self.target / page_name(source)).write_text(self.whole(source, page))

    def write_assets(self):
        for kind, text in {"style.css": (SITE / "style.css").read_text(), "script.js": (SITE / "script.js").read_text(),
                           "search.json": self.search_index()}.items():
            stem, _, suffix = kind.partition(".")
            name = f"{stem}-{hashlib.sha256(text.encode()).hexdigest()[:8]}.{suffix}"
            self.assets[kind] = name
            (self.target / name).write_text(text)

    def search_index(self):
        """[[page, title], ...] and [page's number, heading's id, heading, text], one row for each section."""
        pages, rows = [], []
        for source, page in self.pages.items():
            if not source.endswith((".md", ".yaml")):
                continue
            brief = source.startswith(("docs/adr", "CHANGELOG", "docs/performance"))
            pages.append([page_name(source), page.title])
            for section in page.sections:
                text = re.sub(r"\s+", " ", "".join(section["text"])).strip()
                rows.append([len(pages) - 1, section["id"], section["title"], text[:BRIEF_BYTES_MAX if brief else INDEX_BYTES_MAX]])
        return json.dumps({"pages": pages, "sections": rows}, ensure_ascii=False, separators=(",", ":"))

    def whole(self, source, page):
        entries = [s for s in page.sections if s["level"] in (2, 3)]
        contents = "".join(f'<li class="level-{s["level"]}"><a href="#{s["id"]}">{html.escape(s["title"])}</a></li>' for s in entries)
        aside = f'<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>{contents}</ul></nav>' if len(entries) > 1 else ""
        title = "clawdforge" if source == "README.md" else f"{page.title} – clawdforge"
        return TEMPLATE.format(title=html.escape(title), style=self.assets["style.css"], script=self.assets["script.js"],
                               search=self.assets["search.json"], version=html.escape(self.version), navigation=self.navigation(source),
                               body=page.body, aside=aside, source=html.escape(source))

    def navigation(self, source):
        out = []
        for group, entries in NAVIGATION:
            rows = []
            for target, name in entries:
                here = source_of(target)
                current = ' aria-current="page"' if here == source or (target == "docs/adr" and source.startswith("docs/adr/")) else ""
                rows.append(f'<li><a href="{page_name(here)}"{current}>{name}</a></li>')
            out.append(f"<h2>{group}</h2><ul>{''.join(rows)}</ul>")
        return "".join(out)


TEMPLATE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<link rel="stylesheet" href="{style}">
<script defer src="{script}" data-search="{search}"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the text</a>
<header>
<a class="brand" href="index.html">clawdforge <span>{version}</span></a>
<search hidden><input type="search" placeholder="Search the documents" aria-label="Search the documents" autocomplete="off" spellcheck="false"
 role="combobox" aria-expanded="false" aria-controls="found" aria-autocomplete="list"><kbd>/</kbd>
<div id="found" role="listbox" aria-label="Found" hidden></div></search>
</header>
<div class="columns">
<nav class="pages" aria-label="Pages"><details open><summary>Pages</summary>{navigation}</details></nav>
<main id="content">
{body}
<footer>From <code>{source}</code> of clawdforge {version}.</footer>
</main>
{aside}
</div>
</body>
</html>
"""


def main():
    cmark, target, version = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    Site(cmark, target, version).build()


main()
