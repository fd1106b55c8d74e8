"""A stand-in for Claude's command line in stream-json: what acp.py does, in these words.

It takes the flags of acp.py in front of those that the gateway adds, and the same scripts as prompts.
Steps that print lines of the other protocol as they are (raw, flat, update) are not for it. A step
more: stream, a list of objects that are printed as they are.
"""
import os
import sys

import acp
import lean
from acp import put

NOT_FOUND = "No conversation found with session ID: "
USAGE = {"inputTokens": "input_tokens", "outputTokens": "output_tokens",
         "cachedReadTokens": "cache_read_input_tokens",
         "cachedWriteTokens": "cache_creation_input_tokens"}
VALUED = {"--input-format", "--output-format", "--permission-prompt-tool", "--disallowedTools",
          "--resume", "--session-id", "--setting-sources", "--settings", "--max-budget-usd",
          "--tools", "--max-turns"}
PLAIN = {"-p", "--verbose", "--include-partial-messages", "--strict-mcp-config",
         "--no-session-persistence"}


def read_arguments(arguments):
    """The options of the command line; what it does not know it refuses."""
    values = {}
    rest = list(arguments)
    while rest:
        name = rest.pop(0)
        if name in VALUED and rest:
            values[name] = rest.pop(0)
        elif name not in PLAIN:
            put(2, f"error: unknown option '{name}'\n".encode())
            sys.exit(1)
    return values


class Turn(acp.Turn):
    def step_stream(self, messages, _):
        for message in messages:
            self.agent.print(message)

    def step_flood(self, count, step):
        line = lean.dumps(piece("text_delta", "text", "x" * step.get("piece_bytes", 1))).encode()
        for _ in range(count // 1000):
            put(1, (line + b"\n") * 1000)
        put(1, (line + b"\n") * (count % 1000))

    def step_count(self, count, _):
        for number in range(count):
            self.tell(str(number))

    def step_big_line(self, size, _):
        head, tail = lean.dumps(piece("text_delta", "text", "@")).encode().split(b"@")
        put(1, head + b"y" * (size - len(head) - len(tail)) + tail + b"\n")


acp.Turn = Turn


class Talk(acp.Talk):
    """Kept where the real one keeps it: in a folder with the name of the working directory."""

    def __init__(self, session_id, params):
        super().__init__(session_id, params)
        config = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.environ["HOME"], ".claude")
        name = "".join(c if c.isascii() and c.isalnum() else "-" for c in os.getcwd())
        self.file = os.path.join(config, "projects", name, f"{session_id}.jsonl")

    def save(self):
        os.makedirs(os.path.dirname(self.file), mode=0o700, exist_ok=True)
        super().save()


def piece(kind, key, text):
    return {"type": "stream_event", "parent_tool_use_id": None, "event": {
        "type": "content_block_delta", "index": 0, "delta": {"type": kind, key: text}}}


