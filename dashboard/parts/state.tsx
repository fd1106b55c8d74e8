// The states of sessions, turns and runs: each a word, a shape and a colour, never a colour alone.
import type { ReactNode } from "react";
import { Icon, type IconName } from "../icons";
import type { SessionState } from "../api/types";

export type StateName =
  | "asks"
  | "busy"
  | "ready"
  | "asleep"
  | "closed"
  | "running"
  | "waiting"
  | "done"
  | "failed"
  | "cancelled"
  | "interrupted";

const LOOKS: Record<StateName, { icon: IconName; tone: string; word: string }> = {
  asks: { icon: "question", tone: "t-ask", word: "Asks you" },
  busy: { icon: "half", tone: "t-live", word: "Busy" },
  running: { icon: "half", tone: "t-live", word: "Running" },
  waiting: { icon: "clock", tone: "t-ask", word: "Waits" },
  ready: { icon: "dot", tone: "dim", word: "Ready" },
  asleep: { icon: "moon", tone: "dim", word: "Asleep" },
  closed: { icon: "ring", tone: "dim", word: "Closed" },
  done: { icon: "tick", tone: "t-ok", word: "Done" },
  failed: { icon: "cross", tone: "t-bad", word: "Failed" },
  cancelled: { icon: "bar", tone: "dim", word: "Cancelled" },
  interrupted: { icon: "broken", tone: "t-ask", word: "Interrupted" },
};

const TONES: Partial<Record<StateName, string>> = {
  asks: "ask",
  busy: "live",
  running: "live",
  done: "ok",
  failed: "bad",
  interrupted: "ask",
};

export function StateMark({ state, word }: { state: StateName; word?: string }): ReactNode {
  const look = LOOKS[state];
  return (
    <span className={`state ${look.tone}`}>
      <Icon name={look.icon} />
      {word ?? look.word}
    </span>
  );
}

export function StateIcon({ state }: { state: StateName }): ReactNode {
  const look = LOOKS[state];
  return (
    <span className={look.tone}>
      <Icon name={look.icon} label={look.word} />
    </span>
  );
}

export function StateChip({ state }: { state: StateName }): ReactNode {
  return (
    <span className={`chip ${TONES[state] ?? ""}`}>
      <span className="dot" />
      {LOOKS[state].word}
    </span>
  );
}

export function sessionStateOf(session: SessionState, asks: boolean): StateName {
  if (session.closed_at !== null) return "closed";
  if (asks || (session.questions_open ?? 0) > 0) return "asks";
  if (session.busy) return "busy";
  return session.live ? "ready" : "asleep";
}

const RUN_STATES: Record<string, StateName> = {
  running: "running",
  succeeded: "done",
  failed: "failed",
  cancelled: "cancelled",
  interrupted: "interrupted",
  queued: "waiting",
};

export const runStateOf = (state: string): StateName => RUN_STATES[state] ?? "waiting";

/** What the app calls it, else the first line of its first prompt, else its id. */
export function titleOf(session: SessionState): string {
  const named = session.title ?? session.meta["title"];
  return typeof named === "string" && named.trim() !== "" ? named : `Session ${session.session_id.slice(0, 8)}`;
}
