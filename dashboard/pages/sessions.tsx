// All sessions that the reader may see, with their states.
import { useEffect, useMemo, useRef, useState, type ReactNode, type RefObject } from "react";
import { ask, query } from "../api/client";
import type { SessionList, SessionState } from "../api/types";
import { count, money, plural, tokens } from "../model/numbers";
import { identity } from "../state/keep";
import { changed, useLoaded } from "../state/load";
import { questions } from "../state/questions";
import { go, route, sessionLink, setQuery } from "../state/route";
import { useStore } from "../state/store";
import { Ago, Button, Empty, LinkButton, Outline, PageHead, Refusal, Said, Segments, Select } from "../parts/basic";
import { FindButton } from "../parts/palette";
import { useTitle } from "../parts/frame";
import { useKeys } from "../parts/keys";
import { sessionStateOf, StateMark, titleOf, type StateName } from "../parts/state";

type Filter = "all" | "asks" | "busy" | "open" | "closed";
const PAGE = 200;

const totalOf = (session: SessionState): number | null =>
  session.usage === null
    ? null
    : (session.usage.input_tokens ?? 0) +
      (session.usage.output_tokens ?? 0) +
      (session.usage.cache_read_tokens ?? 0) +
      (session.usage.cache_write_tokens ?? 0);

const ORDER: Record<string, number> = { asks: 0, busy: 1, ready: 2, asleep: 3, closed: 4 };

function matches(state: StateName, filter: Filter): boolean {
  if (filter === "all") return true;
  if (filter === "open") return state !== "closed";
  return state === filter;
}

interface RowOptions {
  session: SessionState;
  state: StateName;
  owner: boolean;
  current: boolean;
  picked: boolean;
  onPick(): void;
}

function Row({ session, state, owner, current, picked, onPick }: RowOptions): ReactNode {
  return (
    <tr aria-current={current ? "true" : undefined} className={picked ? "picked" : undefined}>
      <td className="pick">
        <input
          type="checkbox"
          checked={picked}
          onChange={onPick}
          aria-label={`Select ${titleOf(session)}`}
          disabled={state === "closed"}
        />
      </td>
      <td>
        <StateMark state={state} />
      </td>
      <td className="main-cell">
        <a className="cut" href={sessionLink(session.session_id, owner ? session.app_name : null)}>
          <Said text={titleOf(session)} />
        </a>
      </td>
      {owner ? (
        <td>
          <Said text={session.app_name} />
        </td>
      ) : null}
      <td>
        {session.agent}
        {session.model ? (
          <span className="dim">
            {" "}
            <Said text={session.model} />
          </span>
        ) : null}
      </td>
      <td className="n">{count(session.turn_count)}</td>
      <td className="n">
        <Ago at={session.last_turn_at ?? session.created_at} />
      </td>
      <td className="n">{tokens(totalOf(session))}</td>
      <td className="n">{money(session.cost_usd)}</td>
    </tr>
  );
}

function useSessions(
  owner: boolean,
  app: string,
): {
  list: SessionState[];
  more: (() => void) | null;
  error: ReturnType<typeof useLoaded>["error"];
  loading: boolean;
  reload(): void;
} {
  const path = owner ? "admin/sessions" : "sessions";
  const first = useLoaded<SessionList>(
    `${path} ${app}`,
    (signal) => ask<SessionList>(`${path}${query({ limit: PAGE, include_closed: true, app })}`, { signal }),
    { topics: ["sessions"], everyMs: 5000 },
  );
  const [older, setOlder] = useState<{ list: SessionState[]; cursor: string | null } | null>(null);
  useEffect(() => setOlder(null), [path, app]);
  const cursor = older === null ? (first.data?.next_cursor ?? null) : older.cursor;
  const more = (): void => {
    ask<SessionList>(`${path}${query({ limit: PAGE, include_closed: true, app, cursor })}`).then(
      (page) => setOlder({ list: [...(older?.list ?? []), ...page.sessions], cursor: page.next_cursor }),
      () => undefined,
    );
  };
  const seen = new Set(first.data?.sessions.map((session) => session.session_id));
  return {
    list: [...(first.data?.sessions ?? []), ...(older?.list ?? []).filter((session) => !seen.has(session.session_id))],
    more: cursor === null ? null : more,
    error: first.error,
    loading: first.data === null && first.error === null,
    reload: first.reload,
  };
}

