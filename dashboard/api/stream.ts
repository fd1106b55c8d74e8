// Follows a stream of events for as long as it is wanted, across broken connections, sleep and restarts.
//
// One for each visible tab: a browser opens six connections to an HTTP/1.1 origin, and a stream keeps one of them. A tab
// that has been hidden for a while lets its stream go and takes it up again by the id of the last event.
import { SseParser, type SseEvent } from "./sse";
import { ApiError, patiently, refusal } from "./client";
import { createStore } from "../state/store";

export type Link =
  | { state: "none" }
  | { state: "opening"; since: number }
  | { state: "live"; since: number }
  | { state: "hidden" }
  | { state: "waiting"; until: number; why: string };

/** What the light in the frame shows. */
export const link = createStore<Link>({ state: "none" });
/** When something was heard last: an event or a heartbeat. */
export const heardAt = createStore(0);

export interface Followed {
  path: string;
  app?: string | null;
  /** Sent as Last-Event-ID when the stream is taken up again. */
  lastId(): string | null;
  onEvent(event: SseEvent): void;
  /** The stream has ended by itself: whether to take it up again. */
  onEnd?(): boolean | Promise<boolean>;
  onRefused?(error: ApiError): void;
}

// The gateway breaks its silence every 15 seconds.
const SILENCE_MS_MAX = 25_000;
const HIDDEN_MS_MAX = 30_000;
const PAUSE_MS_MIN = 400;
const PAUSE_MS_MAX = 10_000;

export class Follower {
  private stopped = false;
  private pauses = 0;
  private abort: AbortController | null = null;
  private wake: (() => void) | null = null;
  private hiddenTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly followed: Followed) {
    document.addEventListener("visibilitychange", this.onVisibility);
    window.addEventListener("online", this.onOnline);
    window.addEventListener("pageshow", this.onOnline);
    void this.run();
  }

  close(): void {
    this.stopped = true;
    document.removeEventListener("visibilitychange", this.onVisibility);
    window.removeEventListener("online", this.onOnline);
    window.removeEventListener("pageshow", this.onOnline);
    clearTimeout(this.hiddenTimer);
    this.abort?.abort();
    this.wake?.();
    link.set({ state: "none" });
  }

  private readonly onVisibility = (): void => {
    clearTimeout(this.hiddenTimer);
    if (document.hidden) {
      this.hiddenTimer = setTimeout(() => {
        link.set({ state: "hidden" });
        this.abort?.abort();
      }, HIDDEN_MS_MAX);
    } else {
      this.lookAfterSleep();
    }
  };

  private readonly onOnline = (): void => this.lookAfterSleep();

  /** After a sleep a connection may be dead without a word. */
  private lookAfterSleep(): void {
    this.pauses = 0;
    if (this.wake !== null) this.wake();
    else if (Date.now() - heardAt.get() > SILENCE_MS_MAX) this.abort?.abort();
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      if (document.hidden && link.get().state === "hidden") {
        await new Promise<void>((resolve) => {
          this.wake = resolve;
        });
        this.wake = null;
        continue;
      }
      const again = await this.once();
      if (this.stopped) return;
      if (!again) {
        link.set({ state: "none" });
        return;
      }
      if (link.get().state !== "hidden") await this.pause();
    }
  }

  /** One connection; whether another one is wanted. */
  private async once(): Promise<boolean> {
    this.abort = new AbortController();
    link.set({ state: "opening", since: Date.now() });
    const last = this.followed.lastId();
    try {
      const response = await patiently(this.followed.path, {
        app: this.followed.app ?? null,
        accept: "text/event-stream",
        signal: this.abort.signal,
        headers: last === null ? {} : { "Last-Event-ID": last },
      });
      if (!response.ok || response.body === null) return this.refused(await refusal(response));
      await this.read(response.body.getReader());
      return this.followed.onEnd ? await this.followed.onEnd() : true;
    } catch {
      return true; // cut off, silent, or hidden: taken up again
    }
  }

  private refused(error: ApiError): boolean {
    this.followed.onRefused?.(error);
    if (error.retryAfter !== null) this.pauses = Math.max(this.pauses, 3);
    return error.status >= 500 || error.status === 429;
  }

  private async read(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    const parser = new SseParser();
    heardAt.set(Date.now());
    const watchdog = setInterval(() => {
      if (Date.now() - heardAt.get() > SILENCE_MS_MAX) this.abort?.abort();
    }, 1000);
    try {
      while (!this.stopped) {
        const { done, value } = await reader.read();
        if (done) return;
        heardAt.set(Date.now());
        if (link.get().state !== "live") link.set({ state: "live", since: Date.now() });
        this.pauses = 0;
        for (const event of parser.take(decoder.decode(value, { stream: true }))) {
          if (event.event !== ":") this.followed.onEvent(event);
        }
      }
    } finally {
      clearInterval(watchdog);
    }
  }

  /** Longer from try to try, never in step with other tabs. */
  private async pause(): Promise<void> {
    const most = Math.min(PAUSE_MS_MAX, PAUSE_MS_MIN * 2 ** this.pauses++);
    const milliseconds = most * (0.6 + 0.4 * Math.random());
    link.set({ state: "waiting", until: Date.now() + milliseconds, why: "the connection ended" });
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, milliseconds);
    });
    this.wake = null;
  }
}
