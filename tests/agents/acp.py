"""A stand-in for an agent of the Agent Client Protocol (version 1), which does what its prompts
say. It shares no code with the gateway.

Tests name it in an [agents.NAME] table: command = [FAKE_ACP, FLAG, ...]. It speaks on standard
input and output, one JSON object a line. A prompt whose last text is a JSON list is a script:
steps that are done in order. Lines before the list (such as the paths of files) are not part of
it. Any other text is answered with "echo: " and the text itself.

A conversation is kept in $TMPDIR by its id, so that a later process can load it.

Steps, each an object; of the keys the first that is known counts:

  text            a piece of the agent's message
  thought         a piece of its thoughts
  tool            object: a tool_call with these fields; with "result" also its update, done, with
                  that as rawOutput
  update          object: any update
  flat            a piece of the agent's message in the nesting of older tools (params.content)
  raw             any line, as it is
  raw_base64      any bytes, as they are, without a line's end
  permission      object with kind, title, options (optional): asks, and tells the outcome as text:
                  "permission: allow-once" (the option), "permission: cancelled" or an error's code
  unknown_request a method to ask the client for: tells the error's code as text, "fs/x: -32601"
  recall          true: the prompts heard so far in this conversation, as text (a JSON list)
  report          "process": argv, env, cwd, files, pid, ppid, descriptors, files_soft; "session":
                  what the conversation was opened with and set to; "prompt": the texts of the
                  prompt; "calls": the methods called in this process; "answers": how many
                  answers to its own questions this process has got. As text (JSON)
  env             name of a variable whose value is told as text
  touch           path of a file to make (to show: I got here)
  write           object with path (in the working directory) and content
  stderr          text for standard error
  wait_for        path: waits until it is there; a cancel ends the turn
  sleep_until_cancel
                  true: waits for the cancel, then ends the turn as cancelled
  ignore_cancel   true: from now on a cancel does nothing
  linger_ms       a cancel is answered so much later
  stall           true: nothing more, whatever is said, until standard input ends
  permissions     a list of the same: all are asked at once, and the outcomes told in that order
  flood           so many pieces "x" of the agent's message; piece_bytes: each of so many "x"
  count           so many pieces of the agent's message: "0", "1", and so on
  many_files      so many empty files below the working directory, in one directory
  stop_parent     true: stops the process above, as far as the kernel lets it
  big_line        a piece of the agent's message whose line has so many bytes
  nonsense        so many lines that are not JSON objects
  broken_tail     text: a good piece of the message, followed on its line by a broken tail
  children        list of ways to start a child that sleeps for ten minutes: "plain", "setsid",
                  "daemon" (two forks and setsid), "bare" (setsid and an empty environment),
                  "stubborn" (ignores TERM), "forgotten" (a daemon in / without environment and
                  descriptors); their ids go into the file named by child_pids, and their name is
                  child_mark
  usage           object: the usage in the result
  cost            a usage_update with this sum
  result          object: more keys for the result
  stop            the stop reason; default end_turn
  late            text of a piece of the message that follows the result
  error           object: the error that answers the prompt
  exit            exit code to end with now
  signal          number of the signal to end itself by, now
  close           "stdout" or "stdin": closes it now; without its input it lives on, and hears nothing

Flags:

  --at-initialize, --at-new, --at-load, --at-resume, --at-option WHAT
                  what to do when this is asked: exit (code 7), exit:N, signal (KILL), stall,
                  nonsense (a line that is not JSON, and no answer), noise (such lines, and then a
                  good answer), error (code -32603), error:CODE, empty (a result that is {}),
                  long_line (a line over 32 MiB), stderr (a word there, and then exit 7)
  --leave-after METHOD
                  exits with code 7 as soon as this is answered
  --protocol N    the version it answers; default 1
  --no-load       it cannot load
  --resume        it can also resume
  --load-gone     loading and resuming is answered with -32002
  --need-auth     session/new is answered with -32000
  --need-auth-at-prompt
                  the same for session/prompt
  --auth METHOD   it knows this method, and session/new needs it first
  --models A,B    the values of its option of category model; default m1,m2
  --no-options    it has no options at all
  --ignore-term   SIGTERM is ignored
  --ignore-eof    it does not end when its standard input ends
  --chatty        an update that belongs to no turn, right after session/new and after each turn
  --start-mcp     starts the program of each MCP server that has one, and waits for its end
  --log FILE      every method that is called goes into this file, a line each
  --version       prints a version
"""
import os
import select
import sys
import time

