"""A stand-in for the acpx command line (as of 0.19), with its grammar, its output of --format
json, its exit codes, its files in HOME and its queue owner, which it leaves running. It drives
any agent of the Agent Client Protocol. It shares no code with the gateway, nor with acpx.

  fake_acpx [global options] NAME VERB...               NAME is looked up in ~/.acpx/config.json
  fake_acpx [global options] --agent 'COMMAND' VERB...

Verbs: sessions new|ensure|show|close, prompt -s NAME -f -, cancel -s NAME, set KEY VALUE -s NAME.
Where it differs: it waits for the silence after a turn for 50 ms, not for a second.

The environment variable FAKE_ACPX is a list of what goes wrong, with commas between:

  garbage       lines that are not JSON objects among the traffic of a prompt, and empty ones
  exit5         a prompt ends with 5, whatever its answer
  exit1         likewise with 1
  no_stop       the line with the stop reason is lost, and the exit code is 0
  dumb          a prompt ends with 1 and says nothing at all
  timeout, no_session, usage, queue, denied
                a prompt fails with acpx's own error of that kind
  bare          of these the error line is lost; the exit code stays
  replace       the agent gets a new conversation whenever the owner starts it
  forget_silently
                the same, and the session/new exchange is not shown
  early_cancel  the first cancel of each turn says that there was nothing to cancel
  slow_close    closing takes ten seconds
  no_close      closing fails
  no_id         a new session is printed without its id
  mute          a new session prints nothing, and ends with 0
  stall         no verb ever ends
"""
import os
import select
import sys
import time

import lean
from lean import signal

VERSION = "0.19.1"
DRAIN_SECONDS = 0.05
START_SECONDS_MAX = 60
HOME = os.environ.get("HOME", "/")
FAULTS = set(filter(None, os.environ.get("FAKE_ACPX", "").split(",")))
SWITCHES = {"--approve-all", "--approve-reads", "--deny-all", "--json-strict", "--no-fs",
            "--no-terminal", "--verbose", "--suppress-reads"}
VALUED = {"--agent", "--cwd", "--format", "--model", "--ttl", "--timeout", "--mcp-config",
          "--non-interactive-permissions", "--permission-policy", "--auth-policy",
          "--system-prompt", "--append-system-prompt", "--allowed-tools", "--max-turns",
          "--prompt-retries"}
EXITS = {"RUNTIME": 1, "USAGE": 2, "TIMEOUT": 3, "NO_SESSION": 4, "PERMISSION_DENIED": 5}


class Fault(Exception):
    def __init__(self, message, acpx_code="RUNTIME", code=-32603, detail=None, origin="cli"):
        super().__init__(message)
        self.exit = EXITS[acpx_code]
        data = {"acpxCode": acpx_code, **({"detailCode": detail} if detail else {}),
                "origin": origin, "sessionId": "unknown"}
        self.line = {"jsonrpc": "2.0", "id": None,
                     "error": {"code": code, "message": message, "data": data}}


PLANNED = {
    "timeout": ("Timed out after 1000ms", "TIMEOUT", -32070, "QUEUE_RUNTIME_PROMPT_FAILED"),
    "no_session": ("No acpx session found", "NO_SESSION", -32002, None),
    "usage": ("error: unknown option '--ttl'", "USAGE", -32602, None),
    "queue": ("Queue owner disconnected before prompt completion", "RUNTIME", -32603,
              "QUEUE_DISCONNECTED_BEFORE_COMPLETION"),
    "denied": ("Permission prompt unavailable", "PERMISSION_DENIED", -32072, None)}


class AgentGone(Exception):
    pass


class AgentError(Exception):
    def __init__(self, error):
        super().__init__(error)
        self.error = error


def put_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]


def put(descriptor, data):
    try:
        put_all(descriptor, data)
    except OSError:
        os._exit(1)


def as_line(message):
    return lean.dumps(message, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass") + b"\n"


def say(message):
    put(1, as_line(message))


# The files

def folder(name):
    path = os.path.join(HOME, ".acpx", name)
    os.makedirs(path, mode=0o700, exist_ok=True)
    return path


def quoted(text):
    """As a part of a path, which encodeURIComponent makes of it in acpx."""
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.!~*'()")
                   else "".join(f"%{byte:02X}" for byte in letter.encode()) for letter in text)


def joined(argv):
    import shlex
    return shlex.join(argv)


