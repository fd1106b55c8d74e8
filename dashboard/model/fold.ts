// Folds the events of a session into blocks to read: one event at a time, in their order. Nothing is dropped: a kind
// that is not known becomes a block with its name and its JSON. Pure.
import type { AskOption, JournalEvent, Usage } from "../api/types";
import { absorbUpdate, newTool, type ToolCall } from "./tools";

interface Common {
  key: string;
  version: number;
  turn: number;
  firstId: number | null;
  lastId: number | null;
}

export interface TurnEnd {
  state: "done" | "failed" | "cancelled" | "interrupted";
  code: string | null;
  error: string | null;
  stderr: string | null;
  stopReason: string | null;
  usage: Usage | null;
  cost: number | null;
  durationMs: number | null;
}

export interface TurnBlock extends Common {
  kind: "turn";
  prompt: string | null;
  promptBytes: number | null;
  by: string | null;
  files: { name: string; size: number | null }[];
  at: number | null;
  end: TurnEnd | null;
}
export interface TextBlock extends Common {
  kind: "text";
  text: string;
  open: boolean;
}
export interface ThoughtBlock extends Common {
  kind: "thought";
  text: string;
  open: boolean;
  offsets: Span;
}
export interface ToolBlock extends Common {
  kind: "tool";
  tool: ToolCall;
}
/** Reading and searching in a row. */
export interface LookBlock extends Common {
  kind: "look";
  tools: ToolCall[];
}
export interface AskBlock extends Common {
  kind: "ask";
  question: {
    id: string;
    title: string | null;
    toolKind: string | null;
    options: AskOption[];
    askedAt: number | null;
    expiresAt: number | null;
  };
  tool: ToolCall;
  message: unknown;
  resolved: { decision: string; optionId: string | null; by: string; at: number | null } | null;
}
export interface EndBlock extends Common {
  kind: "end";
  end: TurnEnd;
}
export interface GapBlock extends Common {
  kind: "gap";
  from: number;
  to: number;
}
export interface NoteBlock extends Common {
  kind: "note";
  name: string;
  data: unknown;
}

export type Block =
  TurnBlock | TextBlock | ThoughtBlock | ToolBlock | LookBlock | AskBlock | EndBlock | GapBlock | NoteBlock;

export interface Span {
  from: number | null;
  to: number | null;
}
export interface PlanEntry {
  content: string;
  status: string;
  priority: string | null;
}
export interface ChangedFile {
  path: string;
  added: number;
  removed: number;
}

export interface Folded {
  blocks: Block[];
  turns: TurnBlock[];
  plan: PlanEntry[];
  context: { used: number; size: number } | null;
  title: string | null;
  mode: string | null;
  lastId: number;
  /** The index of the turn that runs, else 0. */
  running: number;
  version: number;
}

interface Update {
  sessionUpdate?: string;
  content?: unknown;
  [key: string]: unknown;
}

const LOOKING = new Set(["read", "search"]);
/** Kinds that change the state of the page, and say nothing to read. */
const SILENT = new Set(["available_commands_update", "config_option_update", "user_message_chunk"]);

export function newFold(): Folded {
  return { blocks: [], turns: [], plan: [], context: null, title: null, mode: null, lastId: 0, running: 0, version: 0 };
}

export class Fold {
  readonly out: Folded = newFold();
  private readonly tools = new Map<string, { tool: ToolCall; block: ToolBlock | LookBlock | AskBlock }>();
  private readonly asks = new Map<string, AskBlock>();
  private nextKey = 0;
  /** The turn that events belong to which do not say it themselves. */
  private turn = 0;

  /** Whether the event was new; one that is there already is left out. */
  take(event: JournalEvent): boolean {
    if (event.id !== null) {
      if (event.id <= this.out.lastId) return false;
      this.out.lastId = event.id;
    }
    ++this.out.version;
    this.dispatch(event);
    return true;
  }

  private dispatch(event: JournalEvent): void {
    const data = (event.data ?? {}) as Record<string, unknown>;
    switch (event.event) {
      case "turn":
        return this.beginTurn(event, data);
      case "update":
        return this.onMessage(event, data);
      case "permission":
        return this.onQuestion(event, data);
      case "permission_resolved":
        return this.onResolved(event, data);
      case "done":
      case "failed":
        return this.endTurn(event, data);
      case "gap": {
        this.push({ ...this.common(event), kind: "gap", from: Number(data["from"]), to: Number(data["to"]) });
        return;
      }
      case "lagged":
      case "shutdown":
        return;
      default:
        this.push({ ...this.common(event), kind: "note", name: event.event, data: event.data });
    }
  }

  private common(event: JournalEvent): Common {
    return { key: `b${++this.nextKey}`, version: 0, turn: this.turnOf(event), firstId: event.id, lastId: event.id };
  }

  private turnOf(event: JournalEvent): number {
    if (event.turn_index !== undefined && event.turn_index > 0) this.turn = event.turn_index;
    return event.turn_index ?? this.turn;
  }