import lean
from lean import signal

VERSION = "1.2.3"
CHILD_SECONDS = 600
LINE_BYTES_MAX = 32 * 1024 * 1024
VALUED = {"--at-initialize", "--at-new", "--at-load", "--at-resume", "--at-option", "--protocol",
          "--leave-after", "--auth", "--models", "--log"}
FLAGS = {"--no-load", "--resume", "--load-gone", "--need-auth", "--need-auth-at-prompt",
         "--no-options", "--ignore-term", "--ignore-eof", "--chatty", "--start-mcp"}
OPTIONS = [{"optionId": "allow-once", "name": "Yes", "kind": "allow_once"},
           {"optionId": "allow-always", "name": "Always", "kind": "allow_always"},
           {"optionId": "reject-once", "name": "No", "kind": "reject_once"}]


def start_mcp(server):
    """As real agents do, before anything is said."""
    if "command" not in server:
        return
    environment = dict(os.environ) | {pair["name"]: pair["value"] for pair in server["env"]}
    command = [server["command"], *server["args"]]
    os.waitpid(os.posix_spawnp(command[0], command, environment), 0)


class Cancelled(Exception):
    pass


class Failed(Exception):
    def __init__(self, error):
        super().__init__(error)
        self.error = error


def put(descriptor, data):
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(descriptor, view):]
    except OSError:
        os._exit(0)  # the client has gone


def read_flags(arguments):
    values = {}
    rest = list(arguments)
    while rest:
        name = rest.pop(0)
        if name in VALUED and rest:
            values[name] = rest.pop(0)
        elif name in FLAGS:
            values[name] = True
        else:
            put(2, f"fake_acp: unknown argument {name}\n".encode())
            sys.exit(2)
    return values


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


def process_report():
    import resource
    descriptors = []
    for number in range(3, 256):
        try:
            os.fstat(number)
            descriptors.append(number)
        except OSError:
            pass
    return {"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(),
            "files": sorted(os.listdir(".")), "pid": os.getpid(), "ppid": os.getppid(),
            "descriptors": descriptors,
            "files_soft": resource.getrlimit(resource.RLIMIT_NOFILE)[0]}


SCHEMA_WORDS = "\n\nAnswer with one JSON object"  # what the gateway adds to a prompt


def script_of(text):
    """The JSON list at the text's end, after whole lines; else none."""
    text = text.partition(SCHEMA_WORDS)[0]
    at = 0
    while at >= 0:
        if text[at:at + 1] == "[":
            try:
                found = lean.loads(text[at:])
                if isinstance(found, list) and all(isinstance(step, dict) for step in found):
                    return found
            except ValueError:
                pass
        at = text.find("\n", at) + 1 or -1
    return None


class Talk:
    """One conversation, and its file."""

    def __init__(self, session_id, params):
        self.id = session_id
        self.opened_with = params
        self.options = {}
        self.mode = None
        self.file = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"fake-acp-{session_id}.json")
        self.prompts = []

    def load(self):
        with open(self.file, encoding="utf-8") as file:
            self.prompts = lean.loads(file.read())

    def save(self):
        with open(self.file + ".new", "w", encoding="utf-8") as file:
            file.write(lean.dumps(self.prompts))
        os.replace(self.file + ".new", self.file)


