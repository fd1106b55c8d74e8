"""A stand-in for the Claude command line, which does what its prompt says.

Tests name it in CLAWDFORGE_CLAUDE_BIN. Its login is that of claude_login.py. It takes the options that the gateway passes and
refuses others, as the real one does. `--version` prints a version, `auth status` a login.
It knows no environment variable of its own: the gateway would not pass it on.

The prompt on standard input is a JSON object, perhaps with blanks before it and anything
after it (such as a list of attachments); or any other text, which is answered with "echo: "
and the text itself. A JSON object as the system prompt is followed instead,
and then standard input is not read at all. The keys are done in the order of this list,
whatever theirs is:

  touch          path, or list of paths, of files to make (to show: I got here)
  log            path of a file that gets one more line (to show how often I was started)
  pid_file       path of a file that gets our process id
  ignore_term    true: SIGTERM is ignored, here and in the children
  on_term        path of a file that SIGTERM makes; it does nothing else
  children       list of ways to start a child that sleeps for ten minutes: "plain",
                 "setsid", "daemon" (two forks and setsid), "bare" (setsid and an empty
                 environment), "stubborn" (ignores TERM), "holder" (keeps our standard output
                 and error open), "forgotten" (a daemon in / without environment and
                 descriptors). Their ids go one a line into the file named by child_pids, and
                 their name is child_mark.
  child_pids, child_mark
                 see children
  close          list of "stdin", "stdout", "stderr" to close now
  stderr         text for standard error
  stderr_bytes   so many x on standard error, in lines
  stderr_raw     base64 of bytes for standard error
  stdout_bytes   so many x on standard output, in lines of 100
  wait_for       path, or list of paths: waits until all are there
  sleep          seconds to sleep
  lines          list of texts printed before the result, a line each
  report         true: the result is a JSON object with argv, env, cwd, files (names in it),
                 contents (of those up to 64 KiB, as text), prompt, pid, ppid, uid,
                 descriptors (open ones, but for the standard three), files_soft
  use_log        path of a file that gets a line with what this asks cost: dollars, input and
                 output tokens, just before the result is printed
  result         the answer, or any JSON; default: "ok"
  keys           object: more keys for the result line, or others for its own; null removes
  error          text of a result with is_error and exit code 1
  login          "skip": the login is not used, whatever it is
  known          one of KNOWN below: a failure as the real command line tells it
  reset_in       with known "usage_limit": seconds until the limit ends
  raw            base64 of bytes printed instead of the result line
  silent         true: no result line at all
  half           true: only the first half of the result line
  pretty         true: the result over several lines
  verbose        true: a list of messages, the result last
  no_newline     true: the result line without its end
  split_ms       the result line byte by byte, that many milliseconds apart in all
  repeat         the result line so many times
  touch_after    as touch, after the result
  then_wait_for  as wait_for, after the result
  then_sleep     seconds to sleep after the result
  then_lines     list of texts printed after the result
  signal         number of the signal to end itself by
  exit           exit code; default 0, or 1 after an error
"""
import os
import sys
import time

import claude_login
import lean
from lean import signal

FLAGS = {"-p", "--print", "--strict-mcp-config", "--no-session-persistence",
         "--disable-slash-commands", "--verbose"}
OPTIONS = {"--output-format", "--model", "--append-system-prompt", "--system-prompt",
           "--append-system-prompt-file", "--system-prompt-file", "--effort", "--setting-sources",
           "--permission-mode", "--settings", "--allowedTools", "--max-budget-usd", "--input-format",
           "--json-schema", "--tools", "--max-turns"}
STANDARD = {"stdin": 0, "stdout": 1, "stderr": 2}
CHILD_SECONDS = 600

# As 2.1.325 prints them; tests/real shows that it does.
KNOWN = {
    "agent_not_logged_in": {"result": "Not logged in · Please run /login", "terminal_reason": "api_error"},
    "bad_key": {"result": "Invalid API key · Fix external API key", "api_error_status": 401,
                "api_error_type": "authentication_error", "terminal_reason": "api_error"},
    "usage_limit": {"result": "Claude AI usage limit reached", "terminal_reason": "completed"},
    "session_limit": {"result": "You've hit your session limit · resets 3:30pm (Europe/Berlin)",
                      "api_error_status": 429, "api_error_type": "rate_limit_error",
                      "api_error": "usage_limit_reached", "terminal_reason": "api_error"},
    "model_limit": {"result": "You've hit your Opus limit · resets in 2h",
                    "api_error_status": 429, "api_error_type": "rate_limit_error",
                    "api_error": "usage_limit_reached", "terminal_reason": "api_error"},
    "long_context": {"result": "API Error: Extra usage is required for 1M context · enable it",
                     "api_error_status": 429, "api_error_type": "rate_limit_error",
                     "terminal_reason": "api_error"},
    "rate_limited": {"result": "API Error: Request rejected (429) · slow down",
                     "api_error_status": 429, "api_error_type": "rate_limit_error",
                     "terminal_reason": "api_error"},
    "prompt_too_long": {"result": "Prompt is too long", "terminal_reason": "blocking_limit"},
    "unknown_model": {"result": "There's an issue with the selected model (x). It may not exist or "
                                "you may not have access to it.",
                      "api_error_status": 404, "api_error_type": "not_found_error",
                      "terminal_reason": "api_error"},
    "overloaded": {"result": "API Error: 529 Overloaded. This is a server-side issue.",
                   "api_error_status": 529, "api_error_type": "overloaded_error",
                   "terminal_reason": "api_error"},
    "server_error": {"result": "API Error: 500 Internal server error.", "api_error_status": 500,
                     "api_error_type": "api_error", "terminal_reason": "api_error"},
    "unreachable": {"result": "API Error: Connection refused (ECONNREFUSED)",
                    "api_error": "connection_failed", "terminal_reason": "api_error"},
}


