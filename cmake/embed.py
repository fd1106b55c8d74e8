"""Turns files into C++ headers at build time (see cmake/rooms.cmake), and those of the dashboard and of the documents into a
source (see cmake/dashboard.cmake and cmake/docs.cmake)."""

import base64
import gzip
import hashlib
import json
import pathlib
import re
import struct
import sys

DELIMITER = "CLAWDFORGE"


def literal(text: str) -> str:
    assert f'){DELIMITER}"' not in text
    return f'R"{DELIMITER}({text}){DELIMITER}"'


def texts(paths: list[pathlib.Path]) -> str:
    rows = "\n".join(
        f'    {{"{path.name}", {literal(path.read_text())}}},' for path in sorted(paths)
    )
    return (
        "struct SchemaFile {\n  std::string_view name;\n  std::string_view text;\n};\n\n"
        f"inline constexpr SchemaFile kSchemaFiles[] = {{\n{rows}\n}};\n"
    )


def openapi(path: pathlib.Path) -> str:
    import yaml

    document = yaml.safe_load(path.read_text())
    compact = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    # It is longer than what every compiler has to take; ours takes it.
    return (
        '#pragma clang diagnostic push\n#pragma clang diagnostic ignored "-Woverlength-strings"\n'
        f"inline constexpr std::string_view kOpenApiJson =\n    {literal(compact)};\n"
        "#pragma clang diagnostic pop\n"
    )


def words_of(content: bytes) -> str:
    """As 64-bit words: a compiler reads them several times faster than bytes."""
    padded = content + b"\0" * (-len(content) % 8)
    words = [f"0x{word:x}" for (word,) in struct.iter_unpack("=Q", padded)]
    return ",\n".join(",".join(words[i : i + 16]) for i in range(0, len(words), 16))


def launcher(path: pathlib.Path) -> str:
    program = path.read_bytes()
    rows = words_of(program)
    return (
        f"inline constexpr std::size_t kLauncherBytes = {len(program)};\n"
        f"inline constexpr std::uint64_t kLauncherWords[] = {{\n{rows}}};\n"
    )


TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".webmanifest": "application/manifest+json",
}
PAGE = "index.html"


def hash_of(content: bytes) -> str:
    return base64.b32encode(hashlib.sha256(content).digest())[:16].decode()


def assets_of(paths: list[pathlib.Path]) -> dict[str, bytes]:
    """By the name under which each is served. All but the page have the hash of their content in it, and the page has
    those names where its source has "ui/NAME"."""
    named, page = {}, None
    for path in sorted(paths, key=lambda path: path.name):
        content = path.read_bytes()
        if path.name == PAGE:
            page = content
        else:
            named[path.name] = (f"{path.stem}-{hash_of(content)}{path.suffix}", content)
    if page is None:
        sys.exit(f"embed.py: there is no {PAGE} among the files of the dashboard")
    for name, (served, _) in named.items():
        page = page.replace(f'"ui/{name}"'.encode(), f'"ui/{served}"'.encode())
    return {PAGE: page} | {served: content for served, content in named.values()}


def table(contents: dict[str, bytes], function: str, is_immutable) -> str:
    arrays, rows = [], []
    for number, (name, content) in enumerate(sorted(contents.items())):
        packed = gzip.compress(content, 9, mtime=0)
        forms = [content, packed if len(packed) < len(content) else b""]
        shown = []
        for form, kind in zip(forms, ("Identity", "Gzip")):
            if not form:
                shown.append("{}")
                continue
            array = f"k{kind}{number}"
            arrays.append(f"constexpr std::uint64_t {array}[] = {{\n{words_of(form)}}};\n")
            shown.append(f"{{{array}, {len(form)}}}")
        rows.append(
            f'    {{"{name}", "{TYPES[pathlib.Path(name).suffix]}", "{hash_of(content)}", '
            f"{'true' if is_immutable(name) else 'false'}, {', '.join(shown)}}},\n"
        )
    return (
        f"namespace {{\n\n{''.join(arrays)}\nconstexpr Asset kAssets[] = {{\n{''.join(rows)}}};\n\n}}  // namespace\n\n"
        f"std::span<const Asset> {function}() {{ return kAssets; }}\n"
    )


def assets(paths: list[pathlib.Path]) -> str:
    return table(assets_of(paths), "dashboard_assets", lambda name: name != PAGE)


def pages(folder: pathlib.Path) -> str:
    """All files of a folder, under their own names; site/build.py has put a sum into those that may be kept."""
    return table({path.name: path.read_bytes() for path in folder.iterdir()}, "docs_assets",
                 lambda name: re.search(r"-[0-9a-f]{8}\.(css|js|json)$", name) is not None)


def main() -> None:
    kind, target, sources = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    paths = [pathlib.Path(source) for source in sources]
    body = {
        "texts": lambda: texts(paths),
        "openapi": lambda: openapi(paths[0]),
        "launcher": lambda: launcher(paths[0]),
        "assets": lambda: assets(paths),
        "pages": lambda: pages(paths[0]),
    }[kind]()
    target.parent.mkdir(parents=True, exist_ok=True)
    head = (
        '#include "api/dashboard/assets.h"\n\n'
        if kind in ("assets", "pages")
        else "#pragma once\n\n#include <cstddef>\n#include <cstdint>\n#include <string_view>\n\n"
    )
    target.write_text(
        f"// Made by cmake/embed.py; do not edit.\n{head}"
        f"namespace clawdforge {{\n\n{body}\n}}  // namespace clawdforge\n"
    )


main()
