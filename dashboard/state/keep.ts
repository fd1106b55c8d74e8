// What the browser keeps. The only file that touches its storage.
//
// The token of this browser lies in sessionStorage, which another port of the same host cannot see; with "stay signed
// in" it lies in localStorage. A cookie would be sent to every port of the host, which is where agents start servers.
import { createStore } from "./store";

export interface Identity {
  token: string;
  kind: "admin" | "app";
  name: string | null;
  stays: boolean;
}

export type Theme = "system" | "light" | "dark";

const IDENTITY = "clawdforge.identity";
const THEME = "clawdforge.theme";
const KEYS = "clawdforge.keys";
const DRAFT = "clawdforge.draft.";
const MINE = "clawdforge.prompts.";
const CHANNEL = "clawdforge";
const DRAFT_CHARACTERS_MAX = 200_000;

function read(area: Storage, name: string): string | null {
  try {
    return area.getItem(name);
  } catch {
    return null; // storage that is switched off: the page works, and keeps nothing
  }
}

function write(area: Storage, name: string, value: string | null): void {
  try {
    if (value === null) area.removeItem(name);
    else area.setItem(name, value);
  } catch {
    // As above, or full.
  }
}

function isIdentity(value: unknown): value is Identity {
  const found = value as Identity | null;
  return typeof found?.token === "string" && (found.kind === "admin" || found.kind === "app");
}

function readIdentity(): Identity | null {
  const text = read(sessionStorage, IDENTITY) ?? read(localStorage, IDENTITY);
  if (text === null) return null;
  try {
    const value: unknown = JSON.parse(text);
    return isIdentity(value) ? value : null;
  } catch {
    return null;
  }
}

export const identity = createStore<Identity | null>(readIdentity());

const channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(CHANNEL);

/** A new tab asks the open ones of this origin, so that a second tab needs no second sign-in. */
export function askOtherTabs(milliseconds: number): Promise<boolean> {
  if (identity.get() !== null || channel === null) return Promise.resolve(identity.get() !== null);
  channel.postMessage({ ask: "identity" });
  return new Promise((resolve) => {
    const stop = identity.subscribe(() => {
      stop();
      resolve(true);
    });
    setTimeout(() => {
      stop();
      resolve(identity.get() !== null);
    }, milliseconds);
  });
}

channel?.addEventListener("message", (message: MessageEvent<unknown>) => {
  const said = message.data as { ask?: string; identity?: unknown; gone?: string } | null;
  const mine = identity.get();
  if (said?.ask === "identity" && mine !== null) channel.postMessage({ identity: mine });
  if (mine === null && isIdentity(said?.identity)) keepIdentity(said.identity);
  if (mine !== null && said?.gone === mine.token) keepIdentity(null);
});

export function keepIdentity(next: Identity | null): void {
  const text = next === null ? null : JSON.stringify(next);
  write(sessionStorage, IDENTITY, text);
  if (next === null || next.stays) write(localStorage, IDENTITY, text);
  identity.set(next);
}

export function forgetIdentity(): void {
  const mine = identity.get();
  keepIdentity(null);
  if (mine !== null) channel?.postMessage({ gone: mine.token });
}

export function readTheme(): Theme {
  const text = read(localStorage, THEME);
  return text === "light" || text === "dark" ? text : "system";
}

export const keepTheme = (theme: Theme): void => write(localStorage, THEME, theme === "system" ? null : theme);

/** Single letters as keys can be switched off. */
export const lettersAreOn = createStore<boolean>(read(localStorage, KEYS) !== "off");

export function setLetters(on: boolean): void {
  write(localStorage, KEYS, on ? null : "off");
  lettersAreOn.set(on);
}

/** A draft for each place that takes text, in this tab alone. */
export const readDraft = (place: string): string => read(sessionStorage, DRAFT + place) ?? "";

export function keepDraft(place: string, text: string): void {
  write(sessionStorage, DRAFT + place, text === "" || text.length > DRAFT_CHARACTERS_MAX ? null : text);
}

/** What was typed in this tab, by turn, for gateways that keep no prompts. */
export function readPrompts(session: string): Record<string, string> {
  try {
    return JSON.parse(read(sessionStorage, MINE + session) ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
}

export function keepPrompt(session: string, turn: number, text: string): void {
  write(sessionStorage, MINE + session, JSON.stringify({ ...readPrompts(session), [turn]: text.slice(0, 20_000) }));
}
