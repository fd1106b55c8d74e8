// Runs: one prompt, one answer. Newest first.
import { useState, type ReactNode } from "react";
import { ApiError, address, ask, gatewayNow, query } from "../api/client";
import type { Run, RunList } from "../api/types";
import { bytes, clock, count, dated, duration, money, tokens } from "../model/numbers";
import { identity } from "../state/keep";
import { changed, useLoaded } from "../state/load";
import { go, route, setQuery } from "../state/route";
import { useStore } from "../state/store";
import { adviceFor } from "../words";
import { At, Button, CopyButton, Empty, Outline, PageHead, Refusal, Said, Segments, Select } from "../parts/basic";
import { useTitle } from "../parts/frame";
import { useKeys } from "../parts/keys";
import { FindButton } from "../parts/palette";
import { runStateOf, StateMark } from "../parts/state";
import { saveText } from "../parts/save";

const PAGE = 100;
const SPANS: Record<string, number> = { "1h": 3600, "24h": 86_400, "7d": 7 * 86_400, "30d": 30 * 86_400 };

/** A length such as "24h", or unix seconds. */
const sinceOf = (text: string): number | null =>
  SPANS[text] !== undefined
    ? Math.floor(gatewayNow() - SPANS[text])
    : text === ""
      ? null
      : Number.parseInt(text, 10) || null;

interface Filters {
  app: string;
  state: string;
  agent: string;
  since: string;
  until: string;
  outcome: string;
  slower: string;
}

const pathOf = (owner: boolean): string => (owner ? "admin/runs" : "runs");

function matches(run: Run, filters: Filters): boolean {
  if (filters.state !== "" && run.state !== filters.state) return false;
  if (filters.agent !== "" && run.agent !== filters.agent) return false;
  if (filters.outcome !== "" && run.outcome !== filters.outcome) return false;
  return filters.slower === "" || (run.duration_ms ?? 0) >= Number(filters.slower);
}

function parameters(owner: boolean, filters: Filters, cursor: string | null): string {
  return query({
    limit: PAGE,
    app: owner ? filters.app : "",
    since: sinceOf(filters.since),
    until: sinceOf(filters.until),
    state: filters.state,
    agent: filters.agent,
    outcome: filters.outcome,
    min_ms: filters.slower,
    cursor,
  });
}

async function cancelRun(run: Run, owner: boolean): Promise<void> {
  await ask(`runs/${encodeURIComponent(run.run_id)}/cancel`, { method: "POST", app: owner ? run.app_name : null });
  changed("runs");
}

function Row({ run, owner, current }: { run: Run; owner: boolean; current: boolean }): ReactNode {
  return (
    <tr aria-current={current ? "true" : undefined}>
      <td className="num">
        <a
          href={`#/runs/${run.run_id}${location.hash.includes("?") ? location.hash.slice(location.hash.indexOf("?")) : ""}`}
        >
          {clock(run.started_at, true)}
        </a>
      </td>
      <td>
        <StateMark
          state={runStateOf(run.state)}
          word={run.state === "failed" ? (run.outcome ?? "failed") : undefined}
        />
      </td>
      {owner ? (
        <td>
          <Said text={run.app_name} />
        </td>
      ) : null}
      <td>
        {run.agent}
        {run.model ? (
          <span className="dim">
            , <Said text={run.model} />
          </span>
        ) : null}
      </td>
      <td className="n">{duration(run.duration_ms)}</td>
      <td className="n">{tokens(run.usage?.input_tokens)}</td>
      <td className="n">{tokens(run.usage?.output_tokens)}</td>
      <td className="n">{money(run.cost_usd)}</td>
      <td className="n">{bytes(run.prompt_bytes)}</td>
      <td className="n">{bytes(run.result_bytes)}</td>
      <td className="n">
        {run.state === "running" ? (
          <Button
            onClick={() => {
              void cancelRun(run, owner);
            }}
          >
            Cancel
          </Button>
        ) : null}
      </td>
    </tr>
  );
}