/** Rows stay where they are while they change; those that have come since are put in front. */
function useStill(
  list: { session: SessionState; state: StateName }[],
  key: string,
): { rows: typeof list; moved: number; sort(): void } {
  const order = useRef<{ key: string; ids: Map<string, number> }>({ key: "", ids: new Map() });
  const [, draw] = useState(0);
  const sorted = [...list].sort(
    (a, b) =>
      (ORDER[a.state] ?? 9) - (ORDER[b.state] ?? 9) ||
      (b.session.last_turn_at ?? b.session.created_at) - (a.session.last_turn_at ?? a.session.created_at),
  );
  const fix = (): void => {
    order.current = { key, ids: new Map(sorted.map((row, at) => [row.session.session_id, at])) };
  };
  if (order.current.key !== key || order.current.ids.size === 0) fix();
  const place = (row: (typeof list)[number]): number => order.current.ids.get(row.session.session_id) ?? -1;
  const rows = [...sorted].sort((a, b) => place(a) - place(b));
  const moved = rows.filter((row, at) => sorted[at] !== row).length;
  return {
    rows,
    moved,
    sort: () => {
      fix();
      draw((n) => n + 1);
    },
  };
}

async function closeAll(sessions: SessionState[], owner: boolean): Promise<void> {
  for (const session of sessions)
    await ask(`sessions/${session.session_id}`, { method: "DELETE", app: owner ? session.app_name : null });
  changed("sessions");
}

function Closing({ picked, owner, done }: { picked: SessionState[]; owner: boolean; done(): void }): ReactNode {
  const [sure, setSure] = useState(false);
  const busy = picked.filter((session) => session.busy).length;
  if (picked.length === 0) return null;
  return (
    <div className="row bar">
      <span>{plural(picked.length, "session")} selected</span>
      <span className="grow" />
      <Button
        kind={sure ? "bad" : "plain"}
        onClick={() => {
          if (!sure) setSure(true);
          else void closeAll(picked, owner).finally(done);
        }}
      >
        {sure ? `Close ${plural(picked.length, "session")}${busy > 0 ? `, ${busy} of them busy` : ""}` : "Close"}
      </Button>
      <Button kind="quiet" onClick={done}>
        Leave them
      </Button>
    </div>
  );
}

interface Filters {
  app: string;
  agent: string;
  state: Filter;
  text: string;
}
interface Entry {
  session: SessionState;
  state: StateName;
}

function readFilters(query: URLSearchParams): Filters {
  return {
    app: query.get("app") ?? "",
    agent: query.get("agent") ?? "",
    state: (query.get("state") ?? "all") as Filter,
    text: query.get("q") ?? "",
  };
}

function isFound({ session, state }: Entry, filters: Filters): boolean {
  const words = `${titleOf(session)} ${session.session_id} ${session.app_name}`.toLowerCase();
  return (
    matches(state, filters.state) &&
    (filters.agent === "" || session.agent === filters.agent) &&
    words.includes(filters.text.toLowerCase())
  );
}

function Bar({
  filters,
  all,
  owner,
  field,
}: {
  filters: Filters;
  all: Entry[];
  owner: boolean;
  field: RefObject<HTMLInputElement>;
}): ReactNode {
  const counted = (name: Filter): number => all.filter((row) => matches(row.state, name)).length;
  const names = (pick: (session: SessionState) => string, now: string): [string, string][] => [
    ["", "any"],
    ...[...new Set([...all.map((row) => pick(row.session)), now])]
      .filter((name) => name !== "")
      .sort()
      .map((name): [string, string] => [name, name]),
  ];
  return (
    <div className="filters">
      <Segments
        label="State"
        value={filters.state}
        onPick={(value) => setQuery({ state: value === "all" ? null : value })}
        options={[
          ["all", "All"],
          [
            "asks",
            <>
              Asks <b>{counted("asks")}</b>
            </>,
          ],
          [
            "busy",
            <>
              Busy <b>{counted("busy")}</b>
            </>,
          ],
          ["open", "Open"],
          ["closed", "Closed"],
        ]}
      />
      {owner ? (
        <Select
          label="app"
          value={filters.app}
          options={names((session) => session.app_name, filters.app)}
          onPick={(app) => setQuery({ app })}
        />
      ) : null}
      <Select
        label="agent"
        value={filters.agent}
        options={names((session) => session.agent, filters.agent)}
        onPick={(agent) => setQuery({ agent })}
      />
      <input
        ref={field}
        type="search"
        value={filters.text}
        placeholder="Filter   /"
        aria-label="Filter by title or id"
        onChange={(event) => setQuery({ q: event.target.value })}
      />
    </div>
  );
}

