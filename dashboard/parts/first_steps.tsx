// The first start: three steps with live ticks. They vanish when something has been asked.
import { useState, type ReactNode } from "react";
import { ApiError, ask } from "../api/client";
import type { Agent, App } from "../api/types";
import { Icon } from "../icons";
import { changed, useLoaded } from "../state/load";
import { Button, Card, LinkButton, Refusal, Said } from "./basic";

const TRIAL = "playground";

/** The app that the page asks as, where the owner has none of his own. */
export async function needApp(apps: App[]): Promise<string> {
  const [first] = apps;
  if (first !== undefined) return apps.find((app) => app.name === TRIAL)?.name ?? first.name;
  await ask("admin/tokens", { method: "POST", json: { name: TRIAL } });
  changed("apps");
  return TRIAL;
}

function Step({ done, title, children }: { done: boolean; title: string; children: ReactNode }): ReactNode {
  return (
    <li className={done ? "done" : ""}>
      <Icon name={done ? "tick" : "ring"} label={done ? "done" : "open"} />
      <div>
        <b>{title}</b>
        {children}
      </div>
    </li>
  );
}

export function FirstSteps({ agents }: { agents: Agent[] | null }): ReactNode {
  const apps = useLoaded("apps", (signal) => ask<{ tokens: App[] }>("admin/tokens", { signal }), { topics: ["apps"] });
  const [answer, setAnswer] = useState<string | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const list = apps.data?.tokens ?? [];
  const isIn = (agents ?? []).some((agent) => agent.present && ["key", "file", "in"].includes(agent.login));
  const tryIt = (): void => {
    setError(null);
    needApp(list)
      .then((app) =>
        ask<{ result: unknown }>("run", {
          method: "POST",
          app,
          json: { prompt: "Hello from the dashboard.", agent: "demo" },
        }),
      )
      .then(
        (said) => {
          setAnswer(String(said.result));
          changed("usage");
        },
        (fault: unknown) => setError(fault instanceof ApiError ? fault : new ApiError(0, "page_fault", String(fault))),
      );
  };
  return (
    <Card title="Three steps" sub="They vanish when they are done" className="steps-card">
      <ol className="first-steps">
        <Step done={list.length > 0} title="Make an app">
          <p className="muted">Each program that calls the gateway has its own token, limits and figures.</p>
          <LinkButton to="#/apps?new=1" icon="plus">
            New app
          </LinkButton>
        </Step>
        <Step done={answer !== null} title="Ask the demo agent">
          <p className="muted">It is built in, and needs no login.</p>
          {answer === null ? (
            <Button icon="runs" onClick={tryIt}>
              Ask it now
            </Button>
          ) : (
            <p>
              It says: “<Said text={answer} />”
            </p>
          )}
          {error ? <Refusal error={error} /> : null}
        </Step>
        <Step done={isIn} title="Log in an agent">
          <p className="muted">
            On the gateway’s machine: <code>clawdforge agent login claude</code>
          </p>
        </Step>
      </ol>
    </Card>
  );
}
