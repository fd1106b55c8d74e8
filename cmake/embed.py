"""Turns text files into C++ headers at build time (see cmake/rooms.cmake)."""

import json
import pathlib
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
    return f"inline constexpr std::string_view kOpenApiJson =\n    {literal(compact)};\n"


def main() -> None:
    kind, target, sources = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    paths = [pathlib.Path(source) for source in sources]
    body = texts(paths) if kind == "texts" else openapi(paths[0])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(
        "// Made by cmake/embed.py; do not edit.\n#pragma once\n\n#include <string_view>\n\n"
        f"namespace clawdforge {{\n\n{body}\n}}  // namespace clawdforge\n"
    )


main()
