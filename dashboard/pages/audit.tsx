// What happened to sessions and tokens, newest first. These lines outlive what they tell of.
import { useState, type ReactNode } from "react";
import { ApiError, address, ask, askBlob, gatewayNow, query } from "../api/client";
import type { AuditEvent, AuditList } from "../api/types";
import { dated, shortId } from "../model/numbers";
import { useLoaded } from "../state/load";
import { route, sessionLink, setQuery } from "../state/route";
import { useStore } from "../state/store";
import { Button, CopyButton, Empty, Outline, PageHead, Refusal, Said, Select } from "../parts/basic";
import { useTitle } from "../parts/frame";
import { FindButton } from "../parts/palette";

const EVENTS = [
  "create",
  "create_failed",
  "turn",
  "cancel",
  "permission",
  "interrupted",
  "close",
  "sweep_close",
  "hard_delete",
  "token_mint",
  "token_change",
  "token_rotate",
  "token_revoke",
  "webhook_secret",
  "sign_in",
  "sign_in_failed",
  "sign_out",
  "act_as",
];
const SPANS: Record<string, number> = { "1h": 3600, "24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400 };

interface Filters {
  app: string;
  event: string;
  actor: string;
  session: string;
  since: string;
}

function parameters(filters: Filters, cursor: string | null): string {
  const span = SPANS[filters.since];
  return query({
    limit: 100,
    app: filters.app,
    event: filters.event,
    actor: filters.actor,
    session_id: filters.session,
    since: span === undefined ? null : Math.floor(gatewayNow() - span),
    cursor,
  });
}

const matches = (event: AuditEvent, filters: Filters): boolean =>
  (filters.event === "" || event.event === filters.event) &&
  (filters.session === "" || (event.session_id ?? "").startsWith(filters.session)) &&
  (filters.actor === "" || event.actor === filters.actor);

function said(event: AuditEvent): string {
  return Object.entries(event.meta)
    .filter(([name, value]) => name !== "by" && value !== null && value !== "")
    .map(([name, value]) => `${name.replaceAll("_", " ")} ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(", ");
}

function Row({ event }: { event: AuditEvent }): ReactNode {
  return (
    <tr>
      <td className="num">
        {dated(event.at, gatewayNow()).replace("today ", "")}
        <span className="dim">:{String(new Date(event.at * 1000).getSeconds()).padStart(2, "0")}</span>
      </td>
      <td>
        <b>{event.event.replaceAll("_", " ")}</b>
      </td>
      <td>
        <Said text={event.app_name ?? "–"} />
      </td>
      <td className="main-cell">
        <span className="cut block" title={said(event)}>
          <Said text={said(event)} />
        </span>
      </td>
      <td>
        <Said text={event.actor ?? String(event.meta["by"] ?? "–")} />
      </td>
      <td>
        {event.session_id ? (
          <a className="mono small link" href={sessionLink(event.session_id, event.app_name)}>
            {shortId(event.session_id)}
          </a>
        ) : (
          "–"
        )}
      </td>
    </tr>
  );
}

async function save(form: "csv" | "jsonl", filters: Filters): Promise<void> {
  const blob = await askBlob(`admin/events${parameters(filters, null)}`, {
    accept: form === "csv" ? "text/csv" : "application/x-ndjson",
  });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `audit.${blob.type.includes("json") && form === "csv" ? "json" : form}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function useAudit(filters: Filters): {
  events: AuditEvent[];
  loading: boolean;
  error: ApiError | null;
  reload(): void;
  more: (() => void) | null;
} {
  const key = `audit ${JSON.stringify(filters)}`;
  const first = useLoaded<AuditList>(
    key,
    (signal) => ask<AuditList>(`admin/events${parameters(filters, null)}`, { signal }),
    { topics: ["audit"], everyMs: 6000 },
  );
  const [older, setOlder] = useState<{ key: string; events: AuditEvent[]; cursor: string | null } | null>(null);
  const mine = older?.key === key ? older : null;
  const cursor = mine === null ? (first.data?.next_cursor ?? null) : mine.cursor;
  const more = (): void => {
    void ask<AuditList>(`admin/events${parameters(filters, cursor)}`).then((page) =>
      setOlder({ key, events: [...(mine?.events ?? []), ...page.events], cursor: page.next_cursor }),
    );
  };
  return {
    events: [...(first.data?.events ?? []), ...(mine?.events ?? [])].filter((event) => matches(event, filters)),
    loading: first.data === null && first.error === null,
    error: first.data === null ? first.error : null,
    reload: first.reload,
    more: cursor === null ? null : more,
  };
}

function AuditFilters({ filters, events }: { filters: Filters; events: AuditEvent[] }): ReactNode {
  const names = (pick: (event: AuditEvent) => string | null | undefined, now: string): string[] =>
    [...new Set([...events.map((event) => pick(event) ?? ""), now])].filter((name) => name !== "").sort();
  const actors = names((event) => event.actor, filters.actor);
  const any = (list: string[]): [string, string][] => [
    ["", "any"],
    ...list.map((name): [string, string] => [name, name.replaceAll("_", " ")]),
  ];
  const set =
    (name: keyof Filters) =>
    (value: string): void =>
      setQuery({ [name]: value });
  return (
    <div className="filters">
      <Select
        label="app"
        value={filters.app}
        options={any(names((event) => event.app_name, filters.app))}
        onPick={set("app")}
      />
      <Select label="what" value={filters.event} options={any(EVENTS)} onPick={set("event")} />
      {actors.length > 0 ? (
        <Select label="who" value={filters.actor} options={any(actors)} onPick={set("actor")} />
      ) : null}
      <Select
        label="since"
        value={filters.since}
        options={[["", "ever"], ...Object.keys(SPANS).map((name) => [name, name.replace(/(\d+)/, "$1 ")] as const)]}
        onPick={set("since")}
      />
      <input
        type="search"
        value={filters.session}
        placeholder="Session’s id"
        aria-label="Session"
        onChange={(event) => set("session")(event.target.value)}
      />
    </div>
  );
}

function AuditTable({ events }: { events: AuditEvent[] }): ReactNode {
  if (events.length === 0) return <Empty icon="audit" title="No lines like that." />;
  return (
    <div className="table-card" tabIndex={0} role="region" aria-label="Audit">
      <table className="list">
        <thead>
          <tr>
            <th>When</th>
            <th>What</th>
            <th>App</th>
            <th>More</th>
            <th>Who</th>
            <th>Session</th>
          </tr>
        </thead>
        <tbody>
          {events.map((event, at) => (
            <Row key={`${event.at} ${at}`} event={event} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function AuditPage(): ReactNode {
  useTitle("Audit");
  const { query: from } = useStore(route);
  const get = (name: string): string => from.get(name) ?? "";
  const filters: Filters = {
    app: get("app"),
    event: get("event"),
    actor: get("actor"),
    session: get("session"),
    since: get("since"),
  };
  const audit = useAudit(filters);
  const curl = `curl -H "Authorization: Bearer $ADMIN" '${address(`admin/events${parameters(filters, null)}`)}'`;
  return (
    <>
      <PageHead title="Audit">
        <FindButton />
      </PageHead>
      <AuditFilters filters={filters} events={audit.events} />
      {audit.error ? (
        <Refusal error={audit.error} onRetry={audit.reload} />
      ) : audit.loading ? (
        <Outline rows={8} />
      ) : (
        <AuditTable events={audit.events} />
      )}
      <div className="row after-list">
        {audit.more ? <Button onClick={audit.more}>Load more</Button> : null}
        <span className="grow" />
        <Button
          icon="download"
          onClick={() => {
            void save("csv", filters);
          }}
        >
          CSV
        </Button>
        <Button
          icon="download"
          onClick={() => {
            void save("jsonl", filters);
          }}
        >
          JSON lines
        </Button>
        <CopyButton text={curl} label="Copy as curl" />
      </div>
    </>
  );
}
