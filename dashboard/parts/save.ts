// Puts what is on screen into a file of the reader's own.
import type { JournalEvent, SessionState } from "../api/types";
import type { Folded } from "../model/fold";
import { markdownOf } from "../model/export";

export function saveText(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export function saveSession(state: SessionState, folded: Folded, events: JournalEvent[], form: "md" | "jsonl"): void {
  const name = `session-${state.session_id.slice(0, 8)}`;
  if (form === "md") saveText(`${name}.md`, "text/markdown", markdownOf(state, folded));
  else saveText(`${name}.jsonl`, "application/x-ndjson", events.map((event) => `${JSON.stringify(event)}\n`).join(""));
}
