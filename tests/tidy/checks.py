"""Checks on the tree itself. Each takes the root of a tree and gives a list of findings."""
import re
import typing

import yaml

HEADER_LINES_MAX = 200
SOURCE_LINES_MAX = 600
TEST_LINES_MAX = 800
FUNCTION_LINES_MAX = 70
ROOM_LINES_MAX = 2500
ROOM_FILES_MAX = 20
BEAST_FILES_MAX = 4

ROOT_FILES = {"CMakeLists.txt", "CMakePresets.json", "README.md", "CONTRIBUTING.md", "CHANGELOG.md",
              "LICENSE", ".clang-format", ".clang-tidy", ".editorconfig", "run", "test"}
TREES = ("src", "docs", "tests", "bench", "scripts", "cmake", "dashboard", ".ci")
TEXT_SUFFIXES = {".h", ".cc", ".in", ".py", ".md", ".yaml", ".yml", ".sql", ".cmake", ".json",
                 ".txt", ".toml", ".sh", ".ts", ".tsx", ".css", ".mjs", ""}
MAIN_MAY_INCLUDE = {"base", "process/host", "agent/demo", "offline", "doctor", "daemon", "cli"}
# What the tests of a room use beyond what the room itself may: fixtures, and the real thing below.
TESTS_MAY_INCLUDE = {
    "agent/demo": {"agent/claude"},
    "api/core": {"api/admin", "api/dashboard", "ledger/browsers", "api/jobs", "api/native", "api/workspaces", "http/server", "agent/core", "ledger", "sessions/live",
                 "storage/disk", "storage/work", "uploads"},
    "ledger/jobs": {"ledger"},
    "api/native": {"agent/core", "ledger", "sessions/live", "storage/disk", "storage/work"},
    "api/shapes": {"transcript"},
    "client": {"http/server"}, "ledger/core": {"ledger"}, "ledger/sqlite": {"ledger"},
    "hooks": {"ledger"}, "ledger/rows": {"ledger"}, "offline": {"ledger"}, "quota": {"ledger"}, "keys": {"ledger"}, "runs": {"ledger", "storage/disk"},
    "sessions": {"agent/core", "ledger", "quota"}, "sessions/journal": {"ledger"},
    "uploads": {"ledger", "storage/disk"}}
COMPILED_ALONE = {"launcher"}  # rooms whose sources are not compiled together
ROOM = r"[a-z_]+(?:/[a-z_]+)?"


def sources(root):
    return sorted(p for p in (root / "src").rglob("*") if p.suffix in (".h", ".cc"))


def page_sources(root):
    """Of the dashboard; the stories and texts of its tests are data."""
    return sorted(p for p in (root / "dashboard").rglob("*") if p.suffix in (".ts", ".tsx", ".css", ".mjs"))