def words_of(command):
    if not set(command) & set("\"'\\"):
        return command.split()
    import shlex
    return shlex.split(command)


def record_path(record_id, end=".json"):
    return os.path.join(folder("sessions"), quoted(record_id) + end)


def queue_key(record_id):
    return lean.sha256(record_id.encode()).hexdigest()[:24]


def lock_path(record_id):
    return os.path.join(folder("queues"), queue_key(record_id) + ".lock")


def socket_path(record_id):
    place = os.path.join("/tmp", "acpx-" + lean.sha256(HOME.encode()).hexdigest()[:10])
    os.makedirs(place, mode=0o700, exist_ok=True)
    return os.path.join(place, queue_key(record_id) + ".sock")


def save(record):
    path = record_path(record["acpx_record_id"])
    new = f"{path}.{os.getpid()}.tmp"
    with open(new, "w", encoding="utf-8") as file:
        file.write(lean.dumps(record))
    os.replace(new, path)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return lean.loads(file.read())
    except (OSError, ValueError):
        return None


def find(call, name):
    for file in sorted(os.listdir(folder("sessions"))):
        record = load(os.path.join(folder("sessions"), file)) if file.endswith(".json") else None
        if record and not record["closed"] and (
                record["agent_command"], record["cwd"], record["name"]) == (
                call.command, call.cwd, name):
            return record
    return None


# The agent

class Client:
    """Speaks with the agent. `show` gets every message that acpx would print; `pump` is called
    while it waits, and waits for what else may come."""

    def __init__(self, call, show=lambda message: None, extra=()):
        self.call = call
        self.show = show
        self.extra = extra  # descriptors to watch beside, with what to call
        self.buffer = b""
        self.next_id = 0
        self.responses = {}
        self.hidden = set()  # ids of requests that are not shown
        self.is_replaying = False
        argv = words_of(call.command)
        try:
            self.process = lean.Child(argv, cwd=call.cwd)
        except OSError:
            raise Fault(f"Failed to spawn agent command: {argv[0]}.",
                        detail="AGENT_SPAWN_ENOENT") from None
        self.result = None

    def send(self, message):
        try:
            put_all(self.process.stdin.fileno(), as_line(message))
        except OSError:
            raise AgentGone from None

    def wait(self, seconds=None):
        """Attends to what comes first."""
        watched = [self.process.stdout, *(fd for fd, _ in self.extra)]
        ready = select.select(watched, [], [], seconds)[0]
        for descriptor, act in self.extra:
            if descriptor in ready:
                act()
        if watched[0] in ready:
            piece = os.read(watched[0], 1 << 20)
            if not piece:
                raise AgentGone
            *lines, self.buffer = (self.buffer + piece).split(b"\n")
            for line in lines:
                self.take(line)
        return bool(ready)

    def take(self, line):
        try:
            message = lean.loads(line.decode("utf-8", "replace"))
        except ValueError:
            return  # acpx drops it silently
        if not isinstance(message, dict):
            return
        if "method" not in message:
            if message.get("id") in self.responses:
                self.responses[message["id"]] = message
                if message["id"] not in self.hidden:
                    self.show(message)
            return
        if not self.is_replaying:
            self.show(message)
        if "id" in message:
            answer = {"jsonrpc": "2.0", "id": message["id"], **self.answer(message)}
            self.show(answer)
            self.send(answer)

    def answer(self, message):
        if message["method"] != "session/request_permission":
            return {"error": {"code": -32601, "message": f"Method not found: {message['method']}"}}
        params = message.get("params")
        if not isinstance(params, dict):
            return {"error": {"code": -32602, "message": "Invalid params"}}
        kind = params.get("toolCall", {}).get("kind")
        allows = self.call.mode == "--approve-all" or (
            self.call.mode == "--approve-reads" and kind in ("read", "search"))
        wanted = ("allow_once", "allow_always") if allows else ("reject_once", "reject_always")
        for want in wanted:
            for option in params.get("options", []):
                if option.get("kind") == want:
                    return {"result": {"outcome": {"outcome": "selected",
                                                   "optionId": option["optionId"]}}}
        return {"result": {"outcome": {"outcome": "cancelled"}}}

    def begin(self, method, params, is_shown=True):
        message_id = self.next_id
        self.next_id += 1
        message = {"jsonrpc": "2.0", "id": message_id, "method": method, "params": params}
        if is_shown:
            self.show(message)
        else:
            self.hidden.add(message_id)
        self.responses[message_id] = None
        self.send(message)
        return message_id

    def request(self, method, params, is_shown=True):
        message_id = self.begin(method, params, is_shown)
        while self.responses[message_id] is None:
            self.wait()
        response = self.responses.pop(message_id)
        if "error" in response:
            raise AgentError(response["error"])
        return response["result"] or {}

    def initialize(self):
        self.result = self.request("initialize", {
            "protocolVersion": 1, "clientCapabilities": {
                "fs": {"readTextFile": not self.call.no_fs, "writeTextFile": not self.call.no_fs},
                "terminal": not self.call.no_terminal},
            "clientInfo": {"name": "acpx", "version": VERSION}})

    def params(self, **more):
        return {**more, "cwd": self.call.cwd, "mcpServers": self.call.mcp_servers}

    def new(self, is_shown=True):
        return self.request("session/new", self.params(), is_shown)

    def reopen(self, record):
        """Loads the record's conversation, or silently begins another. Gives the options."""
        abilities = self.result.get("agentCapabilities", {})
        can_resume = "resume" in abilities.get("sessionCapabilities", {})
        if (can_resume or abilities.get("loadSession")) and not FAULTS & {
                "replace", "forget_silently"}:
            method = "session/resume" if can_resume else "session/load"
            held, shown = [], self.show
            self.show = held.append  # the exchange is not shown when it fails
            self.is_replaying = True
            try:
                result = self.request(method, self.params(sessionId=record["acp_session_id"]))
                self.show = shown
                for message in held:
                    shown(message)
                return result.get("configOptions", [])
            except AgentError as failed:
                self.show = shown
                if failed.error.get("code") == -32000:
                    raise
            finally:
                self.show = shown
                self.is_replaying = False
        result = self.new("forget_silently" not in FAULTS)
        record["acp_session_id"] = result["sessionId"]
        save(record)
        return result.get("configOptions", [])

    def set(self, record, config_id, value):
        result = self.request("session/set_config_option", {
            "sessionId": record["acp_session_id"], "configId": config_id, "value": value})
        return result.get("configOptions", [])

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(0.3)
        except lean.Expired:
            self.process.kill(signal.SIGTERM)
            try:
                self.process.wait(1.5)
            except lean.Expired:
                self.process.kill()
                self.process.wait()