const STATES = [
  ["", "All"],
  ["running", "Running"],
  ["failed", "Failed"],
] as const;

function Bar({ filters, owner, runs }: { filters: Filters; owner: boolean; runs: Run[] }): ReactNode {
  const names = (pick: (run: Run) => string | null, now: string): [string, string][] => [
    ["", "any"],
    ...[...new Set([...runs.map(pick), now])]
      .filter((name): name is string => name !== null && name !== "")
      .sort()
      .map((name): [string, string] => [name, name]),
  ];
  const set =
    (name: keyof Filters) =>
    (value: string): void =>
      setQuery({ [name]: value, ...(name === "since" ? { until: null } : {}) });
  const fixed = filters.since !== "" && SPANS[filters.since] === undefined;
  return (
    <div className="filters">
      <Segments label="State" value={filters.state} options={STATES} onPick={set("state")} />
      {owner ? (
        <Select
          label="app"
          value={filters.app}
          options={names((run) => run.app_name, filters.app)}
          onPick={set("app")}
        />
      ) : null}
      <Select
        label="agent"
        value={filters.agent}
        options={names((run) => run.agent, filters.agent)}
        onPick={set("agent")}
      />
      <Select
        label="outcome"
        value={filters.outcome}
        options={names((run) => run.outcome, filters.outcome)}
        onPick={set("outcome")}
      />
      <Select
        label="slower than"
        value={filters.slower}
        options={[
          ["", "any"],
          ["1000", "1 s"],
          ["10000", "10 s"],
          ["60000", "1 m"],
          ["600000", "10 m"],
        ]}
        onPick={set("slower")}
      />
      <Select
        label="since"
        value={filters.since}
        options={[
          ["", "ever"],
          ["1h", "1 h"],
          ["24h", "24 h"],
          ["7d", "7 d"],
          ["30d", "30 d"],
          ...(fixed ? [[filters.since, dated(Number(filters.since), gatewayNow())] as const] : []),
        ]}
        onPick={set("since")}
      />
    </div>
  );
}

