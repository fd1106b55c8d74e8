"""The tree keeps its own rules; and every rule is shown to be able to fail."""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

import checks

REPO = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = REPO / os.environ.get("CLAWDFORGE_BIN", "build/release/clawdforge")

ARCHITECTURE = """# Architecture

| room | may include | sees as well | never |
| --- | --- | --- | --- |
| base | – | – | anything else |
| http, process | base | – | model |
| model | base | – | I/O |
| ledger | base, model | – | each other |
| forge | base, model, ledger | – | http, api |
| api | base, http, forge, and of ledger only `ledger/ledger.h` | model | process |
| daemon | all but cli | – | – |
| cli | base, http | – | everything else |

The heart is `forge/apps.cc`.

| Errc | HTTP |
| --- | --- |
| invalid | 422 |
| not_found / gone | 404 / 410 |
"""
RESULT = """#pragma once
enum class Errc {
  invalid,    // breaks a rule, as in too_large
  not_found,
  gone,
};
"""
OPENAPI = """components:
  schemas:
    Code:
      enum:
        - api_error
        - bad_request
        - disk_full
        - internal
        - name_taken
        - not_found
        - queue_full
        - timeout
"""
CODES = """#include "forge/codes.h"
// Errc::invalid, "in_a_comment",
constexpr Kind kApiError{Errc::agent_failed, "api_error"};
constexpr Fault kBadRequest{400, "bad_request", "The request is not valid."};
auto a = fail(Errc::unavailable, error == ENOSPC ? "disk_full" : "internal", "A sentence.");
auto b = fail(
    Errc::conflict, "name_taken", "There is one, and \"another\".");
auto c = error_body("not_found", "There is nothing.", id);
auto d = agent_failed("queue_full", "A sentence.");
void f() { failure.code = is_late ? "timeout" : "api_error"; }
bool g() { return failure.code == "no_assignment"; }
"""


def local(*lines):
    """These in an unnamed namespace."""
    return "\n".join(["namespace clawdforge {", "namespace {", *lines, "}  // namespace",
                      "}  // namespace clawdforge", ""])


GOOD = {
    "docs/architecture.md": ARCHITECTURE,
    "docs/openapi.yaml": OPENAPI,
    "docs/operations.md": "# Operations\n\n`CLAWDFORGE_MAX_RUNS`.\n",
    "docs/limits.md": "# Limits\n\nA name has at most `kNameMax`.\n",
    "docs/glossary.md": "# Glossary\n\n| retired | say instead |\n| --- | --- |\n"
                        "| `Door`, `sees off`, `anew` | gate |\n\nA Door.\n",
    "docs/adr/0001-door.md": "# A Door\n",
    "README.md": "# It\n\nSee `docs/architecture.md`, [it](docs/operations.md), `src/*/*.h`.\n",
    "src/base/result.h": RESULT,
    "src/base/task_group.cc": "// the only place that says detached\n",
    "src/forge/apps.cc": '#include "forge/apps.h"\n#include "ledger/sql_ledger.h"\n',
    "src/forge/codes.cc": CODES,
    "src/forge/limits.cc": local("constexpr int kCount = 3;", "struct Local {", "};",
                                 "int twice(int number) { return 2 * number; }"),
    "src/forge/other.cc": local("int twice(long number) { return number; }"),
    "src/forge/apps.h": '#pragma once\n#include "model/app.h"\nconstexpr int kNameMax = 64;\n',
    "src/api/routes.cc": '#include "ledger/ledger.h"\n#include "forge/apps.h"\n',
    "src/http/parser.cc": "#include <boost/beast/http.hpp>\n",
    "src/process/child.cc": "void end() { kill(1, 9); }\n",
    "src/main.cc": '#include "daemon/serve.h"\nint main() {\n  return 0;\n}\n',
}


@pytest.fixture
def tree(tmp_path):
    """Makes the small tidy tree with some files changed, and gives its root."""
    def make(changes=None):
        for name, text in (GOOD | (changes or {})).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path
    return make


# The tree

@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
def test_the_tree_has_no(check):
    findings = check(REPO)
    assert not findings, "\n" + "\n".join(findings)


