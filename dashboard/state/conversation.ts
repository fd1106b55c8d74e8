// One session as the page follows it: its events, folded, and its state. Drawn at most once a frame.
import { ApiError, ask, askIfThere } from "../api/client";
import { Follower } from "../api/stream";
import type { SseEvent } from "../api/sse";
import type { JournalEvent, SessionList, SessionState } from "../api/types";
import { Fold, type Folded } from "../model/fold";
import { identity } from "./keep";
import { changed } from "./load";
import { createStore, type Store } from "./store";

export interface View {
  folded: Folded;
  version: number;
  state: SessionState | null;
  error: ApiError | null;
  app: string | null;
}

const STATE_EVERY_MS = 5000;
const RAW_EVENTS_MAX = 50_000;

export class Conversation {
  readonly view: Store<View>;
  readonly raw: JournalEvent[] = [];
  private readonly fold = new Fold();
  private follower: Follower | null = null;
  private isDue = false;
  private closed = false;
  private stateTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly id: string,
    private app: string | null,
  ) {
    this.view = createStore<View>({ folded: this.fold.out, version: 0, state: null, error: null, app });
    void this.begin();
  }

  get path(): string {
    return `sessions/${encodeURIComponent(this.id)}`;
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.stateTimer);
    this.follower?.close();
  }

  private async begin(): Promise<void> {
    try {
      if (identity.get()?.kind === "admin" && this.app === null) this.app = await this.findApp();
      const state = await ask<SessionState>(this.path, { app: this.app });
      if (this.closed) return;
      this.view.update((now) => ({ ...now, state, app: state.app_name }));
      this.app = state.app_name;
      this.follow();
      this.stateTimer = setTimeout(() => {
        void this.refresh();
      }, STATE_EVERY_MS);
    } catch (fault) {
      if (!this.closed) this.failed(fault);
    }
  }

  /** The owner came by an address without the app's name. */
  private async findApp(): Promise<string | null> {
    let cursor: string | null = null;
    do {
      const page: SessionList = await ask<SessionList>(
        `admin/sessions?limit=1000${cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`}`,
      );
      const found = page.sessions.find((session) => session.session_id === this.id);
      if (found !== undefined) return found.app_name;
      cursor = page.next_cursor;
    } while (cursor !== null && !this.closed);
    throw new ApiError(404, "session_not_found", "There is no session of this id.");
  }

  private failed(fault: unknown): void {
    const error = fault instanceof ApiError ? fault : new ApiError(0, "page_fault", String(fault));
    this.view.update((now) => ({ ...now, error }));
    if (error.status === 0 || error.status >= 500 || error.status === 429)
      this.stateTimer = setTimeout(() => {
        void this.begin();
      }, 2000);
  }

  private follow(): void {
    this.follower = new Follower({
      path: `${this.path}/events`,
      app: this.app,
      lastId: () => (this.fold.out.lastId > 0 ? String(this.fold.out.lastId) : null),
      onEvent: (event) => this.take(event),
      onEnd: async () => {
        await this.refresh();
        return this.view.get().state?.closed_at === null;
      },
      onRefused: (error) => {
        if (error.status === 404) this.failed(error);
      },
    });
  }

  private take(said: SseEvent): void {
    const event: JournalEvent = {
      id: said.id === null ? null : Number(said.id),
      event: said.event,
      data: parsed(said.data),
    };
    const at = Number(said.fields["at"]);
    const offset = Number(said.fields["offset_ms"]);
    if (said.fields["at"] !== undefined && Number.isFinite(at)) event.at = at;
    if (said.fields["offset_ms"] !== undefined && Number.isFinite(offset)) event.offset_ms = offset;
    if (!this.fold.take(event)) return;
    if (this.raw.length < RAW_EVENTS_MAX) this.raw.push(event);
    this.draw();
    if (event.event === "done" || event.event === "failed" || event.event === "turn") void this.refresh();
  }

  /** A hidden tab gets no frames; it is drawn by a timer, rarely. */
  private draw(): void {
    if (this.isDue) return;
    this.isDue = true;
    const show = (): void => {
      this.isDue = false;
      this.view.update((now) => ({ ...now, version: this.fold.out.version }));
    };
    if (document.hidden) setTimeout(show, 500);
    else requestAnimationFrame(show);
  }

  async refresh(): Promise<void> {
    clearTimeout(this.stateTimer);
    try {
      if (!document.hidden) {
        const state = await askIfThere<SessionState>(this.path, { app: this.app });
        if (this.closed || state === null) return;
        const before = this.view.get().state;
        if (JSON.stringify(before) !== JSON.stringify(state))
          this.view.update((now) => ({ ...now, state, error: null }));
        if (state.closed_at !== null) return;
      }
    } catch {
      // The light says it; the state is asked for again.
    }
    if (!this.closed)
      this.stateTimer = setTimeout(() => {
        void this.refresh();
      }, STATE_EVERY_MS);
  }

  async cancelTurn(): Promise<void> {
    await ask(`${this.path}/cancel`, { method: "POST", app: this.app });
  }

  async end(): Promise<void> {
    await ask(this.path, { method: "DELETE", app: this.app });
    changed("sessions");
    await this.refresh();
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