def model_option(options):
    for option in options:
        if option.get("category") == "model" or option.get("id") == "model":
            return option
    return None


def set_model(client, record, options, model):
    option = model_option(options)
    if option is None:
        raise Fault(f'Cannot apply --model "{model}": the ACP agent did not advertise model '
                    "support through a session config option or legacy models metadata.")
    values = [value["value"] for value in option["options"]]
    if model not in values:
        raise Fault(f'Cannot apply --model "{model}": the ACP agent did not advertise that model. '
                    f"Available models: {', '.join(values)}.")
    return client.set(record, option["id"], model) if option["currentValue"] != model else options


def agent_fault(failed):
    error = failed.error
    if error.get("code") == -32000:
        return Fault(error.get("message", ""), code=-32000, detail="AUTH_REQUIRED")
    return Fault(error.get("message", ""), code=error.get("code", -32603))


GONE_AT_START = Fault("ACP agent exited before initialize completed (exit=1, signal=null)",
                      detail="AGENT_STARTUP_FAILED", origin="acp")
GONE = Fault("ACP agent disconnected during request (connection_close, exit=null, signal=null)",
             detail="AGENT_DISCONNECTED", origin="acp")


# The queue owner

class Owner:
    """Serves the prompts of one record, one by one, until it is told to end."""

    def __init__(self, call, record):
        self.call = call
        self.record = record
        self.client = None
        self.queue = []      # connections with a prompt to come
        self.viewer = None   # of the prompt under way
        self.session_of_turn = None
        self.cancels = 0
        self.server = lean.unix_socket()
        self.server.bind(socket_path(record["acpx_record_id"]))
        self.server.listen(16)
        self.journal = open(record_path(record["acpx_record_id"], ".stream.ndjson"), "ab",
                            buffering=0)
        with open(lock_path(record["acpx_record_id"]), "w", encoding="ascii") as lock:
            lock.write(lean.dumps({"pid": os.getpid(),
                                    "socketPath": self.server.getsockname()}))

    def run(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            while True:
                while self.queue:
                    self.serve(*self.queue.pop(0))
                self.wait_for_work()
        finally:
            self.end_agent()
            for path in (socket_path(self.record["acpx_record_id"]),
                         lock_path(self.record["acpx_record_id"])):
                if os.path.exists(path):
                    os.unlink(path)

    def wait_for_work(self):
        watched = [self.server.fileno()]
        if self.client:
            watched.append(self.client.process.stdout)
        ready = select.select(watched, [], [])[0]
        if self.server.fileno() in ready:
            self.accept()
        elif self.client:
            try:
                self.client.wait(0)  # between turns its messages are not shown
            except AgentGone:
                self.end_agent()

    def accept(self):
        connection = lean.accepted(self.server)
        request = lean.loads(lean.lines_of(connection).readline())
        if request["verb"] == "prompt":
            self.queue.append((connection, request))
            return
        answer = {}
        if request["verb"] == "cancel":
            self.cancels += 1
            is_early = "early_cancel" in FAULTS and self.cancels == 1
            answer["cancelled"] = self.session_of_turn is not None and not is_early
            if answer["cancelled"]:
                message = {"jsonrpc": "2.0", "method": "session/cancel",
                           "params": {"sessionId": self.session_of_turn}}
                self.show(message)
                self.client.send(message)
        elif request["verb"] == "set":
            self.record = load(record_path(self.record["acpx_record_id"])) or self.record
            answer["configOptions"] = self.client.set(self.record, request["key"], request["value"])
        connection.sendall(as_line(answer))
        connection.close()
        if request["verb"] == "close":
            sys.exit(0)

    def show(self, message):
        line = as_line(message)
        self.journal.write(line)
        if self.viewer:
            try:
                self.viewer.sendall(line)
            except OSError:
                self.viewer = None  # it was only a viewer: the turn goes on

    def start_agent(self):
        self.client = Client(self.call, self.show, [(self.server.fileno(), self.accept)])
        try:
            self.client.initialize()
            options = self.client.reopen(self.record)
            model = self.call.model or self.record["model"]
            if model:
                options = set_model(self.client, self.record, options, model)
            else:
                for key, value in self.record["desired"].items():
                    options = self.client.set(self.record, key, value)
        except AgentGone:
            raise GONE_AT_START from None

    def end_agent(self):
        if self.client:
            self.client.end()
        self.client = None

    def serve(self, connection, request):
        self.viewer, self.cancels = connection, 0
        end = {"exit": 0}
        try:
            if self.client is None:
                self.start_agent()
            self.session_of_turn = self.record["acp_session_id"]
            self.client.request("session/prompt", {"sessionId": self.session_of_turn,
                                                   "prompt": request["blocks"]})
            self.session_of_turn = None
            while self.client.wait(DRAIN_SECONDS):
                pass
        except AgentError as failed:
            end = {"exit": 1}
            if self.session_of_turn is None:  # not of the prompt: it has not been shown
                end["line"] = agent_fault(failed).line
                self.end_agent()
        except AgentGone:
            if self.session_of_turn is not None:
                end = {"exit": 1, "line": GONE.line}
            self.end_agent()
        except Fault as fault:
            end = {"exit": fault.exit, "line": fault.line}
            self.end_agent()
        self.session_of_turn = None
        self.show({"__end": end})
        if self.viewer:
            self.viewer.close()
        self.viewer = None


def ask_owner(record, request):
    """The connection to the owner with the request on it; none: there is no owner."""
    connection = lean.unix_socket()
    try:
        connection.connect(socket_path(record["acpx_record_id"]))
    except OSError:
        return None
    connection.sendall(as_line(request))
    return connection


def start_owner(call, record):
    """The owner goes on after we end: we do not wait for it, and it has its own session."""
    for path in (socket_path(record["acpx_record_id"]), lock_path(record["acpx_record_id"])):
        if os.path.exists(path):
            os.unlink(path)
    payload = lean.dumps({"call": vars(call), "record": record["acpx_record_id"]})
    owner = lean.Child([sys.executable, "-SE", os.path.abspath(sys.argv[0]), "__queue-owner"],
                       drops_output=True, has_session=True)
    put_all(owner.stdin.fileno(), payload.encode())
    owner.stdin.close()
    end = time.monotonic() + START_SECONDS_MAX
    while not os.path.exists(lock_path(record["acpx_record_id"])):
        if owner.poll() or time.monotonic() > end:
            raise Fault("Session queue owner failed to start", detail="QUEUE_OWNER_CLOSED")
        time.sleep(0.005)


def queue_owner():
    payload = lean.loads(sys.stdin.read())
    call = Call([])
    vars(call).update(payload["call"])
    Owner(call, load(record_path(payload["record"]))).run()


# The verbs

class Call:
    def __init__(self, arguments):
        self.command = None
        self.cwd = os.getcwd()
        self.mode = "--approve-reads"
        self.model = None
        self.mcp_servers = []
        self.no_fs = self.no_terminal = self.is_strict = self.is_json = False
        self.rest = self.read(list(arguments))

    def read(self, rest):
        modes = 0
        while rest and rest[0].startswith("-"):
            name = rest.pop(0)
            if name not in SWITCHES | VALUED or (name in VALUED and not rest):
                raise Fault(f"error: unknown option '{name}'", "USAGE", -32602)
            value = rest.pop(0) if name in VALUED else None
            if name in ("--approve-all", "--approve-reads", "--deny-all"):
                self.mode, modes = name, modes + 1
            elif name == "--mcp-config":
                self.mcp_servers = lean.loads(open(value, encoding="utf-8").read())["mcpServers"]
            elif name in ("--agent", "--cwd", "--model"):
                setattr(self, {"--agent": "command"}.get(name, name[2:]), value)
            elif name in ("--no-fs", "--no-terminal"):
                setattr(self, name[2:].replace("-", "_"), True)
            elif name == "--json-strict":
                self.is_strict = True
            elif name == "--format":
                self.is_json = value == "json"
        if modes > 1 or (self.is_strict and not self.is_json):
            raise Fault("error: options that exclude each other", "USAGE", -32602)
        if rest and self.command is None and rest[0] not in VERBS:
            config = load(os.path.join(HOME, ".acpx", "config.json")) or {}
            named = config.get("agents", {}).get(rest.pop(0), {})
            self.command = joined(named.get("argv", ["/nonexistent/agent"]))
        return rest


def option(rest, *names):
    """The value of an option of a verb."""
    for name in names:
        if name in rest and rest.index(name) + 1 < len(rest):
            return rest[rest.index(name) + 1]
    return None


def created(record, is_new):
    say({"action": "session_ensured", "created": is_new,
         **({} if "no_id" in FAULTS else {"acpxRecordId": record["acpx_record_id"]}),
         "acpxSessionId": record["acp_session_id"], "name": record["name"]})
    return 0


def make(call, name):
    client = Client(call)
    record = {"schema": "acpx.session.v1", "agent_command": call.command, "cwd": call.cwd,
              "name": name, "closed": False, "model": call.model, "desired": {}}
    try:
        client.initialize()
        result = client.new()
        record["acpx_record_id"] = record["acp_session_id"] = result["sessionId"]
        options = result.get("configOptions", [])
        if call.model:
            options = set_model(client, record, options, call.model)
        record["config_options"] = options
    except AgentError as failed:
        raise agent_fault(failed) from None
    except AgentGone:
        raise GONE_AT_START from None
    except KeyError:
        raise Fault("Invalid result of session/new") from None
    finally:
        client.end()
    save(record)
    return record


def sessions_new(call, rest):
    if "mute" in FAULTS:
        return 0
    name = option(rest, "--name", "-s")
    old = find(call, name)
    if old:
        close(old)
    return created(make(call, name), True)


def sessions_ensure(call, rest):
    name = option(rest, "--name", "-s")
    found = find(call, name)
    return created(found or make(call, name), found is None)


def known(call, name):
    record = find(call, name)
    if record is None:
        raise Fault(f"No acpx session found (searched up to {call.cwd}).", "NO_SESSION", -32002)
    return record


def sessions_show(call, rest):
    record = known(call, rest[0] if rest else None)
    say({"schema": record["schema"], "acpxRecordId": record["acpx_record_id"],
         "acpSessionId": record["acp_session_id"], "name": record["name"],
         "acpx": {"config_options": record["config_options"]}})
    return 0


def close(record):
    connection = ask_owner(record, {"verb": "close"})
    if connection:
        lean.lines_of(connection).read()
        path = lock_path(record["acpx_record_id"])
        while os.path.exists(path):
            time.sleep(0.005)
    record = load(record_path(record["acpx_record_id"])) or record
    save({**record, "closed": True})


def sessions_close(call, rest):
    if "slow_close" in FAULTS:
        time.sleep(10)
    name = rest[0] if rest else None
    record = find(call, name)
    if record is None or "no_close" in FAULTS:
        raise Fault(f'No named session "{name}" for cwd {call.cwd} and agent codex')
    close(record)
    say({"action": "session_closed", "acpxRecordId": record["acpx_record_id"],
         "acpxSessionId": record["acp_session_id"]})
    return 0


def cancel(call, rest):
    record = find(call, option(rest, "-s", "--session"))
    answer = {}
    connection = ask_owner(record, {"verb": "cancel"}) if record else None
    if connection:
        answer = lean.loads(lean.lines_of(connection).readline() or b"{}")
    record_id = record["acpx_record_id"] if record else "unknown"
    say({"action": "cancel_result", "acpxRecordId": record_id,
         "cancelled": answer.get("cancelled", False)})
    return 0


def set_option(call, rest):
    key, value = rest[:2]
    record = known(call, option(rest, "-s", "--session"))
    client = Client(call)
    try:
        client.initialize()
        client.reopen(record)
        options = client.set(record, key, value)
    except AgentError as failed:
        raise agent_fault(failed) from None
    except AgentGone:
        raise GONE_AT_START from None
    finally:
        client.end()
    record["desired"][key] = value
    save({**record, "config_options": options})
    say({"action": "config_set", "configId": key, "value": value, "resumed": True,
         "configOptions": options, "acpxRecordId": record["acpx_record_id"]})
    return 0


def prompt_blocks(rest):
    if option(rest, "-f", "--file") != "-":
        raise Fault("the stand-in reads prompts from standard input only", "USAGE", -32602)
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise Fault("Prompt from --file is empty", "USAGE", -32602)
    try:
        blocks = lean.loads(text)
        if isinstance(blocks, list) and all(isinstance(block, dict) for block in blocks):
            return blocks
    except ValueError:
        pass
    return [{"type": "text", "text": text}]


def lines_of(connection):
    try:
        yield from lean.lines_of(connection)
    except OSError:
        pass  # the owner was killed


def prompt(call, rest):
    blocks = prompt_blocks(rest)
    record = known(call, option(rest, "-s", "--session"))
    if "dumb" in FAULTS:
        return 1
    for name in FAULTS & set(PLANNED):
        message, acpx_code, code, detail = PLANNED[name]
        fault = Fault(message, acpx_code, code, detail, "runtime")
        if "bare" in FAULTS:
            return fault.exit
        raise fault
    request = {"verb": "prompt", "blocks": blocks}
    connection = ask_owner(record, request)
    if connection is None:
        start_owner(call, record)
        connection = ask_owner(record, request)
    if "garbage" in FAULTS:
        put(1, b"Debugger attached.\n\n[1,2]\nnull\n{\"half\": \n\xff\xfe\n")
    for line in lines_of(connection):
        if line.startswith(b'{"__end":'):
            end = lean.loads(line)["__end"]
            if "line" in end:
                say(end["line"])
            return 5 if "exit5" in FAULTS else 1 if "exit1" in FAULTS else end["exit"]
        if "no_stop" in FAULTS and b'"stopReason"' in line:
            return 0
        put(1, line + (b"(node:7) Warning: something\n" if "garbage" in FAULTS else b""))
    raise Fault("Queue owner disconnected before prompt completion",
                detail="QUEUE_DISCONNECTED_BEFORE_COMPLETION", origin="queue")


SESSIONS = {"new": sessions_new, "ensure": sessions_ensure, "show": sessions_show,
            "close": sessions_close}
VERBS = {"prompt": prompt, "cancel": cancel, "set": set_option, "sessions": None}


def main(arguments):
    if arguments == ["--version"]:
        put(1, VERSION.encode() + b"\n")
        return 0
    if arguments == ["__queue-owner"]:
        queue_owner()
        return 0
    try:
        call = Call(arguments)
        if "stall" in FAULTS:
            time.sleep(600)
        rest = call.rest
        verb = VERBS.get(rest[0]) if rest else None
        if rest[:1] == ["sessions"]:
            verb, rest = SESSIONS.get(rest[1] if len(rest) > 1 else ""), rest[1:]
        if verb is None or call.command is None:
            raise Fault("error: unknown command", "USAGE", -32602)
        return verb(call, rest[1:])
    except Fault as fault:
        say(fault.line)
        return fault.exit

