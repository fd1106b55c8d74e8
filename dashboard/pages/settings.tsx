// Read only, on purpose: what a click can change, a hostile page could change. The file is the one truth.
import { useEffect, useState, type ReactNode } from "react";
import { ask, askIfThere, signOut } from "../api/client";
import type { Agent } from "../api/types";
import { Icon } from "../icons";
import { facts, learn } from "../state/facts";
import { identity, lettersAreOn, setLetters } from "../state/keep";
import { changed, useLoaded } from "../state/load";
import { go } from "../state/route";
import { useStore } from "../state/store";
import { nextTheme, theme } from "../state/theme";
import { Ago, Button, Card, Chip, CopyButton, Empty, Outline, PageHead, Refusal, Said, Segments } from "../parts/basic";
import { useTitle } from "../parts/frame";
import { FindButton } from "../parts/palette";

type Tab = "doctor" | "configuration" | "agents" | "browsers" | "about";
interface Finding {
  id: string;
  state: string;
  title: string;
  detail: string;
  remedy?: string | null;
  checked_at?: number;
}
interface Setting {
  key: string;
  value: string;
  source: string;
  about?: string;
}
interface Browser {
  id: string;
  name: string;
  address?: string | null;
  created_at: number;
  last_seen_at: number;
  kind?: string;
  app?: string | null;
  is_this_one?: boolean;
}

const isBad = (finding: Finding): boolean =>
  finding.state !== "ok" && finding.state !== "skipped" && finding.state !== "info";

function FindingRow({ finding }: { finding: Finding }): ReactNode {
  const isOk = finding.state === "ok";
  return (
    <li>
      <Icon
        name={isOk ? "tick" : isBad(finding) ? "warn" : "bar"}
        className={isOk ? "t-ok" : isBad(finding) ? "t-ask" : "dim"}
        label={finding.state}
      />
      <b>
        <Said text={finding.title} />
      </b>
      <span className="grow">
        <Said text={finding.detail} />
        {finding.remedy ? (
          <span className="remedy">
            <Said text={finding.remedy} /> <CopyButton quiet text={finding.remedy} />
          </span>
        ) : null}
      </span>
    </li>
  );
}

function OnTheMachine({ title, command }: { title: string; command: string }): ReactNode {
  return (
    <Card title={title}>
      <p className="muted">On the gateway’s machine:</p>
      <div className="command">
        <code>{command}</code>
        <CopyButton quiet text={command} />
      </div>
    </Card>
  );
}

function Doctor(): ReactNode {
  const { data, error, reload } = useLoaded("doctor", (signal) =>
    askIfThere<{ checks?: Finding[]; findings?: Finding[] }>("admin/doctor", { signal }),
  );
  const [busy, setBusy] = useState(false);
  const list = data?.checks ?? data?.findings ?? null;
  useEffect(() => {
    if (list !== null) learn({ findings: list.filter(isBad).length });
  }, [list]);
  const again = (): void => {
    setBusy(true);
    ask("admin/doctor", { method: "POST" })
      .catch(() => undefined)
      .finally(() => {
        setBusy(false);
        reload();
      });
  };
  if (error) return <Refusal error={error} onRetry={reload} />;
  if (list === null) return <OnTheMachine title="Doctor" command="clawdforge doctor" />;
  const checked = list[0]?.checked_at;
  return (
    <Card
      title="Doctor"
      sub={
        checked ? (
          <>
            checked <Ago at={checked} />
          </>
        ) : (
          ""
        )
      }
      aside={
        <Button disabled={busy} onClick={again}>
          {busy ? "Checks" : "Check again"}
        </Button>
      }
    >
      <ul className="checks">
        {list.map((finding) => (
          <FindingRow key={finding.id} finding={finding} />
        ))}
      </ul>
    </Card>
  );
}

