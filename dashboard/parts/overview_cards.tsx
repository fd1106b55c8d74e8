// The cards below the overview's figures.
import { useRef, useState, type ReactNode } from "react";
import { askIfThere } from "../api/client";
import type { Agent, AuditList, UsageColumns } from "../api/types";
import { clock, count, duration, money, tokens } from "../model/numbers";
import { largest, type Series } from "../model/plots";
import { useLoaded } from "../state/load";
import { go, sessionLink } from "../state/route";
import { nameOf, RANGES, sum, tokensOf, total, type Range } from "../state/usage";
import { Ago, Card, Chip, Empty, Meter, Said, Segments } from "./basic";
import { AsTable, LogLines, StackedBars, type Columns } from "./plot";
import { StateIcon, type StateName } from "./state";

type Measure = "cost" | "tokens" | "calls";
const APPS_MAX = 5;
const MEASURES = {
  cost: (each: UsageColumns["series"][number]) => each.cost_usd,
  tokens: tokensOf,
  calls: (each: UsageColumns["series"][number]) => each.asks,
};
const WORDS = { cost: "Cost", tokens: "Tokens", calls: "Calls" };

const formatOf =
  (measure: Measure) =>
  (value: number): string =>
    measure === "cost" ? money(value) : measure === "tokens" ? tokens(Math.round(value)) : count(value);
const axisOf =
  (measure: Measure) =>
  (value: number): string =>
    measure === "cost"
      ? `$${value < 1 && value > 0 ? value.toFixed(2).replace(/0$/, "") : String(value)}`
      : tokens(value);

function useShown(data: UsageColumns, measure: Measure): Columns & { classes: string[]; series: Series[] } {
  const places = useRef<string[]>([]);
  const series: Series[] = data.series.map((each) => ({ name: nameOf(each), values: MEASURES[measure](each) }));
  const shown = largest(series, APPS_MAX, places.current);
  places.current = shown.map((each) => each.name).filter((name) => name !== "other");
  return {
    times: data.times,
    step: data.step,
    series: shown,
    classes: shown.map((each, at) => (each.name === "other" ? "s6" : `s${at + 1}`)),
  };
}

/** `by`: what the series are, such as "app". */
export function ByApp({ data, range, by }: { data: UsageColumns; range: Range; by: string }): ReactNode {
  const [picked, setPicked] = useState<Measure | null>(null);
  const measure = picked ?? (sum(total(data, MEASURES.cost)) > 0 ? "cost" : "calls");
  const columns = useShown(data, measure);
  const { series, classes } = columns;
  const format = formatOf(measure);
  const label = `${WORDS[measure]} ${RANGES[range].each}, by ${by}. In all ${format(sum(series.flatMap((each) => each.values)))}.`;
  const pick = (time: number): void => go(`#/runs?since=${time}&until=${time + data.step}`);
  return (
    <Card
      className="c8"
      title={`${WORDS[measure]} by ${by}`}
      sub={RANGES[range].each + (measure === "cost" ? ", as the agents report it" : "")}
      aside={
        <Segments<Measure>
          label="Show"
          value={measure}
          onPick={setPicked}
          options={[
            ["cost", "Cost"],
            ["tokens", "Tokens"],
            ["calls", "Calls"],
          ]}
        />
      }
    >
      {series.length === 0 ? (
        <Empty icon="overview" title="Nothing in this time." />
      ) : (
        <div className="split">
          <figure className="fig">
            <StackedBars
              columns={columns}
              height={286}
              format={format}
              axis={axisOf(measure)}
              label={label}
              onPick={pick}
            />
          </figure>
          <div>
            <table className="legend">
              <thead>
                <tr>
                  <th>{by === "app" ? "App" : "Agent"}</th>
                  <th className="n">Tokens</th>
                  <th className="n">Cost</th>
                </tr>
              </thead>
              <tbody>
                {series.map((each, at) => (
                  <LegendRow
                    key={each.name}
                    name={each.name}
                    className={classes[at] ?? "s6"}
                    data={data}
                    names={series}
                    link={by === "app"}
                  />
                ))}
              </tbody>
            </table>
            <AsTable columns={columns} format={format} name={`${WORDS[measure]} by ${by}`} />
          </div>
        </div>
      )}
    </Card>
  );
}