  private push(block: Block): void {
    const last = this.last();
    if (last?.kind === "text" || last?.kind === "thought") {
      if (last.open) ++last.version;
      last.open = false;
    }
    this.out.blocks.push(block);
  }

  private last(): Block | undefined {
    return this.out.blocks[this.out.blocks.length - 1];
  }

  private beginTurn(event: JournalEvent, data: Record<string, unknown>): void {
    const index = Number(data["turn_index"] ?? event.turn_index ?? this.turn + 1);
    this.turn = index;
    const existing = this.out.turns.find((turn) => turn.turn === index);
    const block = existing ?? this.openTurn(index, event);
    block.prompt = typeof data["prompt"] === "string" ? data["prompt"] : block.prompt;
    block.promptBytes = typeof data["prompt_bytes"] === "number" ? data["prompt_bytes"] : null;
    block.by = typeof data["by"] === "string" ? data["by"] : block.by;
    block.files = filesOf(data["files"]);
    block.at = event.at ?? (typeof data["at"] === "number" ? data["at"] : block.at);
    ++block.version;
  }

  private openTurn(index: number, event: JournalEvent): TurnBlock {
    const block: TurnBlock = {
      ...this.common(event),
      turn: index,
      kind: "turn",
      prompt: null,
      promptBytes: null,
      by: null,
      files: [],
      at: event.at ?? null,
      end: null,
    };
    this.push(block);
    this.out.turns.push(block);
    this.out.running = index;
    return block;
  }

  /** Older gateways do not tell when a turn begins: its first event does. */
  private needTurn(event: JournalEvent): void {
    if (event.turn_index === 0) return;
    const index = event.turn_index ?? (this.turn > 0 && this.out.running === this.turn ? this.turn : this.nextTurn());
    this.turn = index;
    if (!this.out.turns.some((turn) => turn.turn === index)) this.openTurn(index, event);
  }

  private nextTurn(): number {
    return this.out.running > 0 ? this.out.running : this.turn + 1;
  }

  private onMessage(event: JournalEvent, data: Record<string, unknown>): void {
    const parameters = data["params"] as { update?: Update } | undefined;
    const update = parameters?.update;
    if (update === undefined) {
      // The response that closes a turn; `done` or `failed` tells the same.
      if ("result" in data || "error" in data) return;
      this.push({ ...this.common(event), kind: "note", name: String(data["method"] ?? "message"), data });
      return;
    }
    this.onUpdate(event, update, data);
  }

  private onUpdate(event: JournalEvent, update: Update, data: unknown): void {
    const kind = update.sessionUpdate ?? "";
    if (kind === "usage_update") return this.onUsage(update);
    if (kind === "plan") return this.onPlan(event, update);
    if (kind === "current_mode_update") {
      this.out.mode = String(update["currentModeId"] ?? "");
      return;
    }
    if (kind === "session_info_update" && typeof update["title"] === "string") {
      this.out.title = update["title"];
      return;
    }
    if (SILENT.has(kind)) return;
    this.needTurn(event);
    if (kind === "agent_message_chunk") return this.onText(event, update, "text");
    if (kind === "agent_thought_chunk") return this.onText(event, update, "thought");
    if (kind === "tool_call" || kind === "tool_call_update") return this.onTool(event, update);
    this.push({ ...this.common(event), kind: "note", name: kind === "" ? "update" : kind, data });
  }

  private onUsage(update: Update): void {
    const used = Number(update["used"]);
    const size = Number(update["size"]);
    if (Number.isFinite(used) && Number.isFinite(size) && size > 0) this.out.context = { used, size };
  }

  private onPlan(event: JournalEvent, update: Update): void {
    this.needTurn(event);
    const entries = Array.isArray(update["entries"]) ? (update["entries"] as Record<string, unknown>[]) : [];
    this.out.plan = entries.map((entry) => ({
      content: String(entry["content"] ?? ""),
      status: String(entry["status"] ?? "pending"),
      priority: typeof entry["priority"] === "string" ? entry["priority"] : null,
    }));
  }

  private onText(event: JournalEvent, update: Update, kind: "text" | "thought"): void {
    const content = update.content as { type?: string; text?: unknown } | undefined;
    if (content?.type !== "text" || typeof content.text !== "string") {
      this.push({
        ...this.common(event),
        kind: "note",
        name: `${kind}: ${content?.type ?? "no content"}`,
        data: content ?? null,
      });
      return;
    }
    const last = this.last();
    const offset = event.offset_ms ?? null;
    if (last?.kind === kind && last.turn === this.turnOf(event)) {
      last.text += content.text;
      last.lastId = event.id;
      last.open = true;
      if (last.kind === "thought") last.offsets.to = offset ?? last.offsets.to;
      ++last.version;
      return;
    }
    const common = this.common(event);
    if (kind === "text") this.push({ ...common, kind, text: content.text, open: true });
    else this.push({ ...common, kind, text: content.text, open: true, offsets: { from: offset, to: offset } });
  }

