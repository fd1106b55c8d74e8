// A tool call of the agent, with all that was said about it later. Pure.
import type { JournalEvent } from "../api/types";
import { diffTexts, type FileDiff } from "./diff";

export interface DiffContent {
  type: "diff";
  path: string;
  oldText: string | null;
  newText: string | null;
}
export interface TextContent {
  type: "text";
  text: string;
}
export interface OtherContent {
  type: "other";
  data: unknown;
}
export type Content = DiffContent | TextContent | OtherContent;

export interface ToolCall {
  id: string;
  title: string;
  kind: string;
  status: string;
  rawInput: unknown;
  rawOutput: unknown;
  content: Content[];
  locations: string[];
  meta: unknown;
  begun: { at: number | null; offset: number | null };
  ended: { at: number | null; offset: number | null };
}

const ENDED = new Set(["completed", "failed"]);

export function newTool(id: string, event: JournalEvent): ToolCall {
  return {
    id,
    title: "",
    kind: "other",
    status: "pending",
    rawInput: undefined,
    rawOutput: undefined,
    content: [],
    locations: [],
    meta: undefined,
    begun: { at: event.at ?? null, offset: event.offset_ms ?? null },
    ended: { at: null, offset: null },
  };
}

export function absorbUpdate(tool: ToolCall, update: Record<string, unknown>, event: JournalEvent): void {
  if (typeof update["title"] === "string") tool.title = update["title"];
  if (typeof update["kind"] === "string") tool.kind = update["kind"];
  if (typeof update["status"] === "string") tool.status = update["status"];
  if (update["rawInput"] !== undefined && update["rawInput"] !== null) tool.rawInput = update["rawInput"];
  if (update["rawOutput"] !== undefined && update["rawOutput"] !== null) tool.rawOutput = update["rawOutput"];
  if (Array.isArray(update["content"])) tool.content = update["content"].map(contentOf);
  if (Array.isArray(update["locations"])) tool.locations = update["locations"].map(placeOf);
  if (update["_meta"] !== undefined) tool.meta = update["_meta"];
  if (ENDED.has(tool.status) && tool.ended.offset === null) {
    tool.ended = { at: event.at ?? null, offset: event.offset_ms ?? null };
  }
}

function contentOf(value: unknown): Content {
  const said = value as {
    type?: string;
    path?: unknown;
    oldText?: unknown;
    newText?: unknown;
    content?: { type?: string; text?: unknown };
  } | null;
  if (said?.type === "diff") {
    return {
      type: "diff",
      path: String(said.path ?? ""),
      oldText: typeof said.oldText === "string" ? said.oldText : null,
      newText: typeof said.newText === "string" ? said.newText : null,
    };
  }
  if (said?.type === "content" && said.content?.type === "text" && typeof said.content.text === "string") {
    return { type: "text", text: said.content.text };
  }
  return { type: "other", data: value };
}

function placeOf(value: unknown): string {
  const place = value as { path?: unknown; line?: unknown } | null;
  return typeof place?.line === "number" ? `${String(place.path ?? "")}:${place.line}` : String(place?.path ?? "");
}

/** How long it took, as far as the events have times. */
export function toolMs(tool: ToolCall): number | null {
  if (tool.begun.offset === null || tool.ended.offset === null) return null;
  return tool.ended.offset - tool.begun.offset;
}

const INPUT_NAMES = ["command", "cmd", "script", "code"];
const PATH_NAMES = ["file_path", "path", "filePath", "notebook_path"];
const ASKED_NAMES = ["pattern", "query", "url", "prompt", "description"];

function inputText(tool: ToolCall, names: string[]): string | null {
  const input = tool.rawInput as Record<string, unknown> | null | undefined;
  if (typeof input !== "object" || input === null) return null;
  for (const name of names) {
    const value = input[name];
    if (typeof value === "string" && value !== "") return value;
    if (Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string"))
      return value.map(quoteWord).join(" ");
  }
  return null;
}

const quoteWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

/** The command that would run, whole. */
export const commandOf = (tool: ToolCall): string | null => inputText(tool, INPUT_NAMES);

/** What the tool works on, in one line. */
export function objectOf(tool: ToolCall): string {
  const diff = diffsOf(tool)[0];
  return (
    commandOf(tool) ??
    diff?.path ??
    inputText(tool, PATH_NAMES) ??
    inputText(tool, ASKED_NAMES) ??
    tool.locations[0] ??
    tool.title
  );
}

export const diffsOf = (tool: ToolCall): DiffContent[] =>
  tool.content.filter((content): content is DiffContent => content.type === "diff");

const compared = new WeakMap<DiffContent, FileDiff>();

/** Kept with the content, because a row is drawn more than once. */
export function fileDiff(content: DiffContent): FileDiff {
  const known = compared.get(content);
  if (known !== undefined) return known;
  const found = diffTexts(content.oldText, content.newText);
  compared.set(content, found);
  return found;
}

export interface Changed {
  path: string;
  added: number;
  removed: number;
}

export function changedFiles(tools: Iterable<ToolCall>): Changed[] {
  const found = new Map<string, Changed>();
  for (const tool of tools) {
    if (tool.status === "failed") continue;
    for (const content of diffsOf(tool)) {
      const diff = fileDiff(content);
      const before = found.get(content.path) ?? { path: content.path, added: 0, removed: 0 };
      found.set(content.path, {
        path: content.path,
        added: before.added + diff.added,
        removed: before.removed + diff.removed,
      });
    }
  }
  return [...found.values()];
}

/** What a command printed: its text contents, else its output as far as it has one. */
export function outputOf(tool: ToolCall): string | null {
  const texts = tool.content
    .filter((content): content is TextContent => content.type === "text")
    .map((content) => unfenced(content.text));
  if (texts.length > 0) return texts.join("\n");
  const output = tool.rawOutput as Record<string, unknown> | string | null | undefined;
  if (typeof output === "string") return output;
  if (typeof output !== "object" || output === null) return null;
  for (const name of ["stdout", "output", "formatted_output", "aggregated_output", "text"]) {
    const stderr = output["stderr"];
    if (typeof output[name] === "string")
      return output[name] + (typeof stderr === "string" && stderr !== "" ? `\n${stderr}` : "");
  }
  return null;
}

/** Some agents put a terminal's output into a code fence. */
function unfenced(text: string): string {
  const found = /^\s*(`{3,})[^\n`]*\n([\s\S]*?)\n?\1\s*$/.exec(text);
  return found?.[2] ?? text;
}

export function exitCodeOf(tool: ToolCall): number | null {
  const output = tool.rawOutput as Record<string, unknown> | null | undefined;
  if (typeof output !== "object" || output === null) return null;
  for (const name of ["exit_code", "exitCode", "exit", "code", "returnCode"]) {
    if (typeof output[name] === "number") return output[name];
  }
  return null;
}