class Agent:
    def __init__(self, flags):
        self.flags = flags
        self.talks = {}
        self.calls = []
        self.buffer = b""
        self.lines = []
        self.next_id = 0
        self.responses = {}
        self.answers = 0
        self.waiting_prompts = []
        self.is_authenticated = False
        self.turn_of = None  # the id of the conversation whose turn is under way
        self.is_cancelled = False
        self.ignores_cancel = False
        self.linger_ms = 0
        self.is_deaf = False
        self.methods = {
            "initialize": self.initialize, "authenticate": self.authenticate,
            "session/new": self.new, "session/load": self.load, "session/resume": self.resume,
            "session/set_config_option": self.set_option, "session/set_mode": self.set_mode}

    # The wire

    def say(self, message):
        put(1, lean.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def update(self, talk_id, update):
        self.say({"method": "session/update", "params": {"sessionId": talk_id, "update": update}})

    def chunk(self, talk_id, text, kind="agent_message_chunk"):
        self.update(talk_id, {"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    def listen(self, seconds):
        """Reads what there is, or comes within that time, and acts on it. None: for ever."""
        if not self.lines:
            if self.is_deaf:
                time.sleep(CHILD_SECONDS if seconds is None else seconds)
                return
            if not select.select([0], [], [], seconds)[0]:
                return
            piece = os.read(0, 1 << 20)
            if not piece:
                self.input_ended()
                return
            self.buffer += piece
            *self.lines, self.buffer = self.buffer.split(b"\n")
        lines, self.lines = self.lines, []
        for line in lines:
            self.act_on(lean.loads(line))

    def input_ended(self):
        if "--ignore-eof" not in self.flags:
            os._exit(0)
        while True:
            time.sleep(CHILD_SECONDS)

    def act_on(self, message):
        method = message.get("method")
        if method is None:
            self.responses[lean.dumps(message.get("id"))] = message
            self.answers += 1
            return
        self.note(method)
        params = message.get("params") or {}
        if method == "session/cancel":
            if params["sessionId"] == self.turn_of and not self.ignores_cancel:
                self.is_cancelled = True
        elif method == "session/prompt":
            self.waiting_prompts.append((message["id"], params))
        elif "id" in message:
            self.answer(message["id"], method, params)

    def note(self, method):
        self.calls.append(method)
        if "--log" in self.flags:
            file = os.open(self.flags["--log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            put(file, method.encode() + b"\n")
            os.close(file)

    def answer(self, message_id, method, params):
        try:
            if method not in self.methods:
                raise Failed({"code": -32601, "message": f"{method}: there is no such method"})
            self.say({"id": message_id, "result": self.methods[method](params)})
        except Failed as failed:
            self.say({"id": message_id, "error": failed.error})
        if method == self.flags.get("--leave-after"):
            os._exit(7)
        if method == "session/new" and "--chatty" in self.flags:
            self.update(list(self.talks)[-1], {"sessionUpdate": "session_info_update",
                                               "title": "outside of any turn"})

    def misbehave(self, phase):
        """Does what the flag for this phase says; comes back if it may go on as usual, and gives
        the result to answer with, if that is another than the usual."""
        what, _, number = self.flags.get("--at-" + phase, "").partition(":")
        if what == "exit":
            os._exit(int(number or 7))
        if what == "signal":
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "stderr":
            put(2, b"the last words of the agent\n")
            os._exit(7)
        if what in ("nonsense", "noise"):
            put(1, b"Welcome to fake_acp!\n\n[1]\nnull\n{\"half\": \n\xff\xfe\n")
        if what == "long_line":
            put(1, b'{"x":"' + b"x" * LINE_BYTES_MAX + b'"}\n')
        if what in ("stall", "nonsense", "long_line"):
            self.stall()
        if what == "error":
            raise Failed({"code": int(number or -32603), "message": f"no {phase} today"})
        return {} if what == "empty" else None

    def stall(self):
        self.ignores_cancel = True
        while True:
            self.listen(None)

    # What is asked

    def initialize(self, params):
        odd = self.misbehave("initialize")
        if odd is not None:
            return odd
        capabilities = {"loadSession": "--no-load" not in self.flags,
                        "promptCapabilities": {"image": False, "embeddedContext": False},
                        "sessionCapabilities": {"resume": {}} if "--resume" in self.flags else {}}
        methods = [{"id": self.flags["--auth"], "name": "Auth"}] if "--auth" in self.flags else []
        return {"protocolVersion": int(self.flags.get("--protocol", 1)),
                "agentInfo": {"name": "fake-acp", "version": VERSION},
                "agentCapabilities": capabilities, "authMethods": methods}

    def authenticate(self, params):
        if params.get("methodId") != self.flags.get("--auth"):
            raise Failed({"code": -32602, "message": "no such method"})
        self.is_authenticated = True
        return {}

    def check_params(self, params):
        if not str(params.get("cwd", "")).startswith("/") or not os.path.isdir(params["cwd"]):
            raise Failed({"code": -32602, "message": "cwd is not an absolute directory"})
        if not isinstance(params.get("mcpServers"), list):
            raise Failed({"code": -32602, "message": "mcpServers is not a list"})
        if "--start-mcp" in self.flags:
            for server in params["mcpServers"]:
                start_mcp(server)

    def new(self, params):
        odd = self.misbehave("new")
        if odd is not None:
            return odd
        self.check_params(params)
        if "--need-auth" in self.flags or ("--auth" in self.flags and not self.is_authenticated):
            raise Failed({"code": -32000, "message": "Authentication required"})
        talk = Talk("fake-" + os.urandom(12).hex(), params)
        talk.save()
        return {"sessionId": talk.id, **self.opened(talk)}

    def opened(self, talk):
        self.talks[talk.id] = talk
        models = self.flags.get("--models", "m1,m2").split(",")
        talk.options = {"the-model": models[0], "the-effort": "medium"}
        return self.option_list(talk)

    def option_list(self, talk):
        if "--no-options" in self.flags:
            return {}
        models = self.flags.get("--models", "m1,m2").split(",")
        efforts = ["low", "medium", "high", "xhigh", "max"]
        return {"configOptions": [
            {"id": name, "name": name, "category": category, "type": "select",
             "currentValue": talk.options[name],
             "options": [{"value": value, "name": value} for value in values]}
            for name, category, values in (("the-model", "model", models),
                                           ("the-effort", "thought_level", efforts))]}

    def reopen(self, phase, params):
        odd = self.misbehave(phase)
        if odd is not None:
            return odd
        self.check_params(params)
        talk = Talk(params["sessionId"], params)
        try:
            if "--load-gone" in self.flags:
                raise FileNotFoundError
            talk.load()
        except FileNotFoundError:
            raise Failed({"code": -32002, "message": "Resource not found"}) from None
        if phase == "load":
            for prompt in talk.prompts:
                self.chunk(talk.id, prompt, "user_message_chunk")
                self.chunk(talk.id, "(replayed)")
        return self.opened(talk)

    def load(self, params):
        if "--no-load" in self.flags:
            raise Failed({"code": -32601, "message": "session/load: there is no such method"})
        return self.reopen("load", params)

    def resume(self, params):
        if "--resume" not in self.flags:
            raise Failed({"code": -32601, "message": "session/resume: there is no such method"})
        return self.reopen("resume", params)

    def set_option(self, params):
        odd = self.misbehave("option")
        if odd is not None:
            return odd
        talk = self.talks[params["sessionId"]]
        for option in self.option_list(talk).get("configOptions", []):
            values = [known["value"] for known in option["options"]]
            if option["id"] == params["configId"] and params["value"] in values:
                talk.options[option["id"]] = params["value"]
                return self.option_list(talk)
        raise Failed({"code": -32602, "message": "no such option or value"})

    def set_mode(self, params):
        self.talks[params["sessionId"]].mode = params["modeId"]
        return {}

    # Turns

    def run(self):
        while True:
            while self.waiting_prompts:
                self.take_turn(*self.waiting_prompts.pop(0))
            self.listen(None)

    def take_turn(self, message_id, params):
        talk = self.talks.get(params["sessionId"])
        if talk is None:
            return self.say({"id": message_id,
                             "error": {"code": -32002, "message": "Resource not found"}})
        if "--need-auth-at-prompt" in self.flags:
            return self.say({"id": message_id,
                             "error": {"code": -32000, "message": "Authentication required"}})
        texts = [block["text"] for block in params["prompt"]]
        text = texts[-1]
        talk.prompts.append(text)
        talk.save()
        self.turn_of, self.is_cancelled = talk.id, False
        self.ignores_cancel, self.linger_ms = False, 0
        turn = Turn(self, talk, texts)
        late = []
        try:
            script = script_of(text)
            late = turn.follow([{"text": "echo: " + text}] if script is None else script)
            self.say({"id": message_id, "result": {"stopReason": turn.stop, **turn.result}})
        except Cancelled:
            time.sleep(self.linger_ms / 1000)
            self.say({"id": message_id, "result": {"stopReason": "cancelled", **turn.result}})
        except Failed as failed:
            self.say({"id": message_id, "error": failed.error})
        self.turn_of = None
        for text in late:
            self.chunk(talk.id, text)
        if "--chatty" in self.flags:
            self.update(talk.id, {"sessionUpdate": "session_info_update", "title": "after a turn"})

    def wait(self, condition):
        """Until the condition holds or the turn is cancelled, attending to what is said."""
        while not condition():
            self.listen(0.005)
            if self.is_cancelled:
                raise Cancelled

    def ask(self, method, params):
        message_id = self.next_id
        self.next_id += 1
        self.say({"id": message_id, "method": method, "params": params})
        return lean.dumps(message_id)

    def response(self, message_id):
        while message_id not in self.responses:
            self.listen(None)
        return self.responses.pop(message_id)

    def request(self, method, params):
        """Asks the client and gives its whole response."""
        return self.response(self.ask(method, params))


class Turn:
    def __init__(self, agent, talk, texts):
        self.agent = agent
        self.talk = talk
        self.texts = texts
        self.stop = "end_turn"
        self.result = {}
        self.late = []

    def follow(self, script):
        """Gives what is to be said after the result."""
        for step in script:
            for key in step:
                if hasattr(self, "step_" + key):
                    getattr(self, "step_" + key)(step[key], step)
                    break
            else:
                raise Failed({"code": -32602, "message": f"an unknown step: {lean.dumps(step)}"})
        return self.late

    def tell(self, text):
        self.agent.chunk(self.talk.id, text)

    def step_text(self, text, _):
        self.tell(text)

    def step_thought(self, text, _):
        self.agent.chunk(self.talk.id, text, "agent_thought_chunk")

    def step_tool(self, fields, _):
        call = {"toolCallId": "call-1", "title": "A tool", "kind": "read", "status": "pending",
                **fields}
        result = call.pop("result", None)
        self.agent.update(self.talk.id, {"sessionUpdate": "tool_call", **call})
        if result is not None:
            self.agent.update(self.talk.id, {
                "sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"],
                "status": "completed", "rawOutput": result})

    def step_update(self, update, _):
        self.agent.update(self.talk.id, update)

    def step_flat(self, text, _):
        self.agent.say({"method": "session/update", "params": {
            "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})

    def step_raw(self, line, _):
        put(1, line.encode() + b"\n")

    def step_raw_base64(self, data, _):
        import base64
        put(1, base64.b64decode(data))

    def step_permission(self, asked, _):
        self.step_permissions([asked], _)

    def step_permissions(self, questions, _):
        asked_ids = []
        for asked in questions:
            call = {"toolCallId": "asked-1", "title": asked.get("title", "Do it"), "rawInput": {}}
            if "kind" in asked:
                call["kind"] = asked["kind"]
            asked_ids.append(self.agent.ask("session/request_permission", {
                "toolCall": call, "options": asked.get("options", OPTIONS),
                "sessionId": self.talk.id}))
        for asked_id in asked_ids:
            response = self.agent.response(asked_id)
            if "error" in response:
                self.tell(f"permission: {response['error']['code']}")
                continue
            outcome = response["result"]["outcome"]
            self.tell("permission: " + outcome.get("optionId", outcome["outcome"]))

    def step_unknown_request(self, method, _):
        response = self.agent.request(method, {"sessionId": self.talk.id, "path": "/etc/passwd"})
        self.tell(f"{method}: {response['error']['code'] if 'error' in response else 'answered'}")

    def step_recall(self, *_):
        self.tell(lean.dumps(self.talk.prompts))

    def step_report(self, what, _):
        talk = self.talk
        value = {"process": process_report, "prompt": lambda: self.texts,
                 "calls": lambda: self.agent.calls, "answers": lambda: self.agent.answers,
                 "session": lambda: {"opened_with": talk.opened_with, "options": talk.options,
                                     "mode": talk.mode}}[what]()
        self.tell(lean.dumps(value))

    def step_env(self, name, _):
        self.tell(os.environ.get(name, "(none)"))

    def step_touch(self, path, _):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))

    def step_write(self, file, _):
        if os.path.dirname(file["path"]):
            os.makedirs(os.path.dirname(file["path"]), exist_ok=True)
        with open(file["path"], "w", encoding="utf-8") as target:
            target.write(file["content"])

    def step_stderr(self, text, _):
        put(2, text.encode())

    def step_wait_for(self, path, _):
        self.agent.wait(lambda: os.path.exists(path))

    def step_sleep_until_cancel(self, *_):
        self.agent.wait(lambda: False)

    def step_ignore_cancel(self, value, _):
        self.agent.ignores_cancel = value

    def step_linger_ms(self, value, _):
        self.agent.linger_ms = value

    def step_stall(self, *_):
        self.agent.stall()

    def step_flood(self, count, step):
        text = "x" * step.get("piece_bytes", 1)
        line = lean.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": self.talk.id, "update": {"sessionUpdate": "agent_message_chunk",
                                                  "content": {"type": "text", "text": text}}}})
        block = (line + "\n").encode() * 1000
        for _ in range(count // 1000):
            put(1, block)
        put(1, (line + "\n").encode() * (count % 1000))

    def step_count(self, count, _):
        head, tail = lean.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": self.talk.id, "update": {"sessionUpdate": "agent_message_chunk",
                                                  "content": {"type": "text", "text": "@"}}}}
                                ).encode().split(b"@")
        for first in range(0, count, 50):
            put(1, b"".join(head + b"%d" % number + tail + b"\n"
                            for number in range(first, min(first + 50, count))))

    def step_many_files(self, count, _):
        os.makedirs("many", exist_ok=True)
        directory = os.open("many", os.O_RDONLY | os.O_DIRECTORY)
        for number in range(count):
            os.close(os.open(str(number), os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=directory))
        os.close(directory)

    def step_stop_parent(self, *_):
        try:
            os.kill(os.getppid(), signal.SIGSTOP)
        except OSError as error:
            self.tell(f"not stopped: {error.errno}")

    def step_big_line(self, size, _):
        head, tail = lean.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": self.talk.id, "update": {"sessionUpdate": "agent_message_chunk",
                                                  "content": {"type": "text", "text": "@"}}}}
                                ).encode().split(b"@")
        put(1, head + b"y" * (size - len(head) - len(tail)) + tail + b"\n")

    def step_nonsense(self, count, _):
        lines = [b"What do you mean?", b"", b"[1, 2]", b"17", b"null", b'{"half": ', b"\xff\xfe",
                 b'{"jsonrpc": "2.0", "method": "session/update"} trailing']
        put(1, b"".join(lines[i % len(lines)] + b"\n" for i in range(count)))

    def step_broken_tail(self, text, _):
        line = lean.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": self.talk.id, "update": {"sessionUpdate": "agent_message_chunk",
                                                  "content": {"type": "text", "text": text}}}})
        put(1, line.encode() + b',"ok":true}],"forged":[{"x":"\n')

    def step_children(self, ways, step):
        for way in ways:
            start_child(way, step.get("child_pids"), step.get("child_mark"))

    def step_usage(self, usage, _):
        self.result["usage"] = usage

    def step_cost(self, amount, _):
        self.agent.update(self.talk.id, {"sessionUpdate": "usage_update", "used": 10, "size": 1000,
                                         "cost": {"amount": amount, "currency": "USD"}})

    def step_result(self, keys, _):
        self.result.update(keys)

    def step_stop(self, reason, _):
        self.stop = reason

    def step_late(self, text, _):
        self.late.append(text)

    def step_error(self, error, _):
        raise Failed(error)

    def step_exit(self, code, _):
        os._exit(code)

    def step_signal(self, number, _):
        os.kill(os.getpid(), number)
        time.sleep(CHILD_SECONDS)

    def step_close(self, name, _):
        self.agent.is_deaf = self.agent.is_deaf or name == "stdin"
        os.close({"stdin": 0, "stdout": 1}[name])


def main():
    if "--version" in sys.argv:
        return put(1, f"{VERSION} (fake acp)\n".encode())
    flags = read_flags(sys.argv[1:])
    if "--ignore-term" in flags:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Agent(flags).run()