function SettingRow({ setting }: { setting: Setting }): ReactNode {
  return (
    <tr>
      <td className="mono small">{setting.key}</td>
      <td className="main-cell">
        <span className="cut block mono small" title={setting.value}>
          <Said text={setting.value} />
        </span>
      </td>
      <td className="dim">
        <Said text={setting.source} />
      </td>
      <td>
        <CopyButton quiet text={`${setting.key} = ${setting.value}`} label={`Copy ${setting.key} as TOML`} />
      </td>
    </tr>
  );
}

function Configuration(): ReactNode {
  const { data, error, reload } = useLoaded("config", (signal) =>
    askIfThere<{ keys: Setting[] }>("admin/config", { signal }),
  );
  const [filter, setFilter] = useState("");
  if (error) return <Refusal error={error} onRetry={reload} />;
  const list = data?.keys ?? null;
  if (list === null) return <OnTheMachine title="Configuration" command="clawdforge config" />;
  const found = list.filter((setting) => setting.key.includes(filter.toLowerCase()));
  const search = (
    <input
      type="search"
      value={filter}
      placeholder="Filter"
      aria-label="Filter the settings"
      onChange={(event) => setFilter(event.target.value)}
    />
  );
  return (
    <Card title="Configuration" sub="read only: the file is the truth" aside={search}>
      <div className="table-card flat" tabIndex={0} role="region" aria-label="Settings in force">
        <table className="list">
          <thead>
            <tr>
              <th>Key</th>
              <th>Value</th>
              <th>From</th>
              <th>
                <span className="vh">Copy</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {found.map((setting) => (
              <SettingRow key={setting.key} setting={setting} />
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function AgentList(): ReactNode {
  const { data, error } = useLoaded("agents", (signal) => ask<{ agents: Agent[] }>("agents", { signal }));
  if (error) return <Refusal error={error} />;
  if (data === null) return <Outline />;
  return (
    <Card title="Agents">
      <ul className="checks">
        {data.agents.map((agent) => (
          <li key={agent.name}>
            <Icon
              name={agent.present ? "tick" : "bar"}
              className={agent.present ? "t-ok" : "dim"}
              label={agent.present ? "installed" : "not installed"}
            />
            <b>{agent.name}</b>
            <span className="grow">
              {agent.present ? (
                <>
                  {agent.version || "version unknown"}, by {agent.protocol}
                </>
              ) : (
                <span className="dim">not installed</span>
              )}
            </span>
            <Chip
              tone={
                ["key", "file", "in"].includes(agent.login)
                  ? "ok"
                  : agent.login === "missing" && agent.present
                    ? "ask"
                    : ""
              }
            >
              {agent.login.replaceAll("_", " ")}
            </Chip>
          </li>
        ))}
      </ul>
      <p className="dim small">
        One real question to an agent: <code>clawdforge agent check NAME</code>
      </p>
    </Card>
  );
}

function Browsers(): ReactNode {
  const { data, error, reload } = useLoaded(
    "browsers",
    (signal) => askIfThere<{ browsers: Browser[] }>("admin/browsers", { signal }),
    { topics: ["browsers"] },
  );
  const end = (browser: Browser): void => {
    void ask(`admin/browsers/${encodeURIComponent(browser.id)}`, { method: "DELETE" }).finally(() =>
      changed("browsers"),
    );
  };
  if (error) return <Refusal error={error} onRetry={reload} />;
  return (
    <Card
      title="Browsers"
      aside={
        <Button
          icon="out"
          onClick={() => {
            void signOut();
          }}
        >
          Sign out here
        </Button>
      }
    >
      {data === null ? (
        <p className="muted">Signing out ends this browser’s token.</p>
      ) : (
        <ul className="checks">
          {data.browsers.map((browser) => (
            <li key={browser.id}>
              <Icon name="screen" />
              <b>
                <Said text={browser.name} />
              </b>
              <span className="grow muted">
                {browser.address ? `${browser.address}, ` : ""}signed in <Ago at={browser.created_at} />, last seen{" "}
                <Ago at={browser.last_seen_at} />
              </span>
              {browser.is_this_one ? (
                <Chip tone="live">this one</Chip>
              ) : (
                <Button onClick={() => end(browser)}>Sign out</Button>
              )}
            </li>
          ))}
        </ul>
      )}
    </Card>
  );
}

function About(): ReactNode {
  const known = useStore(facts);
  const looks = useStore(theme);
  const letters = useStore(lettersAreOn);
  const mine = useStore(identity);
  return (
    <Card title="About">
      <dl className="facts">
        <div>
          <dt>Version</dt>
          <dd>{known.version}</dd>
        </div>
        <div>
          <dt>Address</dt>
          <dd>{location.host}</dd>
        </div>
        <div>
          <dt>Signed in as</dt>
          <dd>{mine?.kind === "admin" ? "the owner" : mine?.name}</dd>
        </div>
        <div>
          <dt>Theme</dt>
          <dd>
            <Button onClick={nextTheme}>
              {looks === "system" ? "As the system" : looks === "light" ? "Light" : "Dark"}
            </Button>
          </dd>
        </div>
        <div>
          <dt>Single letters as keys</dt>
          <dd>
            <input
              type="checkbox"
              aria-label="Single letters act as keys"
              checked={letters}
              onChange={(event) => setLetters(event.target.checked)}
            />
          </dd>
        </div>
        <div>
          <dt>API</dt>
          <dd>
            <a className="link" href="openapi.json">
              openapi.json
            </a>
          </dd>
        </div>
      </dl>
      <p className="row">
        <Button
          icon="out"
          onClick={() => {
            void signOut();
          }}
        >
          Sign out
        </Button>
      </p>
    </Card>
  );
}

export function SettingsPage({ tab }: { tab: string | null }): ReactNode {
  useTitle("Settings");
  const owner = useStore(identity)?.kind === "admin";
  const tabs: readonly (readonly [Tab, string])[] = owner
    ? [
        ["doctor", "Doctor"],
        ["configuration", "Configuration"],
        ["agents", "Agents"],
        ["browsers", "Browsers"],
        ["about", "About"],
      ]
    : [
        ["agents", "Agents"],
        ["about", "About"],
      ];
  const shown = tabs.find(([name]) => name === tab)?.[0] ?? tabs[0]?.[0] ?? "about";
  return (
    <>
      <PageHead title="Settings">
        <FindButton />
      </PageHead>
      <div className="filters">
        <Segments<Tab> label="Part" value={shown} options={tabs} onPick={(value) => go(`#/settings/${value}`)} />
      </div>
      <div className="narrow-page">
        {shown === "doctor" ? (
          <Doctor />
        ) : shown === "configuration" ? (
          <Configuration />
        ) : shown === "agents" ? (
          <AgentList />
        ) : shown === "browsers" ? (
          <Browsers />
        ) : (
          <About />
        )}
      </div>
    </>
  );
}

/** What the bar at the bottom of a phone has no room for. */
export function MorePage(): ReactNode {
  useTitle("More");
  const owner = useStore(identity)?.kind === "admin";
  const places: [string, string][] = [
    ...(owner
      ? ([
          ["#/apps", "Apps and tokens"],
          ["#/audit", "Audit"],
        ] as [string, string][])
      : []),
    ["#/settings", "Settings"],
  ];
  return (
    <>
      <h1 className="vh">More</h1>
      <ul className="more-list">
        {places.map(([to, name]) => (
          <li key={to}>
            <a href={to}>
              {name}
              <Icon name="right" />
            </a>
          </li>
        ))}
      </ul>
      <p className="row">
        <Button onClick={nextTheme} icon="moon">
          Theme
        </Button>
        <Button
          icon="out"
          onClick={() => {
            void signOut();
          }}
        >
          Sign out
        </Button>
      </p>
      {owner ? null : <Empty icon="apps" title="The rest is the owner’s." />}
    </>
  );
}
