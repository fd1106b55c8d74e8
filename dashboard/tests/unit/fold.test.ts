import assert from "node:assert/strict";
import test from "node:test";
import { Fold, openAsks } from "../../model/fold";
import { changedFiles, commandOf, objectOf, outputOf, toolMs, type ToolCall } from "../../model/tools";
import { markdownOf } from "../../model/export";
import type { JournalEvent, SessionState } from "../../api/types";

let id = 0;
const event = (name: string, data: unknown, more: Partial<JournalEvent> = {}): JournalEvent => ({
  id: ++id,
  event: name,
  data,
  ...more,
});
const update = (fields: object, more: Partial<JournalEvent> = {}): JournalEvent =>
  event("update", { jsonrpc: "2.0", method: "session/update", params: { sessionId: "s", update: fields } }, more);
const chunk = (text: string, kind = "agent_message_chunk"): JournalEvent =>
  update({ sessionUpdate: kind, content: { type: "text", text } });
const tool = (toolCallId: string, fields: object, more: Partial<JournalEvent> = {}): JournalEvent =>
  update({ sessionUpdate: "tool_call", toolCallId, status: "in_progress", ...fields }, more);

function folded(...events: JournalEvent[]): Fold {
  const fold = new Fold();
  for (const each of events) fold.take(each);
  return fold;
}

const kinds = (fold: Fold): string[] => fold.out.blocks.map((block) => block.kind);

test("adjacent pieces of a message are one text, and thoughts one line", () => {
  const fold = folded(
    event("turn", { turn_index: 1, prompt: "Hello", at: 5 }),
    chunk("a", "agent_thought_chunk"),
    chunk("b", "agent_thought_chunk"),
    chunk("c"),
    chunk("d"),
  );
  assert.deepEqual(kinds(fold), ["turn", "thought", "text"]);
  assert.equal((fold.out.blocks[2] as { text: string }).text, "cd");
  assert.equal(fold.out.turns[0]?.prompt, "Hello");
  assert.equal(fold.out.turns[0]?.at, 5);
  assert.equal(fold.out.running, 1);
});

test("an event that is there already is left out", () => {
  const fold = new Fold();
  const first = chunk("a");
  assert.equal(fold.take(first), true);
  assert.equal(fold.take(first), false);
  assert.equal((fold.out.blocks.at(-1) as { text: string }).text, "a");
});

test("a tool and its updates are one row; its time is that between them", () => {
  const fold = folded(
    event("turn", { turn_index: 1 }),
    tool("t", { kind: "execute", rawInput: { command: "ls" } }, { offset_ms: 10 }),
    update(
      {
        sessionUpdate: "tool_call_update",
        toolCallId: "t",
        status: "completed",
        content: [{ type: "content", content: { type: "text", text: "```\nx\n```" } }],
      },
      { offset_ms: 250 },
    ),
  );
  assert.deepEqual(kinds(fold), ["turn", "tool"]);
  const call = (fold.out.blocks[1] as { tool: ToolCall }).tool;
  assert.deepEqual([commandOf(call), outputOf(call), toolMs(call), call.status], ["ls", "x", 240, "completed"]);
});

test("reading and searching in a row is one group, and ends with anything else", () => {
  const fold = folded(
    tool("1", { kind: "read" }),
    tool("2", { kind: "search" }),
    tool("3", { kind: "read" }),
    chunk("x"),
    tool("4", { kind: "read" }),
  );
  assert.deepEqual(kinds(fold), ["turn", "look", "text", "look"]);
  assert.equal((fold.out.blocks[1] as { tools: ToolCall[] }).tools.length, 3);
});

test("a tool's id counts within its turn", () => {
  const fold = folded(
    event("turn", { turn_index: 1 }),
    tool("t1", { kind: "execute", rawInput: { command: "one" } }),
    event("done", { turn_index: 1 }),
    event("turn", { turn_index: 2 }),
    tool("t1", { kind: "execute", rawInput: { command: "two" } }),
  );
  assert.deepEqual(kinds(fold), ["turn", "tool", "turn", "tool"]);
});