def test_every_key_of_the_configuration_is_in_the_operations_page(tmp_path):
    if not PROGRAM.exists() and "CLAWDFORGE_BIN" not in os.environ:
        pytest.skip("the program is not built")
    done = subprocess.run([str(PROGRAM), "config"], env={"HOME": str(tmp_path)}, text=True,
                          capture_output=True, check=True, timeout=60)
    keys = re.findall(r"^(?:# )?([a-z_]+) *=", done.stdout, re.M)
    assert "max_runs" in keys, done.stdout
    findings = checks.undocumented_keys(REPO, keys)
    assert not findings, "\n".join(findings)


def test_every_code_that_no_caller_sees_is_in_the_sources():
    texts = [path.read_text() for path in checks.sources(REPO)]
    assert checks.CODES_UNSEEN <= set().union(*map(checks.codes_in, texts))


@pytest.mark.parametrize("compiler, reason", [
    ("g++-12", "g++ below 13 destroys temporaries in co_await expressions twice"),
    ("clang++-14", "clang below 17 has no std::expected with libstdc++"),
])
def test_a_compiler_that_cannot_build_it_is_refused(compiler, reason, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    done = subprocess.run(["cmake", "-G", "Ninja", "-S", str(REPO), "-B", str(tmp_path),
                           f"-DCMAKE_CXX_COMPILER={compiler}"], text=True, capture_output=True,
                          timeout=300)
    said = " ".join(done.stderr.split())
    assert done.returncode != 0 and f"{reason}, so clawdforge cannot be built with it" in said, said


def compiler_call(build):
    """How the program's sources are compiled in a build folder, without the source."""
    units = json.loads((build / "compile_commands.json").read_text())
    words = shlex.split(next(unit["command"] for unit in units
                             if "/room_base.dir/" in unit["command"] and "-include-pch" in unit["command"]))
    words = words[words.index(next(word for word in words if "clang++" in word or "g++" in word)):]
    return words[:words.index("-o")] + ["-fsyntax-only", "-x", "c++", "-"]


def errors_of(header, call, build):
    done = subprocess.run(call, cwd=build, text=True, capture_output=True, timeout=300,
                          input=f'#include "{header}"\n')
    return "" if done.returncode == 0 else f"{header}:\n{done.stderr[:2000]}"


@pytest.mark.timeout(1200)
def test_each_header_compiles_alone():
    """Several sources are compiled together, so a header that leans on another goes unnoticed."""
    build = PROGRAM.parent
    if not (build / "compile_commands.json").exists() and "CLAWDFORGE_BIN" not in os.environ:
        pytest.skip("the program is not built")
    call = compiler_call(build)
    headers = [path.relative_to(REPO / "src").as_posix() for path in checks.sources(REPO)
               if path.suffix == ".h" and not checks.is_test(path.relative_to(REPO))]
    assert errors_of("base/no_such_header.h", call, build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = [said for said in pool.map(lambda header: errors_of(header, call, build), headers)
                  if said]
    assert not errors, "\n".join(errors)


# The checks

@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
def test_a_tidy_tree_passes(tree, check):
    assert check(tree()) == []


def name_of(value):
    """A short id for a parameter of the tests below."""
    return value.__name__ if callable(value) else value.strip().split("\n")[0][:40]


def body(lines):
    return "".join(f"  x({i});\n" for i in range(lines))


@pytest.mark.parametrize("check, name, text, finding", [
    (checks.wrong_includes, "src/base/x.cc", '#include "model/app.h"\n', "model/app.h"),
    (checks.wrong_includes, "src/http/x.h", '#include "model/app.h"\n', "model/app.h"),
    (checks.wrong_includes, "src/process/x.h", '#include "model/app.h"\n', "model/app.h"),
    (checks.wrong_includes, "src/forge/x.cc", '#  include "http/router.h"\n', "http/router.h"),
    (checks.wrong_includes, "src/api/x.cc", '#include "ledger/sql_ledger.h"\n', "sql_ledger.h"),
    (checks.wrong_includes, "src/api/x_test.cc", '#include "agent/x.h"\n', "agent/x.h"),
    (checks.wrong_includes, "src/daemon/x.cc", '#include "cli/token.h"\n', "cli/token.h"),
    (checks.wrong_includes, "src/cli/x_test.cc", '#include "forge/apps.h"\n', "forge/apps.h"),
    (checks.wrong_includes, "src/main.cc", '#include "forge/apps.h"\n', "forge/apps.h"),
    (checks.wrong_includes, "src/forge/x.cc", '#include "apps.h"\n', "does not name its room"),
    (checks.names_twice, "src/forge/x.cc", local("constexpr long kCount{2};"), "kCount is in limits.cc"),
    (checks.names_twice, "src/forge/x.cc", local("class Local {", "};"), "Local is in limits.cc"),
    (checks.names_twice, "src/forge/x.cc", local("int twice(int a) {", "}"), "twice is in limits.cc"),
    (checks.wrong_includes, "src/attic/x.cc", "\n", "attic"),
    (checks.wrong_includes, "docs/architecture.md", "# No table\n", "no single table"),
    (checks.wrong_sights, "src/ledger/ledger.h", '#include "ledger/file.h"\n',
     "src/api/routes.cc: sees ledger/file.h through ledger/ledger.h"),
    (checks.wrong_sights, "src/api/routes.cc", "\n", "api does not see model any more"),
    (checks.wrong_sights, "docs/architecture.md", ARCHITECTURE.replace("| process |", "| model |"),
     "the row of api both allows and rules out model"),
    (checks.wrong_sights, "docs/architecture.md", ARCHITECTURE.replace("| model | process |", "| – | process |"),
     "src/api/routes.cc: sees model/app.h through forge/apps.h"),
    (checks.large_rooms, "src/base/x.cc", "\n" * 2500, "src/base: "),
    (checks.retired_words, "src/base/x.cc", "// The Door is shut.\n", "x.cc:1"),
    (checks.retired_words, "src/base/x_test.cc", "int x;  // it sees off\n", "x_test.cc:1"),
    (checks.retired_words, "docs/x.md", "# X\n\nThe Door.\n", "x.md:3"),
    (checks.retired_words, "src/base/x.cc", "// Anew it begins.\n", "x.cc:1: Anew"),
    (checks.retired_words, "src/base/x.sql", "-- begun anew\n", "x.sql:1"),
    (checks.retired_words, "tests/blackbox/test_x.py", "# begun anew\n", "test_x.py:1"),
    (checks.retired_words, "docs/openapi.yaml", OPENAPI + "# begun anew\n", "openapi.yaml:"),
    (checks.long_files, "src/base/x.h", "\n" * 201, "201 lines"),
    (checks.long_files, "src/base/x.cc", "\n" * 601, "601 lines"),
    (checks.long_files, "src/base/x_test.cc", "\n" * 801, "801 lines"),
    (checks.long_files, "tests/blackbox/test_x.py", "\n" * 801, "801 lines"),
    (checks.long_functions, "src/base/x.cc", "void f() {\n" + body(69) + "}\n", "x.cc:1"),
    (checks.long_functions, "src/base/x.cc",
     "Result<int> f(int a,\n              int b) {\n" + body(69) + "}\n", "72 lines"),
    (checks.long_functions, "src/base/x.h",
     "class X {\n  void f() {\n" + body(69).replace("  x", "    x") + "  }\n};\n", "x.h:2"),
    (checks.long_files, "dashboard/pages/x.tsx", "\n" * 601, "601 lines"),
    (checks.long_functions, "dashboard/pages/x.tsx", "function f() {\n" + body(69) + "}\n", "x.tsx:1"),
    (checks.page_sinks, "dashboard/x.tsx", "box.innerHTML = text;\n", "innerHTML"),
    (checks.page_sinks, "dashboard/x.tsx", "<p dangerouslySetInnerHTML={a} />\n", "dangerouslySetInnerHTML"),
    (checks.page_sinks, "dashboard/x.ts", 'box.insertAdjacentHTML("x", y);\n', "insertAdjacentHTML"),
    (checks.page_sinks, "dashboard/x.ts", "eval(text);\n", "eval("),
    (checks.page_sinks, "dashboard/x.ts", "document.write(text);\n", "document.write"),
    (checks.page_sinks, "dashboard/x.ts", "new Function(text);\n", "new Function"),
    (checks.page_sinks, "dashboard/x.ts", "localStorage.setItem(a, b);\n", "localStorage"),
    (checks.page_sinks, "dashboard/x.ts", 'await ask<X>("/runs");\n', "absolute"),
    (checks.banned_words, "src/base/x.cc", "co_spawn(io, f(), detached);\n", "detached"),
    (checks.banned_words, "src/base/x.cc", "std::this_thread::sleep_for(1s);\n", "sleep_for"),
    (checks.banned_words, "src/base/x_test.cc", "std::this_thread::sleep_for(1s);\n", "sleep_for"),
    (checks.banned_words, "src/base/x.cc", 'system("ls");\n', "system("),
    (checks.banned_words, "src/base/x.cc", '#include "utils/x.h"\n', "utils"),
    (checks.banned_words, "src/base/x.cc", "// TODO: later\n", "TODO"),
    (checks.banned_words, "src/base/x.cc", "// FIXME later\n", "FIXME"),
    (checks.banned_words, "src/base/x.cc", "class TokenManager {};\n", "TokenManager"),
    (checks.banned_words, "src/base/x.cc", "struct ServerImpl;\n", "ServerImpl"),
    (checks.banned_words, "src/base/x.cc", "using StringUtil = int;\n", "StringUtil"),
    (checks.banned_words, "src/forge/x.cc", "std::cout << 1;\n", "std::cout"),
    (checks.banned_words, "src/forge/x.cc", "open(path, O_WRONLY | O_CREAT, 0600);\n", "O_CREAT"),
    (checks.banned_words, "src/forge/x.cc", "std::ofstream file(path);\n", "ofstream"),
    (checks.banned_words, "src/forge/x.cc", "if (fork() == 0) return;\n", "fork("),
    (checks.banned_words, "src/forge/x.cc", "::kill(pid, SIGTERM);\n", "kill("),
    (checks.beast_everywhere, "src/forge/x.h", "#include <boost/beast/core.hpp>\n", "x.h"),
    (checks.foreign_places, "docs/x.md", "# X\n\nIn /" + "work/main.\n", "x.md:3"),
    (checks.foreign_places, "src/base/x.cc", '"/' + 'root/.cache"\n', "x.cc:1"),
    (checks.foreign_places, "scripts/get", "curl https://registry.local." + "example/x\n", "get:1"),
    (checks.dead_paths, "README.md", "# X\n\n`docs/nowhere.md`\n", "docs/nowhere.md"),
    (checks.dead_paths, "README.md", "# X\n\n`CHANGELOG.md`\n", "CHANGELOG.md"),
    (checks.dead_paths, "README.md", "# X\n\n`forge/pool.cc`\n", "src/forge/pool.cc"),
    (checks.dead_paths, "README.md", "# X\n\n`./run`\n", "run"),
    (checks.dead_paths, "README.md", "# X\n\n`tests/*/x.py`\n", "tests/*/x.py"),
    (checks.dead_paths, "docs/x.md", "# X\n\n[gone](gone.md#here)\n", "gone.md"),
    (checks.titles, "docs/x.md", "# One\n\n# Two\n", "2 titles"),
    (checks.titles, "docs/adr/0001-x.md", "No title\n\n```\n# a comment\n```\n", "0 titles"),
    (checks.undocumented_errors, "src/base/result.h", RESULT.replace("gone", "lost"), "lost"),
    (checks.undocumented_limits, "src/http/x.cc", "constexpr int kHeadBytesMax{1};\n",
     "kHeadBytesMax"),
    (checks.undocumented_limits, "src/http/x.h", "inline constexpr auto kXMax = 1;\n", "kXMax"),
    (checks.undocumented_codes, "docs/openapi.yaml", OPENAPI + "        - unheard_of\n",
     "no source has the code unheard_of"),
    (checks.undocumented_codes, "docs/openapi.yaml", OPENAPI.replace("        - timeout\n", ""),
     "the code timeout of src/forge/codes.cc"),
    (checks.undocumented_codes, "src/forge/x.cc", 'fail(Errc::invalid,\n    "new_one", "");\n',
     "new_one"),
    (checks.undocumented_codes, "src/http/x.cc", 'Fault k{kGone, "new_two", "x"};\n', "new_two"),
    (checks.undocumented_codes, "src/http/x.h", 'Fault kX{503, "new_three", "x"};\n', "new_three"),
    (checks.undocumented_codes, "src/agent/x.cc", '.code = "new_four", .sentence = {}\n',
     "new_four"),
], ids=name_of)
def test_a_check_finds(tree, check, name, text, finding):
    findings = check(tree({name: text}))
    assert len(findings) == 1 and finding in findings[0], findings


@pytest.mark.parametrize("check, name, text", [
    (checks.wrong_includes, "src/daemon/x.cc", '#include "api/routes.h"\n#include "http/x.h"\n'),
    (checks.wrong_includes, "src/base/x.cc", "#include <model/app.h>\n"),
    (checks.long_functions, "src/base/x.cc", "void f() {\n" + body(68) + "}\n"),
    (checks.long_functions, "src/base/x.cc", "namespace {\n" + "int x;\n" * 90 + "}  // end\n"),
    (checks.long_functions, "src/base/x.cc", "constexpr int k[] = {\n" + "    1,\n" * 90 + "};\n"),
    (checks.long_functions, "dashboard/x.ts", "class X {\n" + body(90) + "}\n"),
    (checks.page_sinks, "dashboard/x.ts", "// innerHTML would be one\nask(\"runs\");\n"),
    (checks.page_sinks, "dashboard/state/keep.ts", "localStorage.setItem(a, b);\n"),
    (checks.banned_words, "src/base/x.cc", "// TODO(#12): later\n"),
    (checks.banned_words, "src/base/x.cc", "auto now = std::chrono::system_clock::now();\n"),
    (checks.banned_words, "src/forge/x.cc", "child.kill();\nchild->kill();\nskill(1);\n"),
    (checks.banned_words, "src/forge/x_test.cc", "::kill(pid, SIGTERM);\n"),
    (checks.banned_words, "src/forge/x_fixture.h", "if (fork() == 0) return;\n"),
    (checks.banned_words, "src/cli/x.cc", "std::cout << 1;\n"),
    (checks.banned_words, "src/forge/x_test.cc", "std::ofstream file(path);\n"),
    (checks.beast_everywhere, "src/http/x.h", "#include <boost/beast/core.hpp>\n"),
    (checks.dead_paths, "README.md", "# X\n\n```\n`docs/none.md`\n```\n`src/<room>/x.h` `a/b`\n"),
    (checks.retired_words, "CHANGELOG.md", "# Changes\n\nThe Door begins anew.\n"),
    (checks.undocumented_limits, "src/http/x_test.cc", "constexpr int kTestMax = 1;\n"),
    (checks.undocumented_codes, "src/http/x_test.cc", 'fail(Errc::invalid, "of_a_test", "");\n'),
    (checks.undocumented_codes, "src/http/x.cc", 'return fail(Errc::internal, "listen", "");\n'),
], ids=name_of)
def test_a_check_leaves_alone(tree, check, name, text):
    assert check(tree({name: text})) == []


def test_a_room_of_more_than_twenty_files_is_found(tree):
    files = {f"src/cli/x{i}.cc": "" for i in range(20)} | {"src/cli/x_test.cc": ""}
    assert checks.large_rooms(tree(files)) == []
    assert checks.large_rooms(tree({"src/cli/one_more.h": ""})) == ["src/cli: 21 files, at most 20"]


def test_the_include_graph(capsys):
    """The arrows between rooms that are really used; always printed."""
    with capsys.disabled():
        print("", *checks.include_graph(REPO), sep="\n")


def test_a_fifth_file_with_beast_is_one_too_many(tree):
    beast = "#include <boost/beast/http.hpp>\n"
    root = tree({f"src/http/x{i}.cc": beast for i in range(3)})
    assert checks.beast_everywhere(root) == []
    root = tree({"src/http/x3.cc": beast})
    assert len(checks.beast_everywhere(root)) == 1


def test_a_key_that_is_not_in_the_operations_page_is_found(tree):
    root = tree()
    assert checks.undocumented_keys(root, ["max_runs"]) == []
    assert len(checks.undocumented_keys(root, ["max_runs", "max_run"])) == 1