function LegendRow({
  name,
  className,
  data,
  names,
  link,
}: {
  name: string;
  className: string;
  data: UsageColumns;
  names: Series[];
  link: boolean;
}): ReactNode {
  const rows =
    name === "other"
      ? data.series.filter((each) => !names.some((shown) => shown.name === nameOf(each) && shown.name !== "other"))
      : data.series.filter((each) => nameOf(each) === name);
  return (
    <tr>
      <td>
        <i className={`sw ${className}`} />
        {link && name !== "other" ? <a href={`#/apps/${encodeURIComponent(name)}`}>{name}</a> : name}
      </td>
      <td className="n muted">{tokens(rows.reduce((all, each) => all + sum(tokensOf(each)), 0))}</td>
      <td className="n">
        <b>{money(rows.reduce((all, each) => all + sum(each.cost_usd), 0))}</b>
      </td>
    </tr>
  );
}

const LOGINS: Record<string, { word: string; tone: "ok" | "ask" | "" }> = {
  not_needed: { word: "Built in", tone: "" },
  key: { word: "Has a key", tone: "ok" },
  file: { word: "Logged in", tone: "ok" },
  in: { word: "Logged in", tone: "ok" },
  missing: { word: "Not logged in", tone: "ask" },
  out: { word: "Not logged in", tone: "ask" },
  unknown: { word: "Login unknown", tone: "" },
};

function AgentRow({ agent }: { agent: Agent }): ReactNode {
  const login = LOGINS[agent.login] ?? { word: agent.login, tone: "" as const };
  const command = Array.isArray(agent.login_command) ? agent.login_command.join(" ") : agent.login_command;
  return (
    <div className="agent">
      <span className="av" aria-hidden="true">
        {agent.name.charAt(0).toUpperCase()}
      </span>
      <div>
        <div className="row">
          <span className="nm">{agent.name}</span>
          {agent.present ? (
            <Chip tone={login.tone} dot={login.tone !== ""}>
              {login.word}
            </Chip>
          ) : (
            <Chip>Not installed</Chip>
          )}
          <span className="grow" />
          <span className="dim num small">{agent.live ? `${agent.live} live` : agent.version}</span>
        </div>
        {agent.door ? <p className="fix t-ask">At its limit until {clock(agent.door.until)}</p> : null}
        {(agent.windows ?? [])
          .filter((window) => window.used !== null)
          .map((window) => (
            <div key={window.name} className="win">
              <span>{window.name}</span>
              <Meter used={window.used ?? 0} of={1} label={`${agent.name}, ${window.name}`} />
              <span>{Math.round(100 * (window.used ?? 0))} %</span>
            </div>
          ))}
        {agent.remedy ? (
          <p className="fix">{agent.remedy}</p>
        ) : agent.present && login.tone === "ask" && command ? (
          <p className="fix">
            Run <code>clawdforge agent login {agent.name}</code> on the gateway’s machine.
          </p>
        ) : null}
      </div>
    </div>
  );
}

export function Agents({ agents }: { agents: Agent[] }): ReactNode {
  const shown = [...agents].sort((a, b) => Number(b.present) - Number(a.present) || a.name.localeCompare(b.name));
  return (
    <Card
      className="c4"
      title="Agents"
      aside={
        <a className="dim small" href="#/settings/doctor">
          Check all
        </a>
      }
    >
      <div className="agents">
        {shown.slice(0, 6).map((agent) => (
          <AgentRow key={agent.name} agent={agent} />
        ))}
      </div>
    </Card>
  );
}

export function AnswerTimes({ data }: { data: UsageColumns }): ReactNode {
  const [series] = data.series;
  const lines = [
    { name: "p50", values: series?.p50_ms ?? [] },
    { name: "p90", values: series?.p90_ms ?? [] },
    { name: "p99", values: series?.p99_ms ?? [] },
  ];
  const now = lines
    .map((line) => `${line.name} ${duration([...line.values].reverse().find((value) => value !== null) ?? null)}`)
    .join(", ");
  return (
    <Card className="c4" title="Time to answer" sub="log scale">
      <LogLines times={data.times} step={data.step} lines={lines} height={246} label={`Time to answer. Now: ${now}.`} />
    </Card>
  );
}

