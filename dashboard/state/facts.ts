// What the frame shows of the gateway, from whichever page has learnt it last.
import { ask } from "../api/client";
import { createStore } from "./store";

export interface Facts {
  version: string;
  running: number | null;
  apps: number | null;
  findings: number | null;
}

export const facts = createStore<Facts>({ version: "", running: null, apps: null, findings: null });

export const learn = (news: Partial<Facts>): void => {
  const now = facts.get();
  const next = { ...now, ...news };
  if (JSON.stringify(next) !== JSON.stringify(now)) facts.set(next);
};

export async function learnVersion(): Promise<void> {
  try {
    learn({ version: (await ask<{ version: string }>("healthz", { bare: true })).version });
  } catch {
    // The light says that it is away.
  }
}
