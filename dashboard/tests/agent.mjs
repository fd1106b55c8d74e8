#!/usr/bin/env node
// A stand-in agent of the Agent Client Protocol for the dashboard's tests and pictures. It plays the story whose name
// stands in the prompt, or does what the prompt says: "count 400", "say TEXT", "ask COMMAND", "ask twice", "hostile",
// "fail". A turn ends early when it is cancelled.
import readline from "node:readline";
import { hostileTexts } from "./hostile.mjs";
import { STORIES } from "./stories.mjs";

const PIECE_MS = 4;
let nextId = 1000;
const waiting = new Map();
let cancelled = false;
const wakers = new Set();

const put = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

function sleep(milliseconds) {
  if (cancelled) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      wakers.delete(wake);
      resolve();
    };
    const timer = setTimeout(wake, milliseconds);
    wakers.add(wake);
  });
}

class Turn {
  constructor(session) {
    this.session = session;
    this.tools = 0;
  }

  update(update) {
    put({ method: "session/update", params: { sessionId: this.session, update } });
  }

  text(text) {
    this.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  }
  thought(text) {
    this.update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text } });
  }

  async tool({ milliseconds = 20, result = {}, ...call }) {
    const toolCallId = `t${++this.tools}`;
    this.update({ sessionUpdate: "tool_call", toolCallId, status: "in_progress", ...call });
    await sleep(milliseconds);
    this.update({ sessionUpdate: "tool_call_update", toolCallId, status: "completed", ...result });
  }

  async ask(call) {
    const id = ++nextId;
    const toolCallId = `q${id}`;
    put({
      id,
      method: "session/request_permission",
      params: {
        sessionId: this.session,
        toolCall: { toolCallId, status: "pending", ...call },
        options: [
          { optionId: "yes", name: "Allow", kind: "allow_once" },
          { optionId: "always", name: "Always allow", kind: "allow_always" },
          { optionId: "no", name: "Reject", kind: "reject_once" },
        ],
      },
    });
    return await new Promise((resolve) => waiting.set(id, resolve));
  }

  async play(steps) {
    for (const step of steps) {
      if (cancelled) return;
      if (step.say !== undefined)
        for (const word of step.say.split(/(?<= )/)) {
          this.text(word);
          if (step.slow) await sleep(step.slow);
        }
      else if (step.think !== undefined) {
        for (const word of step.think.split(/(?<=\. )/)) {
          this.thought(word);
          await sleep(step.slow ?? 5);
        }
      } else if (step.plan !== undefined)
        this.update({
          sessionUpdate: "plan",
          entries: step.plan.map(([content, status]) => ({ content, status, priority: "medium" })),
        });
      else if (step.tool !== undefined) await this.tool(step.tool);
      else if (step.ask !== undefined) {
        const answer = await this.ask(step.ask);
        if (answer.outcome?.optionId === "no") this.text("Then I leave it. ");
      } else if (step.use !== undefined) this.update({ sessionUpdate: "usage_update", ...step.use });
      else if (step.update !== undefined) this.update(step.update);
      else if (step.wait !== undefined) await sleep(step.wait);
    }
  }
}

const command = (text) => ({ title: "Run a command", kind: "execute", rawInput: { command: text } });

function stepsOf(prompt) {
  const story = Object.entries(STORIES).find(([name]) => prompt.includes(name));
  if (story) return story[1];
  const [, word, rest] = /^(\w+) ?([\s\S]*)$/.exec(prompt.trim()) ?? [];
  if (word === "count")
    return Array.from({ length: Number(rest) }, (_, at) => [{ say: `${at} ` }, { wait: PIECE_MS }]).flat();
  if (word === "say") return [{ say: rest }];
  if (word === "ask" && rest === "twice")
    return [{ ask: command("echo first") }, { ask: command("echo second") }, { say: "Both answered." }];
  if (word === "ask") return [{ ask: command(rest) }, { say: "Answered." }];
  if (word === "hostile")
    return hostileTexts()
      .flatMap((text) => [
        { say: `${text}\n\n` },
        { think: text },
        { tool: { title: text, kind: "other", rawInput: { path: text }, result: { rawOutput: { stdout: text } } } },
        {
          tool: {
            title: text,
            kind: "execute",
            rawInput: { command: text },
            result: { content: [{ type: "content", content: { type: "text", text } }] },
          },
        },
        {
          tool: {
            title: text,
            kind: "edit",
            result: { content: [{ type: "diff", path: text, oldText: "old", newText: text }] },
          },
        },
        { update: { sessionUpdate: text, content: text } },
        { plan: [[text, text]] },
      ])
      .concat([
        { ask: { title: hostileTexts()[0], kind: "execute", rawInput: { command: hostileTexts().join("\n") } } },
      ]);
  return [{ say: `You said: ${prompt}` }];
}

async function prompted(id, params) {
  cancelled = false;
  const prompt = params.prompt.map((part) => part.text ?? "").join("\n");
  if (prompt.startsWith("fail")) return put({ id, error: { code: -32603, message: "The model said no." } });
  const turn = new Turn(params.sessionId);
  await turn.play(stepsOf(prompt));
  const stopReason = cancelled ? "cancelled" : "end_turn";
  put({
    id,
    result: {
      stopReason,
      usage: { inputTokens: 1900, outputTokens: 240, cachedReadTokens: 17400, cachedWriteTokens: 0, totalTokens: 2140 },
    },
  });
}

const METHODS = {
  initialize: (id) =>
    put({
      id,
      result: {
        protocolVersion: 1,
        agentCapabilities: { loadSession: true },
        agentInfo: { name: "stand-in", version: "2.1.0" },
      },
    }),
  "session/new": (id) =>
    put({
      id,
      result: {
        sessionId: `s${process.pid}-${++nextId}`,
        configOptions: [
          {
            id: "model",
            name: "Model",
            category: "model",
            type: "select",
            currentValue: "sonnet",
            options: [
              { value: "sonnet", name: "sonnet" },
              { value: "haiku", name: "haiku" },
            ],
          },
        ],
      },
    }),
  "session/load": (id) => put({ id, result: {} }),
  "session/set_config_option": (id) => put({ id, result: { configOptions: [] } }),
  "session/prompt": (id, params) => {
    void prompted(id, params);
  },
  "session/cancel": () => {
    cancelled = true;
    for (const wake of [...wakers]) wake();
    for (const resolve of waiting.values()) resolve({ outcome: { outcome: "cancelled" } });
    waiting.clear();
  },
};

readline
  .createInterface({ input: process.stdin })
  .on("line", (line) => {
    const message = JSON.parse(line);
    if (message.method === undefined) {
      waiting.get(message.id)?.(message.result ?? {});
      waiting.delete(message.id);
    } else if (METHODS[message.method]) METHODS[message.method](message.id, message.params);
    else if (message.id !== undefined) put({ id: message.id, error: { code: -32601, message: "unknown" } });
  })
  .on("close", () => process.exit(0));