class Agent(acp.Agent):
    def __init__(self, flags, options):
        super().__init__(flags)
        self.cost = self.told_cost = 0
        self.last_words = ""  # since the last tool: the result
        self.options = options
        self.calls = []
        talk = Talk(options.get("--resume") or options["--session-id"], {"options": options})
        if "--resume" in options:
            try:
                if flags.keys() & {"--no-load", "--load-gone"}:
                    raise FileNotFoundError
                talk.load()
            except FileNotFoundError:
                self.print({"type": "result", "subtype": "error_during_execution", "is_error": True,
                            "errors": [NOT_FOUND + talk.id]})
                put(2, (NOT_FOUND + talk.id + "\n").encode())
                sys.exit(1)
        self.talks[talk.id] = self.talk = talk
        talk.options = {}

    def print(self, message):
        put(1, lean.dumps(message).encode() + b"\n")

    # What it is told

    def act_on(self, message):
        if message["type"] == "control_response":
            response = message["response"]
            self.responses[lean.dumps(response["request_id"])] = response
            self.answers += 1
        elif message["type"] == "user":
            self.note("user")
            content = message["message"]["content"]
            self.waiting_prompts.append((0, {"sessionId": self.talk.id,
                                             "prompt": [{"text": content}]}))
        elif message["type"] == "control_request":
            self.control(message["request_id"], message["request"])

    def control(self, request_id, request):
        subtype = request["subtype"]
        self.note(subtype)
        answer = {"subtype": "success", "request_id": request_id, "response": {}}
        try:
            answer["response"] = self.do(subtype, request) or {}
        except acp.Failed as failed:
            answer = {"subtype": "error", "request_id": request_id,
                      "error": failed.error["message"]}
        self.print({"type": "control_response", "response": answer})
        if subtype == self.flags.get("--leave-after"):
            os._exit(7)

    def do(self, subtype, request):
        talk = self.talk
        if subtype == "initialize":
            self.misbehave("initialize")
            talk.opened_with["system"] = request.get("appendSystemPrompt")
            talk.opened_with["replaced_system"] = request.get("systemPrompt")
            talk.opened_with["schema"] = request.get("jsonSchema")
            return {"commands": [{"name": "jam", "description": "cooks jam", "argumentHint": ""}],
                    "models": [{"value": "default"}, {"value": "opus"}],
                    "claude_code_version": acp.VERSION, "current_permission_mode": "plan"}
        if subtype == "set_permission_mode":
            talk.mode = request["mode"]
        elif subtype in ("set_model", "apply_flag_settings"):
            self.misbehave("option")
            talk.options[subtype] = request.get("model") or request["settings"]
        elif subtype == "mcp_set_servers":
            talk.opened_with["servers"] = request["servers"]
        elif subtype == "interrupt":
            self.is_cancelled = bool(self.turn_of) and not self.ignores_cancel
        else:
            raise acp.Failed({"message": "unsupported"})
        return None

    # What it says

    def say(self, message):
        if "method" in message:
            update = message["params"].get("update")
            return self.ask_tool(message) if update is None else self.tell(update)
        if "error" in message:
            error = message["error"]
            return self.result(is_error=True, result=error["message"],
                               api_error_status=(error.get("data") or {}).get("status"))
        result = message["result"]
        usage = {theirs: result["usage"][ours] for ours, theirs in USAGE.items()
                 if ours in result.get("usage", {})}
        if result["stopReason"] == "cancelled":
            self.print({"type": "control_cancel_request", "request_id": "none"})
            return self.result(is_error=True, subtype="error_during_execution",
                               terminal_reason="aborted_streaming", errors=["aborted"])
        words, self.last_words = self.last_words, ""
        structured = {key: result[key] for key in ("structured_output",) if key in result}
        return self.result(result=words, stop_reason=result["stopReason"], **structured,
                           **({"usage": usage} if usage else {}))

    def result(self, **fields):
        since, self.told_cost = self.cost - self.told_cost, self.cost
        self.print({"type": "result", "subtype": "success", "is_error": False,
                    "total_cost_usd": self.cost, "session_id": self.talk.id, "num_turns": 1,
                    "modelUsage": {"fake": {"contextWindow": 1000}},
                    "model_usage_since_last_result": {"fake": {"costUSD": since}}, **fields})

    def tell(self, update):
        kind = update["sessionUpdate"]
        if kind == "agent_message_chunk":
            self.print(piece("text_delta", "text", update["content"]["text"]))
            self.last_words += update["content"]["text"]
        elif kind == "agent_thought_chunk":
            self.print(piece("thinking_delta", "thinking", update["content"]["text"]))
        elif kind == "usage_update":
            self.cost = update["cost"]["amount"]
        elif kind == "tool_call":
            self.last_words = ""
            self.assistant({"type": "tool_use", "id": update["toolCallId"],
                            "name": update.get("name", "Read"),
                            "input": update.get("rawInput", {})})
        elif kind == "tool_call_update":
            output = update["rawOutput"]
            self.print({"type": "user", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": update["toolCallId"], "is_error": False,
                 "content": output if isinstance(output, str) else lean.dumps(output)}]}})
        else:
            self.print({"type": "system", "subtype": kind, **update})

    def assistant(self, block):
        self.print({"type": "assistant", "parent_tool_use_id": None, "message": {
            "id": "msg-1", "role": "assistant", "content": [block]}})

    def ask_tool(self, message):
        call = message["params"]["toolCall"]
        tool = {"read": "Read", "edit": "Edit", "execute": "Bash"}.get(call.get("kind"), "Other")
        self.print({"type": "control_request", "request_id": message["id"], "request": {
            "subtype": "can_use_tool", "tool_name": tool, "tool_use_id": call["toolCallId"],
            "input": {"command": call["title"], "file_path": "/" + call["title"]},
            "permission_suggestions": [{"type": "addRules", "destination": "localSettings"}]}})

    def ask(self, method, params):
        self.next_id += 1
        request_id = f"ask-{self.next_id}"
        self.say({"id": request_id, "method": method, "params": params})
        return lean.dumps(request_id)

    def response(self, message_id):
        """In the words of the other protocol."""
        while message_id not in self.responses:
            self.listen(0.005)
            if self.is_cancelled:
                raise acp.Cancelled
        response = self.responses.pop(message_id)
        if response["subtype"] == "error":
            return {"error": {"code": -32601}}
        said = response["response"]
        option = "always " + lean.dumps(said["updatedPermissions"]) \
            if "updatedPermissions" in said else said["behavior"]
        return {"result": {"outcome": {"outcome": "selected", "optionId": option}}}


def main():
    at = sys.argv.index("-p") if "-p" in sys.argv else len(sys.argv)
    if "--version" in sys.argv[1:at]:
        return put(1, b"2.1.325 (Claude Code)\n")
    flags = acp.read_flags(sys.argv[1:at])
    if "--ignore-term" in flags:
        acp.signal.signal(acp.signal.SIGTERM, acp.signal.SIG_IGN)
    agent = Agent(flags, read_arguments(sys.argv[at:]))
    agent.run()
