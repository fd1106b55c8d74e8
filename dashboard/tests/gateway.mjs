// A real gateway for a journey: its own directory, its own port, the stand-in agent. It is ended with its journey.
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const PROGRAM = process.env.CLAWDFORGE_BIN ?? path.join(HERE, "../../build/release/clawdforge");
const READY_MS_MAX = 30_000;
const WAIT_MS_MAX = 30_000;

/** Asks until `look` gives something; the tests wait for nothing else. */
export async function until(look, what, milliseconds = WAIT_MS_MAX) {
  const end = Date.now() + milliseconds;
  while (true) {
    const value = await look();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not within ${milliseconds} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

export class Gateway {
  constructor(settings = {}) {
    this.root = fs.mkdtempSync(path.join(os.tmpdir(), "clawdforge-dashboard-"));
    this.settings = settings;
    this.port = 0;
    this.process = null;
    this.tokens = new Map();
    const agent = JSON.stringify(path.join(HERE, "agent.mjs"));
    const table = (name) =>
      `[agents.${name}]\npermission_modes = ["deny_all", "approve_reads", "ask", "approve_all"]\ncommand = [${agent}]\n`;
    fs.writeFileSync(path.join(this.root, "config.toml"), table("claude") + table("codex"));
  }

  async start() {
    const log = fs.openSync(path.join(this.root, "log"), "a");
    const settings = Object.fromEntries(
      Object.entries(this.settings).map(([name, value]) => [`CLAWDFORGE_${name.toUpperCase()}`, String(value)]),
    );
    this.process = spawn(
      PROGRAM,
      [
        "serve",
        "--listen",
        `127.0.0.1:${this.port}`,
        "--data-dir",
        path.join(this.root, "data"),
        "--config",
        path.join(this.root, "config.toml"),
      ],
      {
        cwd: this.root,
        stdio: ["ignore", "pipe", log],
        env: {
          HOME: this.root,
          PATH: "/usr/local/bin:/usr/bin:/bin",
          CLAWDFORGE_JAIL_READ: HERE,
          CLAWDFORGE_ALLOW_ROOT: "true",
          ...settings,
        },
      },
    );
    fs.closeSync(log);
    this.port = await this.readyPort();
    return this;
  }

  readyPort() {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("the gateway did not start")), READY_MS_MAX);
      let text = "";
      this.process.stdout.on("data", (piece) => {
        text += piece;
        const found = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(text);
        if (found) {
          clearTimeout(timer);
          resolve(Number(found[1]));
        }
      });
      this.process.once("exit", (code) => {
        clearTimeout(timer);
        reject(new Error(`the gateway ended with ${code}: ${this.log().slice(-2000)}`));
      });
    });
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }
  get admin() {
    return fs.readFileSync(path.join(this.root, "data", "admin-token"), "utf8").trim();
  }
  log() {
    return fs.readFileSync(path.join(this.root, "log"), "utf8");
  }

  async end(signal = "SIGTERM") {
    if (this.process === null) return;
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill(signal);
    await ended;
    this.process = null;
  }

  async finish() {
    await this.end("SIGKILL");
    fs.rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
  }

  /** The status and the body of a call. */
  call(method, place, body, token = this.admin, headers = {}) {
    const text = body === undefined ? "" : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const request = http.request(
        `${this.url}${place}`,
        {
          method,
          headers: {
            Authorization: `Bearer ${token}`,
            "Content-Type": "application/json",
            "Content-Length": Buffer.byteLength(text),
            ...headers,
          },
        },
        (response) => {
          let answer = "";
          response
            .on("data", (piece) => {
              answer += piece;
            })
            .on("end", () => {
              let json = null;
              try {
                json = JSON.parse(answer);
              } catch {
                /* not JSON: the text is enough */
              }
              resolve({ status: response.statusCode, json, text: answer });
            });
        },
      );
      request.on("error", reject);
      request.end(text);
    });
  }

  async app(name, fields = {}) {
    const made = await this.call("POST", "/admin/tokens", { name, ...fields });
    if (made.status !== 200) throw new Error(made.text);
    this.tokens.set(name, made.json.token);
    return made.json.token;
  }

  async session(token, fields = {}) {
    const made = await this.call("POST", "/sessions", { agent: "claude", permission_mode: "ask", ...fields }, token);
    if (made.status !== 200) throw new Error(made.text);
    return made.json.session_id;
  }

  /** Begins a turn and does not wait for its end. */
  async begin(token, session, prompt) {
    const before = (await this.call("GET", `/sessions/${session}`, undefined, token)).json.turn_count;
    void this.call("POST", `/sessions/${session}/turn`, { prompt, timeout_secs: 600 }, token).catch(() => undefined);
    await until(
      async () => (await this.call("GET", `/sessions/${session}`, undefined, token)).json.turn_count > before,
      "the turn has begun",
    );
  }

  turn(token, session, prompt) {
    return this.call("POST", `/sessions/${session}/turn`, { prompt, timeout_secs: 600 }, token);
  }

  async journal(token, session) {
    const events = [];
    for (let after = 0; ;) {
      const page = (await this.call("GET", `/sessions/${session}/events?after=${after}&limit=1000`, undefined, token))
        .json;
      if (page.events.length === 0) return events;
      events.push(...page.events);
      after = page.next_after;
    }
  }
}

export const textOf = (events) =>
  events
    .map((event) => event.data?.params?.update)
    .filter((update) => update?.sessionUpdate === "agent_message_chunk")
    .map((update) => update.content.text)
    .join("");
