// What a page has loaded. The newest answer is kept by its key, so that going back shows at once what was there; it is
// asked for again when its topic changes, and every so often, never while the tab is hidden.
import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError } from "../api/client";

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  at: number;
  reload(): void;
}

type Listener = (topic: string) => void;
const listeners = new Set<Listener>();
const kept = new Map<string, { data: unknown; at: number }>();
const KEPT_MAX = 60;
const AFTER_CHANGE_MS = 250;
const RETRY_MS_MAX = 15_000;

/** Something of this topic has changed: those who show it load it again. */
export function changed(topic: string): void {
  for (const listener of [...listeners]) listener(topic);
}

export function forgetLoaded(): void {
  kept.clear();
}

function keep(key: string, data: unknown): number {
  const at = Date.now();
  kept.delete(key);
  kept.set(key, { data, at });
  if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value ?? "");
  return at;
}

interface Options {
  topics?: string[];
  everyMs?: number;
}

/** `key` null: nothing to load yet. */
export function useLoaded<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  options: Options = {},
): Loaded<T> {
  const before = key === null ? undefined : kept.get(key);
  const [state, setState] = useState<{ key: string | null; data: T | null; error: ApiError | null; at: number }>({
    key,
    data: (before?.data ?? null) as T | null,
    error: null,
    at: before?.at ?? 0,
  });
  const loader = useRef(load);
  loader.current = load;
  const again = useRef<() => void>(() => undefined);
  const topics = options.topics?.join(" ") ?? "";
  const everyMs = options.everyMs ?? 0;

  useEffect(() => {
    if (key === null) return undefined;
    const follow = new Loading<T>(key, (signal) => loader.current(signal), everyMs, setState);
    again.current = () => follow.soon(0);
    const listener: Listener = (topic) => {
      if (topics.split(" ").includes(topic)) follow.soon(AFTER_CHANGE_MS);
    };
    listeners.add(listener);
    follow.soon(0);
    return () => {
      listeners.delete(listener);
      follow.close();
    };
  }, [key, topics, everyMs]);

  const reload = useCallback(() => again.current(), []);
  const current =
    state.key === key ? state : { data: (before?.data ?? null) as T | null, error: null, at: before?.at ?? 0 };
  return { data: current.data, error: current.error, at: current.at, reload };
}

class Loading<T> {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private due = Infinity;
  private abort = new AbortController();
  private closed = false;
  private failures = 0;

  constructor(
    private readonly key: string,
    private readonly load: (signal: AbortSignal) => Promise<T>,
    private readonly everyMs: number,
    private readonly tell: (state: { key: string; data: T | null; error: ApiError | null; at: number }) => void,
  ) {
    document.addEventListener("visibilitychange", this.onVisibility);
  }

  private readonly onVisibility = (): void => {
    if (!document.hidden && this.everyMs > 0) this.soon(0);
  };

  soon(milliseconds: number): void {
    const due = Date.now() + milliseconds;
    if (this.closed || due >= this.due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => {
      void this.run();
    }, milliseconds);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    document.removeEventListener("visibilitychange", this.onVisibility);
    this.abort.abort();
  }

  private async run(): Promise<void> {
    this.due = Infinity;
    if (document.hidden && this.failures === 0 && kept.has(this.key)) return;
    try {
      const data = await this.load(this.abort.signal);
      if (this.closed) return;
      this.failures = 0;
      this.tell({ key: this.key, data, error: null, at: keep(this.key, data) });
      if (this.everyMs > 0) this.soon(this.everyMs);
    } catch (fault) {
      if (this.closed) return;
      this.failed(fault instanceof ApiError ? fault : new ApiError(0, "page_fault", String(fault)));
    }
  }

  /** What was there stays on screen; what may pass is tried again, with jitter. */
  private failed(error: ApiError): void {
    const before = kept.get(this.key);
    this.tell({ key: this.key, data: (before?.data ?? null) as T | null, error, at: before?.at ?? 0 });
    if (error.status !== 0 && error.status < 500 && error.status !== 429) return;
    const pause =
      error.retryAfter !== null ? error.retryAfter * 1000 : Math.min(RETRY_MS_MAX, 1000 * 2 ** this.failures++);
    this.soon(pause * (0.8 + 0.4 * Math.random()));
  }
}