def listed(value):
    return [] if value is None else value if isinstance(value, list) else [value]


def put(descriptor, data):
    """Writes all of it, or until the reader has gone."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view):]
    except OSError:
        pass


def put_many(descriptor, count):
    line = b"x" * 99 + b"\n"
    block = line * 640
    while count > 0:
        put(descriptor, block[:count])
        count -= len(block)


def log(path):
    if path:
        with open(path, "a") as file:
            file.write("started\n")


def touch(paths):
    for path in listed(paths):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))


def wait_for(paths):
    while not all(os.path.exists(path) for path in listed(paths)):
        time.sleep(0.005)


def decoded(text):
    import base64
    return base64.b64decode(text)


def start_child(way, pids, mark):
    """The child writes its own id down before we go on, so that no test misses it."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        if way in ("setsid", "daemon", "bare", "forgotten"):
            os.setsid()
        if way in ("daemon", "forgotten") and os.fork() != 0:
            os._exit(0)
        if way == "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if way != "holder":
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nothing, number)
        if pids:
            file = os.open(pids, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            put(file, b"%d\n" % os.getpid())
            os.close(file)
        os.write(writer, b"x")
        os.close(writer)
        environment = {} if way in ("bare", "forgotten") else dict(os.environ)
        if way == "forgotten":
            os.chdir("/")
            os.closerange(0, 256)
        os.execve("/bin/sleep", [mark or "sleep", str(CHILD_SECONDS)], environment)
    os.close(writer)
    os.read(reader, 1)
    os.close(reader)


def report(prompt):
    import resource
    names = sorted(os.listdir("."))
    contents = {}
    for name in names:
        if os.path.isfile(name) and os.path.getsize(name) <= 65536:
            with open(name, "rb") as file:
                contents[name] = file.read().decode("utf-8", "replace")
    descriptors = []
    for number in range(3, 256):
        try:
            os.fstat(number)
            descriptors.append(number)
        except OSError:
            pass
    return {"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "files": names,
            "contents": contents, "prompt": prompt, "pid": os.getpid(), "ppid": os.getppid(),
            "uid": os.getuid(), "descriptors": descriptors,
            "files_soft": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}


def result_object(script, prompt):
    value = {"duration_api_ms": 5, "stop_reason": "end_turn", "session_id": "0", "total_cost_usd": 0.25,
             "usage": {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 30,
                       "cache_creation_input_tokens": 40, "service_tier": "standard"},
             "modelUsage": {}, "permission_denials": [], "terminal_reason": "completed",
             "is_error": False, "num_turns": 1, "subtype": "success", "api_error_status": None,
             "result": script.get("result", "ok"), "type": "result", "duration_ms": 7}
    if script.get("report"):
        value["result"] = lean.dumps(report(prompt))
    elif not isinstance(value["result"], str):
        value["result"] = lean.dumps(value["result"])
    failure = dict(KNOWN[script["known"]]) if "known" in script else {}
    if "error" in script:
        failure["result"] = script["error"]
    if failure:
        if "reset_in" in script:
            failure["result"] += "|%d" % (time.time() + script["reset_in"])
        value.update({"is_error": True, "stop_reason": "stop_sequence", "total_cost_usd": 0,
                      "usage": {"input_tokens": 0, "output_tokens": 0}}, **failure)
    value.update(script.get("keys", {}))
    return {key: item for key, item in value.items()
            if item is not None or key not in script.get("keys", {})}


def result_bytes(script, prompt):
    if "raw" in script:
        return decoded(script["raw"])
    value = result_object(script, prompt)
    if script.get("verbose"):
        value = [{"type": "system", "subtype": "init"}, value]
    if script.get("pretty"):
        import json
        text = json.dumps(value, indent=2)
    else:
        text = lean.dumps(value)
    line = text.encode() + (b"" if script.get("no_newline") else b"\n")
    return line[:len(line) // 2] if script.get("half") else line


def log_use(script, prompt):
    """In one write, so that lines of several processes do not mix."""
    if "use_log" not in script:
        return
    value = result_object(script, prompt)
    usage = value["usage"]
    line = f"{value['total_cost_usd']} {usage['input_tokens']} {usage['output_tokens']}\n"
    file = os.open(script["use_log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    put(file, line.encode())
    os.close(file)


def print_result(script, prompt):
    log_use(script, prompt)
    if script.get("silent"):
        return
    line = result_bytes(script, prompt) * script.get("repeat", 1)
    if "split_ms" not in script:
        return put(1, line)
    for number in range(len(line)):
        put(1, line[number:number + 1])
        time.sleep(script["split_ms"] / 1000 / len(line))


def check_arguments(arguments):
    """Refuses what it does not know; gives the values of the options."""
    rest = list(arguments)
    values = {}
    while rest:
        name = rest.pop(0)
        if name in OPTIONS and rest:
            values[name] = rest.pop(0)
        elif name not in FLAGS:
            put(2, f"error: unknown option '{name}'\n".encode())
            sys.exit(1)
    return values


def read_script(text):
    """The JSON object at the text's beginning, or an echo."""
    stripped = text.lstrip()
    if stripped.startswith("{"):
        try:
            return lean.first(stripped)[0]
        except ValueError:
            pass
    return {"result": "echo: " + text}


def read_all():
    pieces = []
    while piece := os.read(0, 1 << 20):
        pieces.append(piece)
    return b"".join(pieces).decode("utf-8", "replace")


def read_message():
    """Waits as a spare does: answers what gets it ready, and gives the text of the first prompt.
    None: there was none."""
    held = b""
    while piece := os.read(0, 1 << 20):
        held += piece
        while b"\n" in held:
            line, _, held = held.partition(b"\n")
            message = lean.loads(line.decode("utf-8", "replace"))
            if message["type"] == "user":
                return message["message"]["content"]
            put(1, lean.dumps({"type": "control_response", "response": {
                "subtype": "success", "request_id": message["request_id"],
                "response": {"commands": []}}}).encode() + b"\n")
    return None


def end(script):
    failed = "error" in script or "known" in script
    if "signal" in script:
        signal.signal(script["signal"], signal.SIG_DFL) if script["signal"] not in (9, 19) else None
        os.kill(os.getpid(), script["signal"])
        time.sleep(CHILD_SECONDS)
    os._exit(script.get("exit", 1 if failed else 0))


def follow(script, prompt):
    touch(script.get("touch"))
    log(script.get("log"))
    if "pid_file" in script:
        with open(script["pid_file"], "w", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")
    if script.get("ignore_term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "on_term" in script:
        signal.signal(signal.SIGTERM, lambda number, frame: touch(script["on_term"]))
    for way in listed(script.get("children")):
        start_child(way, script.get("child_pids"), script.get("child_mark"))
    for name in listed(script.get("close")):
        os.close(STANDARD[name])
    put(2, script.get("stderr", "").encode())
    put_many(2, script.get("stderr_bytes", 0))
    if "stderr_raw" in script:
        put(2, decoded(script["stderr_raw"]))
    put_many(1, script.get("stdout_bytes", 0))
    wait_for(script.get("wait_for"))
    time.sleep(script.get("sleep", 0))
    if script.get("login") != "skip" and (failed := claude_login.use()):
        script = {"error": failed}
    for line in listed(script.get("lines")):
        put(1, line.encode() + b"\n")
    print_result(script, prompt)
    touch(script.get("touch_after"))
    wait_for(script.get("then_wait_for"))
    time.sleep(script.get("then_sleep", 0))
    for line in listed(script.get("then_lines")):
        put(1, line.encode() + b"\n")
    end(script)


def main():
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        return put(1, b"2.1.325 (Claude Code)\n")
    if arguments[:2] == ["auth", "status"]:
        told, code = claude_login.status()
        put(1, lean.dumps(told).encode() + b"\n")
        os._exit(code)
    if arguments in (["-p", "/usage"], ["-p", "/cost"]):
        return claude_login.forced()
    values = check_arguments(arguments)
    system_file = values.get("--append-system-prompt-file") or values.get("--system-prompt-file")
    if system_file:
        with open(system_file, encoding="utf-8") as file:
            system = file.read()
        if system.startswith("{"):
            follow(lean.loads(system), "")
    if values.get("--input-format") == "stream-json":
        prompt = read_message()
        if prompt is None:
            return None
        put(1, b'{"type":"system","subtype":"init"}\n{"type":"assistant","message":{"content":[]}}\n')
        return follow(read_script(prompt), prompt)
    prompt = read_all()
    if not prompt.strip():
        put(2, b"Error: Input contained only whitespace.\n")
        sys.exit(1)
    follow(read_script(prompt), prompt)

