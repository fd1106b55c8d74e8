"""The loopback stand-ins for the models' APIs (fake-*.mjs), as tests use them."""
import json
import pathlib
import shutil
import subprocess

import httpx

from gateway import wait_until

HERE = pathlib.Path(__file__).parent


def scripted(prompt, *steps):
    """A prompt that tells the stand-in what to answer, step by step."""
    return f"{prompt} [[fake:{json.dumps(list(steps))}]]"


def tool(name, **arguments):
    """A step in which the model calls one of the agent's tools."""
    return {"tool": {"name": name, "input": arguments}}


class ModelApi:
    def __init__(self, root, program="fake-anthropic.mjs"):
        self.program = HERE / program
        self.root = pathlib.Path(root)
        self.dump = self.root / "requests"

    def start(self):
        port_file = self.root / "port"
        with open(self.root / "stderr.log", "ab") as stderr:
            self.process = subprocess.Popen(
                ["node", str(self.program), "--port", "0", "--port-file", str(port_file),
                 "--dump", str(self.dump), "--quiet"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr)
        wait_until(lambda: port_file.exists() or self.process.poll() is not None,
                   "the model's API has a port")
        assert self.process.poll() is None, (self.root / "stderr.log").read_text()
        self.url = f"http://127.0.0.1:{port_file.read_text()}"
        self._client = httpx.Client(base_url=self.url, trust_env=False)
        return self

    def stop(self):
        self._client.close()
        self.process.terminate()
        self.process.wait(timeout=20)

    def reset(self):
        self._client.post("/__fake/reset").raise_for_status()
        shutil.rmtree(self.dump)
        self.dump.mkdir()

    def stats(self):
        return self._client.get("/__fake/stats").json()

    def calls(self):
        """How often the model was asked since the test began."""
        return self.stats()["messages"]

    def requests(self):
        """What the agent sent, in order: the parsed bodies."""
        files = sorted(self.dump.glob("*.json"))
        return [json.loads(file.read_text())["body"] for file in files]

    def sent_text(self):
        """All that the agent sent, to search in."""
        return "\n".join(json.dumps(body, ensure_ascii=False) for body in self.requests())


def system_text(body):
    system = body.get("system", "")
    return system if isinstance(system, str) else "\n".join(block["text"] for block in system)


def user_texts(body):
    """The texts of the user's messages, as the model gets them."""
    texts = []
    for message in body["messages"]:
        if message["role"] != "user":
            continue
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts += [block["text"] for block in blocks if block["type"] == "text"]
    return texts


def tool_results(body):
    """What the agent's tools gave, as the model gets it."""
    results = []
    for message in body["messages"]:
        if message["role"] == "user" and not isinstance(message["content"], str):
            results += [block for block in message["content"] if block["type"] == "tool_result"]
    return results
