"""Turns files into C++ headers at build time (see cmake/rooms.cmake)."""

import json
import pathlib
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


def launcher(path: pathlib.Path) -> str:
    """The program as 64-bit words: a compiler reads them several times faster than bytes."""
    program = path.read_bytes()
    padded = program + b"\0" * (-len(program) % 8)
    words = [f"0x{word:x}" for (word,) in struct.iter_unpack("=Q", padded)]
    rows = ",\n".join(",".join(words[i : i + 16]) for i in range(0, len(words), 16))
    return (
        f"inline constexpr std::size_t kLauncherBytes = {len(program)};\n"
        f"inline constexpr std::uint64_t kLauncherWords[] = {{\n{rows}}};\n"
    )


def main() -> None:
    kind, target, sources = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    paths = [pathlib.Path(source) for source in sources]
    body = {
        "texts": lambda: texts(paths),
        "openapi": lambda: openapi(paths[0]),
        "launcher": lambda: launcher(paths[0]),
    }[kind]()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(
        "// Made by cmake/embed.py; do not edit.\n#pragma once\n\n"
        "#include <cstddef>\n#include <cstdint>\n#include <string_view>\n\n"
        f"namespace clawdforge {{\n\n{body}\n}}  // namespace clawdforge\n"
    )


main()