function csvOf(runs: Run[]): string {
  const names = [
    "run_id",
    "app_name",
    "agent",
    "model",
    "state",
    "outcome",
    "started_at",
    "duration_ms",
    "cost_usd",
  ] as const;
  // A cell that a spreadsheet would take for a formula gets an apostrophe.
  const cell = (value: unknown): string => {
    const text = String(value ?? "");
    return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  return `${names.join(",")}\r\n${runs.map((run) => names.map((name) => cell(run[name])).join(",")).join("\r\n")}\r\n`;
}

function readFilters(from: URLSearchParams): Filters {
  const get = (name: string): string => from.get(name) ?? "";
  return {
    app: get("app"),
    state: get("state"),
    agent: get("agent"),
    since: get("since"),
    until: get("until"),
    outcome: get("outcome"),
    slower: get("slower"),
  };
}

interface Loading {
  runs: Run[];
  all: Run[];
  loading: boolean;
  error: ApiError | null;
  reload(): void;
  more: (() => void) | null;
}

function useRuns(owner: boolean, filters: Filters): Loading {
  const key = `runs ${owner} ${JSON.stringify(filters)}`;
  const first = useLoaded<RunList>(
    key,
    (signal) => ask<RunList>(`${pathOf(owner)}${parameters(owner, filters, null)}`, { signal }),
    { topics: ["runs"], everyMs: 4000 },
  );
  const [older, setOlder] = useState<{ key: string; runs: Run[]; cursor: string | null } | null>(null);
  const mine = older?.key === key ? older : null;
  const cursor = mine === null ? (first.data?.next_cursor ?? null) : mine.cursor;
  const more = (): void => {
    void ask<RunList>(`${pathOf(owner)}${parameters(owner, filters, cursor)}`).then((page) =>
      setOlder({ key, runs: [...(mine?.runs ?? []), ...page.runs], cursor: page.next_cursor }),
    );
  };
  const all = [
    ...new Map([...(first.data?.runs ?? []), ...(mine?.runs ?? [])].map((run) => [run.run_id, run])).values(),
  ];
  return {
    all,
    runs: all.filter((run) => matches(run, filters)),
    loading: first.data === null && first.error === null,
    error: first.data === null ? first.error : null,
    reload: first.reload,
    more: cursor === null ? null : more,
  };
}

function RunTable({ runs, owner }: { runs: Run[]; owner: boolean }): ReactNode {
  const [at, setAt] = useState(-1);
  const current = runs[at];
  useKeys(
    {
      j: () => setAt(Math.min(runs.length - 1, at + 1)),
      k: () => setAt(Math.max(0, at - 1)),
      Enter: () => {
        if (current) go(`#/runs/${current.run_id}`);
      },
    },
    [runs, at],
  );
  return (
    <div className="table-card" tabIndex={0} role="region" aria-label="Runs">
      <table className="list">
        <thead>
          <tr>
            <th>Started</th>
            <th>State</th>
            {owner ? <th>App</th> : null}
            <th>Agent, model</th>
            <th className="n">Time</th>
            <th className="n">In</th>
            <th className="n">Out</th>
            <th className="n">Cost</th>
            <th className="n">Prompt</th>
            <th className="n">Result</th>
            <th>
              <span className="vh">Cancel</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run, index) => (
            <Row key={run.run_id} run={run} owner={owner} current={index === at} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function After({ loaded, curl }: { loaded: Loading; curl: string }): ReactNode {
  const { runs } = loaded;
  const lines = (): string => runs.map((run) => `${JSON.stringify(run)}\n`).join("");
  return (
    <div className="row after-list">
      {loaded.more ? <Button onClick={loaded.more}>Load more</Button> : null}
      <span className="grow" />
      {runs.length > 0 ? (
        <Button icon="download" onClick={() => saveText("runs.csv", "text/csv", csvOf(runs))}>
          CSV
        </Button>
      ) : null}
      {runs.length > 0 ? (
        <Button icon="download" onClick={() => saveText("runs.jsonl", "application/x-ndjson", lines())}>
          JSON lines
        </Button>
      ) : null}
      <CopyButton text={curl} label="Copy as curl" />
    </div>
  );
}

export function RunsPage({ id }: { id: string | null }): ReactNode {
  useTitle("Runs");
  const owner = useStore(identity)?.kind === "admin";
  const filters = readFilters(useStore(route).query);
  const loaded = useRuns(owner, filters);
  const { runs } = loaded;
  const curl = `curl -H "Authorization: Bearer $TOKEN" '${address(`${pathOf(owner)}${parameters(owner, filters, null)}`)}'`;
  return (
    <>
      <PageHead title="Runs" sub="one prompt, one answer">
        <FindButton />
      </PageHead>
      <Bar filters={filters} owner={owner} runs={loaded.all} />
      {loaded.error ? <Refusal error={loaded.error} onRetry={loaded.reload} /> : null}
      {loaded.loading ? (
        <Outline rows={6} />
      ) : runs.length === 0 ? (
        <NoRuns filters={filters} />
      ) : (
        <RunTable runs={runs} owner={owner} />
      )}
      <After loaded={loaded} curl={curl} />
      {id === null ? null : (
        <RunPanel id={id} known={loaded.all.find((run) => run.run_id === id) ?? null} owner={owner} />
      )}
    </>
  );
}

function NoRuns({ filters }: { filters: Filters }): ReactNode {
  const filtered = Object.values(filters).some((value) => value !== "");
  if (!filtered)
    return (
      <Empty icon="runs" title="No runs yet.">
        <p className="muted">
          An app asks with <code>POST /run</code>.
        </p>
        <a className="btn go" href="#/play">
          Try one in the playground
        </a>
      </Empty>
    );
  const what =
    filters.state === "failed" ? "No failed runs" : filters.state === "running" ? "Nothing runs" : "No runs like that";
  return (
    <Empty
      icon={filters.state === "failed" ? "tick" : "runs"}
      title={`${what}${filters.app ? ` of ${filters.app}` : ""}${
        SPANS[filters.since]
          ? ` in the last ${filters.since
              .replace("h", " hours")
              .replace("d", " days")
              .replace(/^1 hours/, "hour")}`
          : ""
      }.`}
    >
      <Button onClick={() => go("#/runs")}>Show all</Button>
    </Empty>
  );
}

/** Its own request where an app asks, or where the list has it not. */
function RunPanel({ id, known, owner }: { id: string; known: Run | null; owner: boolean }): ReactNode {
  const app = known?.app_name ?? null;
  const loaded = useLoaded<Run>(
    owner && app === null ? null : `run ${id}`,
    (signal) => ask<Run>(`runs/${encodeURIComponent(id)}`, { signal, app: owner ? app : null }),
    { everyMs: known?.state === "running" ? 2000 : 0 },
  );
  const run = loaded.data ?? known;
  const close = (): void =>
    go(`#/runs${location.hash.includes("?") ? location.hash.slice(location.hash.indexOf("?")) : ""}`);
  useKeys({ Escape: close }, []);
  return (
    <aside className="panel" aria-label="Run">
      <header>
        <h2>Run</h2>
        <span className="grow" />
        <Button kind="quiet" shortcut="Esc" onClick={close}>
          Close
        </Button>
      </header>
      {run === null ? (
        loaded.error ? (
          <Refusal error={loaded.error} />
        ) : (
          <Outline />
        )
      ) : (
        <RunFacts run={run} owner={owner} />
      )}
    </aside>
  );
}

function factsOf(run: Run): [string, ReactNode][] {
  const { usage } = run;
  const facts: [string, ReactNode][] = [
    ["App", run.app_name],
    ["Agent", `${run.agent}${run.model ? `, ${run.model}` : ""}`],
    ["Started", <At at={run.started_at} />],
    ["Waited", duration(run.waited_ms)],
    ["Ran", duration(run.duration_ms)],
    ["Stop reason", run.stop_reason ?? "–"],
    [
      "Exit",
      run.exit_signal !== null ? `signal ${run.exit_signal}` : run.exit_code !== null ? `code ${run.exit_code}` : "–",
    ],
    ["Tokens in", count(usage?.input_tokens)],
    ["Tokens out", count(usage?.output_tokens)],
    ["Read from cache", count(usage?.cache_read_tokens)],
    ["Written to cache", count(usage?.cache_write_tokens)],
    ["Cost", money(run.cost_usd)],
    ["Prompt", bytes(run.prompt_bytes)],
    ["Result", bytes(run.result_bytes)],
    ["Request", run.request_id ?? "–"],
    ["Instance", run.instance_id ?? "–"],
  ];
  return facts.filter(([, value]) => value !== "–");
}

function Kept({ name, value }: { name: string; value: unknown }): ReactNode {
  if (value === undefined || value === null) return null;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return (
    <>
      <h3>{name}</h3>
      <pre className="kept" tabIndex={0}>
        <Said text={text} />
      </pre>
    </>
  );
}

function RunFacts({ run, owner }: { run: Run; owner: boolean }): ReactNode {
  const advice = run.outcome && run.outcome !== "ok" ? adviceFor(run.outcome) : null;
  const curl = `curl -H "Authorization: Bearer $TOKEN" ${address(`runs/${run.run_id}`)}`;
  return (
    <>
      <p className="row">
        <StateMark state={runStateOf(run.state)} />
        <span className="grow" />
        {run.state === "running" ? (
          <Button
            onClick={() => {
              void cancelRun(run, owner);
            }}
          >
            Cancel
          </Button>
        ) : null}
      </p>
      {run.error ? (
        <Refusal error={new ApiError(502, run.outcome ?? "failed", run.error)} />
      ) : advice ? (
        <p className="muted">{advice}</p>
      ) : null}
      <dl className="facts">
        {factsOf(run).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <Kept name="Prompt" value={run.prompt} />
      <Kept name="Result" value={run.result} />
      <p className="row">
        <CopyButton text={run.run_id} label="Copy its id" />
        <CopyButton text={curl} label="Copy as curl" />
      </p>
    </>
  );
}