  private onTool(event: JournalEvent, update: Update): void {
    const id = String(update["toolCallId"] ?? "");
    const key = this.toolKey(event, id);
    const known = this.tools.get(key);
    if (known !== undefined) {
      absorbUpdate(known.tool, update, event);
      known.block.lastId = event.id;
      ++known.block.version;
      return;
    }
    const tool = newTool(id, event);
    absorbUpdate(tool, update, event);
    this.tools.set(key, { tool, block: this.placeTool(event, tool) });
  }

  /** An agent may begin to count again with each turn, or with each of its processes. */
  private toolKey(event: JournalEvent, id: string): string {
    return `${this.turnOf(event)} ${id}`;
  }

  private placeTool(event: JournalEvent, tool: ToolCall): ToolBlock | LookBlock {
    const last = this.last();
    if (LOOKING.has(tool.kind) && last?.kind === "look" && last.turn === this.turnOf(event)) {
      last.tools.push(tool);
      last.lastId = event.id;
      ++last.version;
      return last;
    }
    const block: ToolBlock | LookBlock = LOOKING.has(tool.kind)
      ? { ...this.common(event), kind: "look", tools: [tool] }
      : { ...this.common(event), kind: "tool", tool };
    this.push(block);
    return block;
  }

  private onQuestion(event: JournalEvent, data: Record<string, unknown>): void {
    this.needTurn(event);
    const message = data["message"] as { params?: { toolCall?: Update } } | undefined;
    const call = message?.params?.toolCall ?? {};
    const tool = newTool(String(call["toolCallId"] ?? ""), event);
    const known = this.tools.get(this.toolKey(event, tool.id))?.tool;
    if (known !== undefined) Object.assign(tool, known, { content: [...known.content] });
    absorbUpdate(tool, call, event);
    const block: AskBlock = {
      ...this.common(event),
      kind: "ask",
      tool,
      message: data["message"] ?? data,
      resolved: null,
      question: {
        id: String(data["id"] ?? ""),
        title: typeof data["title"] === "string" ? data["title"] : null,
        toolKind: typeof data["kind"] === "string" ? data["kind"] : null,
        options: Array.isArray(data["options"]) ? (data["options"] as AskOption[]) : [],
        askedAt: numberOr(data["asked_at"]),
        expiresAt: numberOr(data["expires_at"]),
      },
    };
    this.asks.set(block.question.id, block);
    this.push(block);
  }

  private onResolved(event: JournalEvent, data: Record<string, unknown>): void {
    const block = this.asks.get(String(data["id"] ?? ""));
    if (block === undefined) {
      this.push({ ...this.common(event), kind: "note", name: "permission_resolved", data });
      return;
    }
    block.resolved = {
      decision: String(data["decision"] ?? ""),
      optionId: typeof data["option_id"] === "string" ? data["option_id"] : null,
      by: String(data["by"] ?? ""),
      at: event.at ?? null,
    };
    block.lastId = event.id;
    ++block.version;
  }

  private endTurn(event: JournalEvent, data: Record<string, unknown>): void {
    const index = Number(data["turn_index"] ?? event.turn_index ?? this.turn);
    this.turn = index;
    const turn = this.out.turns.find((each) => each.turn === index) ?? this.openTurn(index, event);
    turn.end = endOf(event.event, data);
    turn.lastId = event.id;
    ++turn.version;
    if (this.out.running === index) this.out.running = 0;
    const last = this.last();
    if ((last?.kind === "text" || last?.kind === "thought") && last.open) {
      last.open = false;
      ++last.version;
    }
    if (turn.end.state !== "done") this.push({ ...this.common(event), kind: "end", end: turn.end });
  }
}

function endOf(event: string, data: Record<string, unknown>): TurnEnd {
  const code = typeof data["code"] === "string" ? data["code"] : null;
  const stop = typeof data["stop_reason"] === "string" ? data["stop_reason"] : null;
  const state =
    event === "done"
      ? stop === "cancelled"
        ? "cancelled"
        : "done"
      : code === "interrupted"
        ? "interrupted"
        : "failed";
  return {
    state,
    code,
    stopReason: stop,
    error: typeof data["error"] === "string" ? data["error"] : null,
    stderr: typeof data["stderr"] === "string" && data["stderr"] !== "" ? data["stderr"] : null,
    usage: (data["usage"] ?? null) as Usage | null,
    cost: numberOr(data["cost_usd"]),
    durationMs: numberOr(data["duration_ms"]),
  };
}

const numberOr = (value: unknown): number | null => (typeof value === "number" ? value : null);

function filesOf(value: unknown): { name: string; size: number | null }[] {
  if (!Array.isArray(value)) return [];
  return value.map((file: unknown) => {
    const said = file as { name?: unknown; path?: unknown; size?: unknown };
    return typeof file === "string"
      ? { name: file, size: null }
      : { name: String(said.name ?? said.path ?? "file"), size: numberOr(said.size) };
  });
}

/** The questions that wait, the oldest first. */
export const openAsks = (folded: Folded): AskBlock[] =>
  folded.blocks.filter((block): block is AskBlock => block.kind === "ask" && block.resolved === null);
