// The apps that may call, their limits, and their tokens, which are shown once.
import { useEffect, useState, type FormEvent, type ReactNode } from "react";
import { ApiError, address, ask, query } from "../api/client";
import type { App, UsageRow, UsageRows } from "../api/types";
import { count, money, plural } from "../model/numbers";
import { learn } from "../state/facts";
import { changed, useLoaded } from "../state/load";
import { go, route } from "../state/route";
import { useStore } from "../state/store";
import {
  Ago,
  At,
  Button,
  Card,
  Chip,
  CopyButton,
  Empty,
  Field,
  LinkButton,
  Meter,
  Outline,
  PageHead,
  Refusal,
} from "../parts/basic";
import { useTitle } from "../parts/frame";
import { FindButton } from "../parts/palette";

const DAY = 86_400;
const UNUSED_DAYS = 90;

export const problem = (fault: unknown): ApiError =>
  fault instanceof ApiError ? fault : new ApiError(0, "page_fault", String(fault));

const useRows = (days: number): Map<string, UsageRow> => {
  const { data } = useLoaded(
    `usage rows ${days}`,
    (signal) =>
      ask<UsageRows>(`admin/usage${query({ by: "app", from: Math.floor(Date.now() / 1000) - days * DAY })}`, {
        signal,
      }),
    { topics: ["usage"], everyMs: 30_000 },
  );
  return new Map((data?.rows ?? []).map((row) => [row.app ?? "", row]));
};

function Of({ used, max, label }: { used: number | undefined; max: number | null; label: string }): ReactNode {
  if (used === undefined) return <span className="dim">{max === null ? "–" : `at most ${max}`}</span>;
  return (
    <span className="of">
      <span>
        {count(used)}
        {max === null ? "" : ` of ${count(max)}`}
      </span>
      {max === null ? null : <Meter used={used} of={max} label={label} />}
    </span>
  );
}

function Row({
  app,
  day,
  month,
  current,
}: {
  app: App;
  day: UsageRow | undefined;
  month: UsageRow | undefined;
  current: boolean;
}): ReactNode {
  const old = (app.last_used_at ?? app.created_at) < Date.now() / 1000 - UNUSED_DAYS * DAY;
  const running = (app.runs_running ?? 0) + (app.runs_waiting ?? 0);
  return (
    <tr aria-current={current ? "true" : undefined}>
      <td className="main-cell">
        <a className="cut" href={`#/apps/${encodeURIComponent(app.name)}`}>
          {app.name}
        </a>
      </td>
      <td>
        {app.last_used_at === null ? <span className="dim">never</span> : <Ago at={app.last_used_at} />}
        {old ? (
          <>
            {" "}
            <Chip tone="ask">not used for {UNUSED_DAYS} d</Chip>
          </>
        ) : null}
      </td>
      <td>{running > 0 ? plural(running, "run") : <span className="dim">–</span>}</td>
      <td>
        <Of used={app.sessions_open} max={app.max_sessions} label={`${app.name}: sessions`} />
      </td>
      <td>
        <Of used={app.runs_running} max={app.max_runs} label={`${app.name}: runs`} />
      </td>
      <td className="n">{count(day?.asks ?? 0)}</td>
      <td className="n">{money(day?.cost_usd ?? 0)}</td>
      <td className="n">{money(month?.cost_usd ?? 0)}</td>
    </tr>
  );
}