def documents(root):
    named = [root / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return sorted((root / "docs").rglob("*.md")) + [p for p in named if p.exists()]


def is_test(path):
    """Tests, and the headers that only tests include."""
    return re.search(r"_(test\.cc|fixture\.h)$", path.name) is not None or "tests" in path.parts


def room_of(root, path):
    """Its folder, which may be in another: src/agent/acp is the room agent/acp."""
    room = path.relative_to(root / "src").parent.as_posix()
    return None if room == "." else room


def without_fences(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


# Rooms

class Row(typing.NamedTuple):
    """What a room may include, and see through the headers that it includes: rooms and headers."""
    rooms: set
    headers: set
    seen_rooms: set = frozenset()
    seen_headers: set = frozenset()
    never: set = frozenset()

    def may_include(self, header):
        return header.rpartition("/")[0] in self.rooms or header in self.headers

    def may_see(self, header):
        return (self.may_include(header) or header in self.seen_headers
                or header.rpartition("/")[0] in self.seen_rooms)


def named_in(cell, rooms):
    """The rooms and the `headers` that a cell names; "of http only `http/x.h`" does not open http."""
    words = set(re.findall(ROOM, re.sub(rf"of {ROOM} only|`[^`]*`", "", cell)))
    named = rooms - words if "all" in words else words & rooms
    return named, set(re.findall(rf"`({ROOM}/\w+\.h)`", cell))


def room_table(text):
    """From the table in docs/architecture.md: for each room its Row."""
    lines = text.splitlines()
    heads = [i for i, line in enumerate(lines) if re.fullmatch(
        r"\|\s*room\s*\|\s*may include\s*\|\s*sees as well\s*\|\s*never\s*\|", line.strip())]
    if len(heads) != 1:
        return {}
    rows = []
    for line in lines[heads[0] + 2:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        rows.append((re.findall(ROOM, cells[0]), (cells[1:] + ["", ""])[:3]))
    rooms = {room for names, _ in rows for room in names}
    table = {}
    for names, (may_include, sees, never) in rows:
        allowed, headers = named_in(may_include, rooms)
        for name in names:
            table[name] = Row(allowed | {name}, headers, *named_in(sees, rooms),
                              named_in(never, rooms)[0])
    return table


def includes_of(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.M)


def wrong_includes(root):
    page = root / "docs" / "architecture.md"
    table = room_table(page.read_text()) if page.exists() else {}
    if not table:
        return ["docs/architecture.md has no single table | room | may include | sees as well | never |"]
    found = []
    for path in sources(root):
        room = room_of(root, path)
        place = path.relative_to(root)
        if room is not None and room not in table:
            found.append(f"{place}: the room {room} is not in the table of docs/architecture.md")
            continue
        row = table[room] if room else Row(MAIN_MAY_INCLUDE, set())
        if is_test(place):  # may use the real thing behind an interface that it may see
            shown = {header.rpartition("/")[0] for header in row.headers}
            row = Row(row.rooms | shown | TESTS_MAY_INCLUDE.get(room, set()), row.headers)
        for included in includes_of(path):
            if "/" not in included:
                found.append(f'{place}: "{included}" does not name its room')
            elif not row.may_include(included):
                found.append(f"{place}: may not include {included}")
    return found


def seen_through(start, includes):
    """Every header that a file sees, with the header that shows it to the file."""
    shown_by, waiting = {}, [start]
    while waiting:
        place = waiting.pop()
        for header in includes.get(place, []):
            if header not in shown_by:
                shown_by[header] = place
                waiting.append(header)
    return shown_by


def wrong_sights(root):
    """What a file sees, through all the headers that it includes, is in the row of its room; and
    what the row lets it see besides what it may include is really seen."""
    page = root / "docs" / "architecture.md"
    table = room_table(page.read_text()) if page.exists() else {}
    includes = {path.relative_to(root / "src").as_posix(): includes_of(path)
                for path in sources(root)}
    found, seen = [], {room: set() for room in table}
    for place in includes:
        room = place.rpartition("/")[0]
        if room not in table or is_test(root / "src" / place):
            continue
        for header, shown_by in sorted(seen_through(place, includes).items()):
            seen[room] |= {header, header.rpartition("/")[0]}
            if not table[room].may_see(header):
                found.append(f"src/{place}: sees {header} through {shown_by}")
    for room, row in table.items():
        found += [f"docs/architecture.md: {room} does not see {unseen} any more"
                  for unseen in sorted((row.seen_rooms | row.seen_headers) - seen[room])]
        found += [f"docs/architecture.md: the row of {room} both allows and rules out {both}"
                  for both in sorted((row.rooms | row.seen_rooms) & row.never)]
    return found


def include_graph(root):
    """For each room the rooms that its sources include, as lines to print."""
    arrows = {}
    for path in sources(root):
        room = room_of(root, path)
        if room is not None and not is_test(path.relative_to(root)):
            arrows.setdefault(room, set()).update(
                header.rpartition("/")[0] for header in includes_of(path))
    return [f"{room} -> {', '.join(sorted(seen - {room, ''})) or '-'}"
            for room, seen in sorted(arrows.items())]


# Sizes

def files_of_rooms(root):
    """For each room its files apart from tests."""
    rooms = {}
    for path in sources(root):
        if room_of(root, path) is not None and not is_test(path.relative_to(root)):
            rooms.setdefault(room_of(root, path), []).append(path)
    return rooms


def large_rooms(root):
    found = []
    for room, files in sorted(files_of_rooms(root).items()):
        lines = sum(len(path.read_text().splitlines()) for path in files)
        if len(files) > ROOM_FILES_MAX:
            found.append(f"src/{room}: {len(files)} files, at most {ROOM_FILES_MAX}")
        if lines > ROOM_LINES_MAX:
            found.append(f"src/{room}: {lines} lines, at most {ROOM_LINES_MAX}")
    return found


def long_files(root):
    found = []
    for path in sources(root) + page_sources(root) + sorted((root / "tests").rglob("*.py")):
        most = SOURCE_LINES_MAX
        if is_test(path.relative_to(root)):
            most = TEST_LINES_MAX
        elif path.suffix == ".h":
            most = HEADER_LINES_MAX
        count = len(path.read_text().splitlines())
        if count > most:
            found.append(f"{path.relative_to(root)}: {count} lines, at most {most}")
    return found


def functions_of(text):
    """(first line, number of lines) of what ends in a lone brace at column 0 or 2.

    Formatted code closes a function with such a brace, and nothing inside it stands as far to
    the left. Blocks of a function are found too; they are never longer than the function.
    """
    lines = text.splitlines()
    found = []
    for end, line in enumerate(lines):
        if line not in ("}", "  }"):
            continue
        indent = len(line) - 1
        begin = end - 1
        while begin >= 0 and (not lines[begin].strip() or lines[begin].startswith("#")
                              or len(lines[begin]) - len(lines[begin].lstrip()) > indent):
            begin -= 1
        if begin >= 0:
            found.append((begin + 1, end - begin + 1))
    return found


def long_functions(root):
    return [f"{path.relative_to(root)}:{line}: a function of {count} lines, at most "
            f"{FUNCTION_LINES_MAX}"
            for path in sources(root) + [p for p in page_sources(root) if p.suffix != ".css"]
            for line, count in functions_of(path.read_text())
            if count > FUNCTION_LINES_MAX and not is_class(path, line)]


def is_class(path, line):
    """Of TypeScript a class ends as a function does."""
    return path.suffix in (".ts", ".tsx", ".mjs") and re.match(
        r"(?:export )?(?:default )?(?:class|interface) ", path.read_text().splitlines()[line - 1])


# Names

def local_names(text):
    """The functions (with the types of their parameters), types and constants of unnamed namespaces.

    By the form of formatted code, so not all of them; the compiler finds the rest."""
    for space in re.findall(r"^namespace \{\n(.*?)^\}  // namespace$", text, re.S | re.M):
        for line in space.splitlines():
            if re.match(r"[\s}/#)]|TEST|RC_|using|template", line):
                continue
            found = (re.match(r"(?:class|struct|enum class|enum) (\w+)()", line)
                     or re.match(r"constexpr [^(]*?\b(k[A-Z]\w*)()", line)
                     or re.match(r"[\w:<>,&* \[\]]+[ *&](\w+)\(([^)]*)", line))
            if found:
                yield found[1], re.sub(r"\w+ *(,|$)", r"\1", found[2])


def names_twice(root):
    """The sources of a room are compiled together, and so are its tests (cmake/rooms.cmake)."""
    found, places = [], {}
    for path in sources(root):
        room = room_of(root, path)
        if path.suffix != ".cc" or room in COMPILED_ALONE:
            continue
        for name in local_names(path.read_text()):
            other = places.setdefault((room, is_test(path.relative_to(root)), *name), path)
            if other != path:
                found.append(f"{path.relative_to(root)}: {name[0]} is in {other.name} as well")
    return found


# Words

def _outside_group(path, room):
    return path.stem not in ("task_group", "task_group_test")


def _outside_process(path, room):
    return (room or "").split("/")[0] not in ("process", "launcher") and not is_test(path)


def _outside_programs(path, room):
    return room not in ("cli", "config", "daemon", "doctor", "offline", None)


def _outside_storage(path, room):
    """Programs of their own have no io thread: the host of acpx, the demo agent, the commands."""
    return not is_test(path) and (room or "").split("/")[0] not in ("storage", "offline", "cli") \
        and room not in ("ledger/sqlite", "process/host", "agent/demo")


def _everywhere(path, room):
    return True


BANNED = [
    (r"\bdetached\b", _outside_group, "a coroutine belongs to a TaskGroup"),
    (r"\bsleep_for\b", _everywhere, "wait for a condition with a bound"),
    (r"\bsystem\s*\(", _everywhere, "no shell"),
    (r"\butils\b", _everywhere, "name the thing"),
    (r"\b(?:TODO|FIXME)\b(?!.*#\d+)", _everywhere, "give it an issue's number"),
    (r"\b(?:class|struct|using|enum|concept)\s+\w*(?:Manager|Helper|Utils?|Impl)\b", _everywhere,
     "a name that says nothing"),
    (r"\bO_CREAT\b|\bofstream\b", _outside_storage, "files are made in storage, on the disk's thread"),
    (r"\bstd::cout\b", _outside_programs, "only cli and daemon print"),
    (r"(?<![.>\w])(?:v?fork|kill|killpg)\s*\(", _outside_process, "processes belong to process/"),
]


def banned_words(root):
    found = []
    for path in sources(root):
        relative = path.relative_to(root)
        room = room_of(root, path)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for pattern, applies, instead in BANNED:
                word = re.search(pattern, line)
                if word and applies(relative, room):
                    found.append(f"{relative}:{number}: {word.group().strip()}: {instead}")
    return found


# What an agent says is hostile, so the page has no place where a text becomes HTML or a program. What the browser keeps
# is in one file.
PAGE_SINKS = re.compile(r"\binnerHTML\b|\bouterHTML\b|\binsertAdjacentHTML\b|\bdocument\s*\.\s*write|\beval\s*\("
                        r"|\bnew Function\b|\bdangerouslySetInnerHTML\b|\bsrcdoc\b|\bdocument\.cookie\b")
PAGE_KEEPS = re.compile(r"\b(?:local|session)Storage\b")
PAGE_KEEPER = "dashboard/state/keep.ts"
PAGE_ABSOLUTE = re.compile(r"""\b(?:ask|askIfThere|askBlob|request|patiently|fetch)(?:<[^(]*>)?\(\s*["'`]/""")


def page_sinks(root):
    found = []
    for path in page_sources(root):
        relative = path.relative_to(root)
        if "tests" in relative.parts:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = re.sub(r"^\s*(?://|\*|/\*).*|(?<!:)//.*", "", line)
            if word := PAGE_SINKS.search(code):
                found.append(f"{relative}:{number}: {word.group()}: a text must not become HTML or a program")
            elif (word := PAGE_KEEPS.search(code)) and relative.as_posix() != PAGE_KEEPER:
                found.append(f"{relative}:{number}: {word.group()}: only {PAGE_KEEPER} keeps anything")
            elif word := PAGE_ABSOLUTE.search(code):
                found.append(f"{relative}:{number}: an absolute address does not work below a path of a proxy")
    return found


def retired(root):
    """The words in the first column of the glossary's table `| retired | say instead |`."""
    page = root / "docs" / "glossary.md"
    lines = page.read_text().splitlines() if page.exists() else []
    heads = [i for i, line in enumerate(lines) if re.match(r"\|\s*retired\s*\|", line)]
    words = []
    for head in heads:
        for line in lines[head + 2:]:
            if not line.startswith("|"):
                break
            words += re.findall(r"`([^`]+)`", line.split("|")[1])
    return words


def retired_words(root):
    """No text of the project has a word that the glossary has retired, not even with a capital;
    the changes of the past, which CHANGELOG and the decisions tell, keep the words of their time."""
    words = [f"[{word[0].upper()}{word[0]}]{re.escape(word[1:])}" for word in retired(root)]
    if not words:
        return []
    pattern = re.compile(r"(?<!\w)(?:" + "|".join(words) + r")(?!\w)")
    places = [path for path in texts(root) if path.name not in ("CHANGELOG.md", "glossary.md")
              and path.parent.name not in ("adr", "tidy")]
    found = []
    for path in places:
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if word := pattern.search(line):
                found.append(f"{path.relative_to(root)}:{number}: {word.group()} is retired: see "
                             "docs/glossary.md")
    return found


def beast_everywhere(root):
    users = [p for p in sources(root) if re.search(r"#\s*include\s+<boost/beast", p.read_text())]
    found = [f"{p.relative_to(root)}: a header outside http shows Beast" for p in users
             if p.suffix == ".h" and room_of(root, p).split("/")[0] not in ("http", "client")]
    if len(users) > BEAST_FILES_MAX:
        names = ", ".join(str(p.relative_to(root)) for p in users)
        found.append(f"Beast is in more than {BEAST_FILES_MAX} files: {names}")
    return found


def texts(root):
    """Every text file of the project, but not what was built from it."""
    found = [root / name for name in ROOT_FILES if (root / name).is_file()]
    for tree in TREES:
        found += [p for p in (root / tree).rglob("*") if p.is_file()
                  and p.suffix in TEXT_SUFFIXES and "__pycache__" not in p.parts]
    return sorted(found)


FOREIGN = re.compile(r"(?<![\w.-])/(?:work|root|farm)/"
                     r"|\b(?:registry|mirror|proxy|pypi|npm|apt|deb)[\w.-]*\.example\b")


def foreign_places(root):
    """Paths and hosts of the machine on which the project was written."""
    found = []
    for path in texts(root):
        if path == root / "tests" / "tidy" / "checks.py":
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if place := FOREIGN.search(line):
                found.append(f"{path.relative_to(root)}:{number}: {place.group()}")
    return found


# Documents

def paths_named(root, text):
    """What in a document looks like a path of this repository, as paths from the root."""
    families = {p.name for p in (root / "src").glob("*") if p.is_dir()}
    for word in re.findall(r"`([^`\s]+)`", without_fences(text)):
        word = word.removeprefix("./").split("#")[0].rstrip(".,;:")
        if re.search(r"[<>{}…$]|NNNN", word):
            continue
        first = word.split("/")[0]
        if word in ROOT_FILES or (first in TREES and "/" in word):
            yield word
        elif first in families and re.search(r"\.(h|cc|sql)$", word):
            yield "src/" + word


def dead_paths(root):
    found = []
    for page in documents(root):
        place = page.relative_to(root)
        text = page.read_text()
        for path in paths_named(root, text):
            if not (any(root.glob(path)) if "*" in path else (root / path).exists()):
                found.append(f"{place}: {path} is not there")
        for link in re.findall(r"\]\(([^)\s]+)\)", without_fences(text)):
            if not re.match(r"[a-z]+:|#", link) and not (page.parent / link.split("#")[0]).exists():
                found.append(f"{place}: the link {link} leads nowhere")
    return found


def titles(root):
    found = []
    for page in documents(root):
        count = len(re.findall(r"^# ", without_fences(page.read_text()), re.M))
        if count != 1:
            found.append(f"{page.relative_to(root)}: {count} titles")
    return found


def undocumented_errors(root):
    code = (root / "src" / "base" / "result.h").read_text()
    body = re.search(r"enum class Errc \{(.*?)\};", code, re.S).group(1)
    names = re.findall(r"^\s*([a-z_]+)\b", re.sub(r"//.*", "", body).replace(",", "\n"), re.M)
    page = root / "docs" / "architecture.md"
    rows = [line for line in page.read_text().splitlines() if line.startswith("|")] \
        if page.exists() else []
    return [f"docs/architecture.md: Errc::{name} is in no table" for name in names
            if not any(re.search(rf"\b{name}\b", row.split("|")[1]) for row in rows)]


def undocumented_limits(root):
    page = root / "docs" / "limits.md"
    text = page.read_text() if page.exists() else ""
    found = []
    for path in sources(root):
        if is_test(path.relative_to(root)):
            continue
        for name in re.findall(r"\b(k[A-Z]\w*Max)\s*(?:=|\{)", path.read_text()):
            if not re.search(rf"\b{name}\b", text):
                found.append(f"docs/limits.md: {name} of {path.relative_to(root)} is not there")
    return found


def undocumented_keys(root, keys):
    page = root / "docs" / "operations.md"
    text = page.read_text() if page.exists() else ""
    return [f"docs/operations.md: CLAWDFORGE_{key.upper()} is not there" for key in keys
            if not re.search(rf"\bCLAWDFORGE_{key.upper()}\b", text)]


# Codes

CODES_UNSEEN = {
    # `serve` ends with them before it listens
    "admin_token", "data_dir", "data_dir_in_use", "invalid_config", "ledger_newer",
    "ledger_unsupported", "listen", "no_jail", "no_launcher", "no_pid_namespace", "no_proc",
    "no_subreaper", "tls",
    # the command line's own
    "bad_url", "copy_failed", "file_exists", "file_unreadable", "file_unwritable",
    "ledger_damaged", "ledger_schema", "no_file", "stopped", "unreachable", "usage",
    # the admin sees its sentence in a list
    "webhook_failed",
    # the caller has gone, or hears of it by another code, or is cut
    "caller_gone", "file_changed", "invalid_cidr", "not_reading", "zero_byte"}
# Where a code is written down: each has the code, or the choice between two, in its group.
CODE_FORMS = [r"\bErrc::\w+,([^,;]*)[,;]", r"\b[45]\d\d,([^,;]*)[,;]",
              r"\bFault(?:\s+\w+)?\{\w+,([^,;]*)[,;]",
              r"\b(?:agent_failed|error_body)\(([^,;]*)[,;]", r"\bcode\s*=(?!=)([^,;()]*)[,;]"]


def codes_in(text):
    text = re.sub(r"(?m)(?:^|\s)//.*", "", text)
    return {code for form in CODE_FORMS for group in re.findall(form, text)
            for code in re.findall(r'"([a-z]\w*)"', group)}


def undocumented_codes(root):
    """The codes that callers may match on: those of the sources are those of openapi.yaml."""
    page = root / "docs" / "openapi.yaml"
    schemas = yaml.safe_load(page.read_text())["components"]["schemas"]
    promised = set(schemas["Code"]["enum"])
    written = {}
    for path in sources(root):
        if not is_test(path.relative_to(root)):
            written |= dict.fromkeys(codes_in(path.read_text()), path.relative_to(root))
    found = [f"docs/openapi.yaml: the code {code} of {path} is not there"
             for code, path in sorted(written.items()) if code not in promised | CODES_UNSEEN]
    found += [f"docs/openapi.yaml: no source has the code {code}"
              for code in sorted(promised - set(written))]
    return found + [f"docs/openapi.yaml: the code {code} is seen by no caller"
                    for code in sorted(promised & CODES_UNSEEN)]


CHECKS = [wrong_includes, wrong_sights, long_files, long_functions, large_rooms, names_twice,
          banned_words, page_sinks, retired_words, beast_everywhere,
          foreign_places, dead_paths, titles, undocumented_errors, undocumented_limits,
          undocumented_codes]