function Table({
  rows,
  owner,
  picked,
  toggle,
}: {
  rows: Entry[];
  owner: boolean;
  picked: Set<string>;
  toggle(id: string): void;
}): ReactNode {
  const [at, setAt] = useState(-1);
  const current = rows[at]?.session;
  useKeys(
    {
      j: () => setAt(Math.min(rows.length - 1, at + 1)),
      k: () => setAt(Math.max(0, at - 1)),
      Enter: () => {
        if (current) go(sessionLink(current.session_id, owner ? current.app_name : null));
      },
      x: () => {
        if (current && current.closed_at === null) toggle(current.session_id);
      },
    },
    [rows, at],
  );
  return (
    <div className="table-card" tabIndex={0} role="region" aria-label="Sessions">
      <table className="list">
        <thead>
          <tr>
            <th className="pick">
              <span className="vh">Select</span>
            </th>
            <th>State</th>
            <th>Title</th>
            {owner ? <th>App</th> : null}
            <th>Agent</th>
            <th className="n">Turns</th>
            <th className="n">Last</th>
            <th className="n">Tokens</th>
            <th className="n">Cost</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ session, state }, index) => (
            <Row
              key={session.session_id}
              session={session}
              state={state}
              owner={owner}
              current={index === at}
              picked={picked.has(session.session_id)}
              onPick={() => toggle(session.session_id)}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function SessionsPage(): ReactNode {
  useTitle("Sessions");
  const owner = useStore(identity)?.kind === "admin";
  const filters = readFilters(useStore(route).query);
  const asking = useStore(questions);
  const { list, more, error, loading, reload } = useSessions(owner, filters.app);
  const asks = useMemo(() => new Set(asking?.map((question) => question.session_id)), [asking]);
  const all = list.map((session) => ({ session, state: sessionStateOf(session, asks.has(session.session_id)) }));
  const { rows, moved, sort } = useStill(
    all.filter((row) => isFound(row, filters)),
    `${JSON.stringify(filters)} ${loading}`,
  );
  const [picked, setPicked] = useState<Set<string>>(new Set());
  const field = useRef<HTMLInputElement>(null);
  useKeys({ "/": () => field.current?.focus() }, []);
  const toggle = (id: string): void =>
    setPicked((now) => {
      const next = new Set(now);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  const filtered = filters.state !== "all" || filters.app !== "" || filters.agent !== "" || filters.text !== "";
  return (
    <>
      <PageHead
        title="Sessions"
        sub={loading ? "" : `${count(all.filter((row) => matches(row.state, "open")).length)} open`}
      >
        <FindButton />
      </PageHead>
      <Bar filters={filters} all={all} owner={owner} field={field} />
      {error && list.length === 0 ? <Refusal error={error} onRetry={reload} /> : null}
      <Closing
        picked={list.filter((session) => picked.has(session.session_id))}
        owner={owner}
        done={() => setPicked(new Set())}
      />
      {moved > 0 ? (
        <p className="moved dim small">
          {plural(moved, "row has", "rows have")} moved.{" "}
          <button type="button" className="link" onClick={sort}>
            Sort again
          </button>
        </p>
      ) : null}
      {loading ? (
        <Outline rows={6} />
      ) : rows.length === 0 ? (
        <NoSessions filtered={filtered} />
      ) : (
        <Table rows={rows} owner={owner} picked={picked} toggle={toggle} />
      )}
      {more ? (
        <p className="more-row">
          <Button onClick={more}>Load more</Button>
        </p>
      ) : null}
    </>
  );
}

function NoSessions({ filtered }: { filtered: boolean }): ReactNode {
  if (filtered)
    return (
      <Empty icon="sessions" title="No session is like that.">
        <Button onClick={() => go("#/sessions")}>Show all</Button>
      </Empty>
    );
  return (
    <Empty icon="sessions" title="No sessions.">
      <p className="muted">
        An app opens one with <code>POST /sessions</code>.
      </p>
      <LinkButton kind="go" to="#/play?as=conversation">
        Try one in the playground
      </LinkButton>
    </Empty>
  );
}