function AppTable({ apps, name }: { apps: App[]; name: string | null }): ReactNode {
  const day = useRows(1);
  const month = useRows(30);
  return (
    <div className="table-card" tabIndex={0} role="region" aria-label="Apps">
      <table className="list apps-list">
        <thead>
          <tr>
            <th>App</th>
            <th>Last used</th>
            <th>Now</th>
            <th>Sessions</th>
            <th>Runs at once</th>
            <th className="n">Calls, 24 h</th>
            <th className="n">Cost, 24 h</th>
            <th className="n">Cost, 30 d</th>
          </tr>
        </thead>
        <tbody>
          {apps.map((app) => (
            <Row
              key={app.name}
              app={app}
              day={day.get(app.name)}
              month={month.get(app.name)}
              current={app.name === name}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NoApps(): ReactNode {
  return (
    <Empty icon="apps" title="No apps yet.">
      <p className="muted">Each program that calls the gateway has a token of its own.</p>
      <LinkButton kind="go" to="#/apps?new=1">
        New app
      </LinkButton>
    </Empty>
  );
}

export function AppsPage({ name }: { name: string | null }): ReactNode {
  useTitle("Apps and tokens");
  const { query: filters } = useStore(route);
  const { data, error, reload } = useLoaded("apps", (signal) => ask<{ tokens: App[] }>("admin/tokens", { signal }), {
    topics: ["apps"],
    everyMs: 10_000,
  });
  const apps = data?.tokens ?? [];
  useEffect(() => {
    if (data !== null) learn({ apps: data.tokens.length });
  }, [data]);
  const picked = apps.find((app) => app.name === name);
  const making = filters.get("new") !== null;
  return (
    <>
      <PageHead title="Apps and tokens" sub={data === null ? "" : plural(apps.length, "app")}>
        <LinkButton kind="go" icon="plus" to="#/apps?new=1">
          New app
        </LinkButton>
        <FindButton />
      </PageHead>
      {making ? <NewApp /> : null}
      {error && data === null ? <Refusal error={error} onRetry={reload} /> : null}
      {data === null ? (
        <Outline rows={5} />
      ) : apps.length > 0 ? (
        <AppTable apps={apps} name={name} />
      ) : making ? null : (
        <NoApps />
      )}
      {picked ? <OneApp key={picked.name} app={picked} /> : null}
      {name !== null && data !== null && !picked ? <Empty icon="apps" title={`There is no app ${name}.`} /> : null}
    </>
  );
}

interface Settings {
  max_sessions: string;
  max_runs: string;
  asks_per_minute: string;
  ip_cidrs: string;
  event_format: string;
  permission_mode_max: string;
  day_usd: string;
}

const BLANK: Settings = {
  max_sessions: "",
  max_runs: "",
  asks_per_minute: "",
  ip_cidrs: "",
  event_format: "",
  permission_mode_max: "",
  day_usd: "",
};

const isDayUsd = (budget: { window: string; unit: string }): boolean =>
  budget.window === "day" && budget.unit === "usd";

function settingsOf(app: App): Settings {
  const text = (value: number | null | undefined): string =>
    value === null || value === undefined ? "" : String(value);
  return {
    max_sessions: text(app.max_sessions),
    max_runs: text(app.max_runs),
    asks_per_minute: text(app.asks_per_minute),
    ip_cidrs: app.ip_cidrs.join(", "),
    event_format: app.event_format ?? "",
    permission_mode_max: app.permission_mode_max ?? "",
    day_usd: text(app.budgets?.find(isDayUsd)?.limit),
  };
}

function fieldsOf(now: Settings, before: Settings, app: App | null): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  const number = (text: string): number | null => (text.trim() === "" ? null : Number(text));
  for (const name of ["max_sessions", "max_runs", "asks_per_minute"] as const)
    if (now[name] !== before[name]) fields[name] = number(now[name]);
  for (const name of ["event_format", "permission_mode_max"] as const)
    if (now[name] !== before[name]) fields[name] = now[name] === "" ? null : now[name];
  if (now.ip_cidrs !== before.ip_cidrs)
    fields["ip_cidrs"] = now.ip_cidrs.split(/[\s,]+/).filter((range) => range !== "");
  if (now.day_usd !== before.day_usd) {
    const others = (app?.budgets ?? [])
      .filter((budget) => !isDayUsd(budget))
      .map(({ window, unit, limit }) => ({ window, unit, limit }));
    const budgets = [
      ...others,
      ...(now.day_usd.trim() === "" ? [] : [{ window: "day", unit: "usd", limit: Number(now.day_usd) }]),
    ];
    fields["budgets"] = budgets.length === 0 ? null : budgets;
  }
  return fields;
}

function SettingFields({
  value,
  set,
  error,
}: {
  value: Settings;
  set(next: Settings): void;
  error: ApiError | null;
}): ReactNode {
  const fault = (name: string): string | undefined =>
    error?.fields.find((field) => field.field.startsWith(name))?.message;
  const number = (
    name: "max_sessions" | "max_runs" | "asks_per_minute" | "day_usd",
    label: string,
    hint: string,
  ): ReactNode => (
    <Field label={label} hint={hint} error={fault(name === "day_usd" ? "budgets" : name)}>
      <input
        inputMode="decimal"
        value={value[name]}
        placeholder="no limit of its own"
        onChange={(event) => set({ ...value, [name]: event.target.value })}
      />
    </Field>
  );
  return (
    <div className="form-grid">
      {number("max_sessions", "Sessions at most", "open at the same time")}
      {number("max_runs", "Runs at most", "running and waiting")}
      {number("asks_per_minute", "Calls a minute", "runs and turns that may begin")}
      {number("day_usd", "Dollars a day", "a budget, in UTC days")}
      <Field label="Addresses" hint="ranges, with commas between them" error={fault("ip_cidrs")}>
        <input
          value={value.ip_cidrs}
          placeholder="from everywhere"
          onChange={(event) => set({ ...value, ip_cidrs: event.target.value })}
        />
      </Field>
      <Field label="Permissions at most" error={fault("permission_mode_max")}>
        <select
          value={value.permission_mode_max}
          onChange={(event) => set({ ...value, permission_mode_max: event.target.value })}
        >
          {[
            ["", "as the gateway says"],
            ["deny_all", "no tools"],
            ["approve_reads", "reading"],
            ["ask", "asking"],
            ["approve_all", "everything"],
          ].map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Events" error={fault("event_format")}>
        <select value={value.event_format} onChange={(event) => set({ ...value, event_format: event.target.value })}>
          {[
            ["", "as the gateway says"],
            ["acp", "acp"],
            ["simple", "simple"],
          ].map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      </Field>
    </div>
  );
}

/** A token, once. Leaving without having copied it asks. */
function TokenOnce({ name, token, done }: { name: string; token: string; done(): void }): ReactNode {
  useEffect(() => {
    const stay = (event: BeforeUnloadEvent): void => event.preventDefault();
    window.addEventListener("beforeunload", stay);
    return () => window.removeEventListener("beforeunload", stay);
  }, []);
  return (
    <Card title={`The token of ${name}`} className="token-once" sub="It is shown once, and never again.">
      <div className="command">
        <code className="token">{token}</code>
        <CopyButton text={token} />
      </div>
      <p className="muted">Try it:</p>
      <div className="command">
        <code>{`curl -H "Authorization: Bearer $TOKEN" ${address("whoami")}`}</code>
        <CopyButton
          quiet
          text={`curl -H "Authorization: Bearer ${token}" ${address("whoami")}`}
          label="Copy with the token"
        />
      </div>
      <div className="row">
        <span className="grow" />
        <Button kind="go" onClick={done}>
          I have it
        </Button>
      </div>
    </Card>
  );
}

function NewApp(): ReactNode {
  const [name, setName] = useState("");
  const [settings, setSettings] = useState(BLANK);
  const [made, setMade] = useState<{ name: string; token: string } | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const make = (event: FormEvent): void => {
    event.preventDefault();
    setError(null);
    ask<{ name: string; token: string }>("admin/tokens", {
      method: "POST",
      json: { name, ...fieldsOf(settings, BLANK, null) },
    }).then(
      (answer) => {
        setMade(answer);
        changed("apps");
      },
      (fault: unknown) => setError(problem(fault)),
    );
  };
  if (made)
    return (
      <TokenOnce
        name={made.name}
        token={made.token}
        done={() => {
          setMade(null);
          go(`#/apps/${made.name}`);
        }}
      />
    );
  return (
    <form className="card new-app" onSubmit={make} aria-label="New app">
      <header>
        <h2>New app</h2>
      </header>
      <Field
        label="Name"
        hint="a-z, 0-9, _ and -"
        error={error?.fields.find((field) => field.field === "name")?.message}
      >
        <input autoFocus value={name} onChange={(event) => setName(event.target.value)} placeholder="review-bot" />
      </Field>
      <details>
        <summary>Limits</summary>
        <SettingFields value={settings} set={setSettings} error={error} />
      </details>
      {error ? <Refusal error={error} /> : null}
      <div className="row">
        <span className="grow" />
        <Button kind="quiet" onClick={() => go("#/apps")}>
          Cancel
        </Button>
        <Button kind="go" type="submit" disabled={name === ""}>
          Make it
        </Button>
      </div>
    </form>
  );
}

function OneApp({ app }: { app: App }): ReactNode {
  const before = settingsOf(app);
  const [settings, setSettings] = useState(before);
  const [error, setError] = useState<ApiError | null>(null);
  const [token, setToken] = useState<string | null>(null);
  const fields = fieldsOf(settings, before, app);
  const save = (): void => {
    setError(null);
    ask<App>(`admin/tokens/${app.name}`, { method: "PATCH", json: fields }).then(
      () => changed("apps"),
      (fault: unknown) => setError(problem(fault)),
    );
  };
  if (token !== null) return <TokenOnce name={app.name} token={token} done={() => setToken(null)} />;
  return (
    <Card
      title={app.name}
      className="one-app"
      sub={
        <>
          made <At at={app.created_at} />
          {app.sha256_prefix ? (
            <>
              , token <code>{app.sha256_prefix}</code>…
            </>
          ) : null}
        </>
      }
      aside={
        <span className="row">
          <a className="btn" href={`#/sessions?app=${app.name}`}>
            Sessions
          </a>
          <a className="btn" href={`#/runs?app=${app.name}`}>
            Runs
          </a>
        </span>
      }
    >
      <SettingFields value={settings} set={setSettings} error={error} />
      {error ? <Refusal error={error} /> : null}
      <div className="row">
        <Rotate app={app} made={setToken} />
        <Revoke app={app} />
        <span className="grow" />
        <Button kind="go" disabled={Object.keys(fields).length === 0} onClick={save}>
          Save
        </Button>
      </div>
    </Card>
  );
}

function Rotate({ app, made }: { app: App; made(token: string): void }): ReactNode {
  const [sure, setSure] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const rotate = (): void => {
    ask<{ token: string }>(`admin/tokens/${app.name}/rotate`, { method: "POST" }).then(
      (answer) => {
        made(answer.token);
        changed("apps");
      },
      (fault: unknown) => setError(problem(fault)),
    );
  };
  return (
    <>
      {sure ? (
        <>
          <span className="muted small">The old one stops at once, and streams that are read with it end.</span>
          <Button kind="bad" onClick={rotate}>
            Make another token
          </Button>
          <Button kind="quiet" onClick={() => setSure(false)}>
            Leave it
          </Button>
        </>
      ) : (
        <Button onClick={() => setSure(true)}>New token</Button>
      )}
      {error ? <Refusal error={error} /> : null}
    </>
  );
}

/** The name must be typed: it ends all that the app has under way. */
function Revoke({ app }: { app: App }): ReactNode {
  const [typed, setTyped] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const revoke = (): void => {
    ask(`admin/tokens/${app.name}`, { method: "DELETE" }).then(
      () => {
        changed("apps");
        go("#/apps");
      },
      (fault: unknown) => setError(problem(fault)),
    );
  };
  if (typed === null) return <Button onClick={() => setTyped("")}>Revoke…</Button>;
  return (
    <span className="row revoke">
      <label className="small muted" htmlFor="revoke-name">
        Type {app.name}
        {app.sessions_open ? `; this closes ${plural(app.sessions_open, "session")}` : ""}
      </label>
      <input id="revoke-name" value={typed} onChange={(event) => setTyped(event.target.value)} />
      <Button kind="bad" disabled={typed !== app.name} onClick={revoke}>
        Revoke {app.name}
      </Button>
      <Button kind="quiet" onClick={() => setTyped(null)}>
        Leave it
      </Button>
      {error ? <Refusal error={error} /> : null}
    </span>
  );
}