export function Ends({ data }: { data: UsageColumns }): ReactNode {
  const asks = total(data, (series) => series.asks);
  const failed = total(data, (series) => series.failed);
  const cancelled = total(data, (series) => series.cancelled ?? []);
  const done = asks.map((value, at) => value - (failed[at] ?? 0) - (cancelled[at] ?? 0));
  const series = [
    { name: "done", values: done },
    { name: "cancelled", values: cancelled },
    { name: "failed", values: failed },
  ];
  const columns: Columns = { times: data.times, step: data.step, series, classes: ["s3", "s6", "s2"] };
  return (
    <Card className="c4" title="How it ended" sub={`${count(sum(asks))} runs and turns`}>
      {sum(asks) === 0 ? (
        <p className="dim small">Nothing was asked in this time.</p>
      ) : (
        <StackedBars
          columns={columns}
          height={196}
          format={count}
          axis={tokens}
          label={`Runs and turns by outcome: ${count(sum(done))} done, ${count(sum(failed))} failed.`}
          onPick={(time) => go(`#/runs?since=${time}&until=${time + data.step}`)}
        />
      )}
      <p className="ends">
        {series
          .filter((each) => sum(each.values) > 0)
          .map((each) => (
            <span key={each.name}>
              <i className={`sw ${each.name === "done" ? "s3" : each.name === "failed" ? "s2" : "s6"}`} />
              {count(sum(each.values))} {each.name}
            </span>
          ))}
        {sum(failed) > 0 ? (
          <a className="link small" href="#/runs?state=failed">
            See the failed ones
          </a>
        ) : null}
      </p>
    </Card>
  );
}

interface Line {
  icon: StateName;
  text: string;
  right: string;
}

function lineOf(event: AuditList["events"][number]): Line {
  const meta = event.meta;
  const state = String(meta["state"] ?? "");
  if (event.event === "turn") {
    const failed = state === "failed";
    return {
      icon: failed ? "failed" : state === "cancelled" || meta["stop_reason"] === "cancelled" ? "cancelled" : "done",
      text: `turn ${String(meta["turn_index"] ?? "")} ${failed ? `failed: ${String(meta["error"] ?? meta["code"] ?? "")}` : "done"}`,
      right: duration(typeof meta["duration_ms"] === "number" ? meta["duration_ms"] : null),
    };
  }
  if (event.event === "permission")
    return {
      icon: meta["decision"] === "allow" ? "done" : "cancelled",
      text: `${meta["decision"] === "allow" ? "allowed" : String(meta["decision"])}: ${String(meta["kind"] ?? "")}`,
      right: `by ${String(meta["by"] ?? "")}`,
    };
  const words: Record<string, [StateName, string]> = {
    create: ["ready", "opened a session"],
    create_failed: ["failed", `could not open a session: ${String(meta["error"] ?? "")}`],
    close: ["closed", "closed a session"],
    sweep_close: ["asleep", "a session was closed after it was idle"],
    hard_delete: ["closed", "a session was deleted"],
    cancel: ["cancelled", "cancelled a turn"],
    interrupted: ["interrupted", "a turn was cut off by the gateway’s end"],
    token_mint: ["ready", "got its token"],
    token_rotate: ["ready", "got another token"],
    token_revoke: ["closed", "lost its token"],
    token_change: ["ready", "has other settings"],
    sign_in: ["ready", "a browser signed in"],
    sign_in_failed: ["failed", "a sign-in failed"],
    sign_out: ["closed", "a browser signed out"],
  };
  const [icon, text] = words[event.event] ?? ["ready", event.event.replaceAll("_", " ")];
  return { icon, text, right: "" };
}

const JUST_NOW = 8;

export function JustNow(): ReactNode {
  const { data } = useLoaded(
    "just now",
    (signal) => askIfThere<AuditList>(`admin/events?limit=${JUST_NOW}`, { signal }),
    { topics: ["audit", "sessions"], everyMs: 5000 },
  );
  if (data === null) return null;
  return (
    <Card
      className="c8"
      title="Just now"
      sub="newest first"
      aside={
        <a className="dim small" href="#/audit">
          All in the audit
        </a>
      }
    >
      {data.events.length === 0 ? <p className="dim small">Nothing has happened yet.</p> : null}
      <ul className="feed">
        {data.events.map((event, at) => {
          const line = lineOf(event);
          const name = (
            <>
              <span className="app">
                <Said text={event.app_name ?? "gateway"} />
              </span>{" "}
              <Said text={line.text} />
            </>
          );
          return (
            <li key={`${event.at}-${at}-${event.session_id}`}>
              <time dateTime={new Date(event.at * 1000).toISOString()}>
                {clock(event.at)}
                <span className="sec">:{String(new Date(event.at * 1000).getSeconds()).padStart(2, "0")}</span>
              </time>
              <StateIcon state={line.icon} />
              {event.session_id ? (
                <a className="cut" href={sessionLink(event.session_id, event.app_name)}>
                  {name}
                </a>
              ) : (
                <span className="cut">{name}</span>
              )}
              <span className="r">{line.right}</span>
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

export function Since({ at }: { at: number }): ReactNode {
  return <Ago at={at} />;
}