test("a question and its answer are one card", () => {
  const begun = event("turn", { turn_index: 1 });
  const asked = event("permission", {
    id: "q",
    title: "Run",
    kind: "execute",
    options: [{ option_id: "y", name: "Yes", kind: "allow_once" }],
    asked_at: 1,
    expires_at: 9,
    message: { params: { toolCall: { toolCallId: "t", rawInput: { command: ["rm", "-rf", "a b"] } } } },
  });
  const fold = folded(begun, asked);
  assert.equal(openAsks(fold.out).length, 1);
  assert.equal(objectOf(openAsks(fold.out)[0]!.tool), "rm -rf 'a b'");
  fold.take(event("permission_resolved", { id: "q", decision: "allow", option_id: "y", by: "app" }));
  assert.equal(openAsks(fold.out).length, 0);
  assert.deepEqual(kinds(fold), ["turn", "ask"]);
});

test("what is not known is shown with its name, and nothing is dropped", () => {
  const fold = folded(
    event("surprise", { a: 1 }),
    update({ sessionUpdate: "novelty", b: 2 }),
    event("permission_resolved", { id: "never asked" }),
    event("gap", { from: 1, to: 7 }),
  );
  assert.deepEqual(kinds(fold), ["note", "turn", "note", "note", "gap"]);
});

test("each end of a turn", () => {
  const end = (name: string, data: object): string | undefined =>
    folded(event("turn", { turn_index: 1 }), event(name, { turn_index: 1, ...data })).out.turns[0]?.end?.state;
  assert.equal(end("done", { stop_reason: "end_turn" }), "done");
  assert.equal(end("done", { stop_reason: "cancelled" }), "cancelled");
  assert.equal(end("failed", { code: "timeout" }), "failed");
  assert.equal(end("failed", { code: "interrupted" }), "interrupted");
});

test("a gateway that does not tell when a turn begins", () => {
  const fold = folded(
    chunk("one"),
    event("done", { turn_index: 1 }),
    chunk("two"),
    event("failed", { turn_index: 2, code: "timeout", error: "late" }),
  );
  assert.deepEqual(kinds(fold), ["turn", "text", "turn", "text", "end"]);
  assert.deepEqual(
    fold.out.turns.map((turn) => turn.turn),
    [1, 2],
  );
});

test("plan, context and changed files", () => {
  const fold = folded(
    update({
      sessionUpdate: "plan",
      entries: [
        { content: "a", status: "completed" },
        { content: "b", status: "pending" },
      ],
    }),
    update({ sessionUpdate: "usage_update", used: 5, size: 10 }),
    tool("e", {
      kind: "edit",
      status: "completed",
      content: [{ type: "diff", path: "f", oldText: "a\nb\n", newText: "a\nc\nd\n" }],
    }),
  );
  assert.equal(fold.out.plan.length, 2);
  assert.deepEqual(fold.out.context, { used: 5, size: 10 });
  assert.deepEqual(changedFiles([(fold.out.blocks.at(-1) as { tool: ToolCall }).tool]), [
    { path: "f", added: 2, removed: 1 },
  ]);
});

test("ten thousand events are folded in well under a second", () => {
  const fold = new Fold();
  const begun = performance.now();
  for (let at = 0; at < 10_000; ++at) fold.take(at % 3 === 0 ? tool(`t${at}`, { kind: "execute" }) : chunk("word "));
  assert.ok(performance.now() - begun < 1000);
  assert.ok(fold.out.blocks.length > 6000);
});

test("a session as Markdown keeps fences that the agent's text would end", () => {
  const fold = folded(
    event("turn", { turn_index: 1, prompt: "Do it" }),
    tool("t", { kind: "execute", rawInput: { command: "echo '```'" } }),
  );
  const text = markdownOf(
    { session_id: "1", app_name: "a", agent: "b", model: null, title: "T" } as SessionState,
    fold.out,
  );
  assert.match(text, /^# T\n/);
  assert.match(text, /````\necho '```'\n````/);
});
