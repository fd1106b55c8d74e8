// Ask an agent from here, and see the same call in three languages.
import { useState, type KeyboardEvent, type ReactNode } from "react";
import { ApiError, address, ask, patiently, refusal } from "../api/client";
import type { Agent, App } from "../api/types";
import { Markdown } from "../model/markdown";
import { duration, money, shortId, tokens } from "../model/numbers";
import { identity, keepDraft, readDraft } from "../state/keep";
import { changed, useLoaded } from "../state/load";
import { go, route, sessionLink, setQuery } from "../state/route";
import { useStore } from "../state/store";
import { Button, Card, CopyButton, Field, IconButton, PageHead, Refusal, Said, Segments, Select } from "../parts/basic";
import { AttachedList, sendTurn, useAttachments } from "../parts/composer";
import { needApp } from "../parts/first_steps";
import { useTitle } from "../parts/frame";
import { FindButton } from "../parts/palette";
import { codeFor, type Language } from "../model/snippets";

type Way = "answer" | "conversation";
type Form = "text" | "markdown" | "json" | "headers";
interface Given {
  ok: boolean;
  body: Record<string, unknown>;
  headers: [string, string][];
}
const EFFORTS = [
  ["", "–"],
  ["low", "low"],
  ["medium", "medium"],
  ["high", "high"],
  ["xhigh", "xhigh"],
  ["max", "max"],
] as const;

interface Asked {
  agent: string;
  model: string;
  effort: string;
  system: string;
  prompt: string;
}

export function bodyOf(asked: Asked): Record<string, unknown> {
  return {
    prompt: asked.prompt,
    agent: asked.agent,
    ...(asked.model ? { model: asked.model } : {}),
    ...(asked.effort ? { effort: asked.effort } : {}),
    ...(asked.system ? { system: asked.system } : {}),
  };
}

function Code({ way, asked }: { way: Way; asked: Asked }): ReactNode {
  const [language, setLanguage] = useState<Language>("curl");
  const { prompt, ...opening } = bodyOf({ ...asked, prompt: asked.prompt || "Hello" });
  const text =
    way === "answer"
      ? codeFor(language, address("run"), { prompt, ...opening })
      : codeFor(language, address("sessions"), opening);
  return (
    <Card
      title="The same from a program"
      aside={
        <Segments<Language>
          label="Language"
          value={language}
          onPick={setLanguage}
          options={[
            ["curl", "curl"],
            ["python", "Python"],
            ["typescript", "TypeScript"],
          ]}
        />
      }
    >
      <pre className="code" tabIndex={0}>
        <code>{text}</code>
      </pre>
      <div className="row">
        <span className="grow" />
        <CopyButton text={text} />
      </div>
    </Card>
  );
}

function Answer({ given }: { given: Given }): ReactNode {
  const [form, setForm] = useState<Form>("markdown");
  const { body } = given;
  const result = typeof body["result"] === "string" ? body["result"] : JSON.stringify(body["result"], null, 2);
  const usage = body["usage"] as { input_tokens?: number; output_tokens?: number } | undefined;
  return (
    <Card
      title={given.ok ? "Answer" : "It failed"}
      sub={
        <>
          done in {duration(Number(body["duration_ms"] ?? 0))}
          {usage ? (
            <>
              , {tokens(usage.input_tokens)} in, {tokens(usage.output_tokens)} out
            </>
          ) : null}
          {typeof body["cost_usd"] === "number" && body["cost_usd"] > 0 ? `, ${money(body["cost_usd"])}` : ""}
          {typeof body["run_id"] === "string" ? (
            <>
              , run{" "}
              <a className="link" href={`#/runs/${body["run_id"]}`}>
                {shortId(body["run_id"])}
              </a>
            </>
          ) : null}
        </>
      }
      aside={
        <Segments<Form>
          label="Show as"
          value={form}
          onPick={setForm}
          options={[
            ["markdown", "Markdown"],
            ["text", "Text"],
            ["json", "JSON"],
            ["headers", "Headers"],
          ]}
        />
      }
    >
      {form === "markdown" ? (
        <div className="md">
          <Markdown text={result ?? ""} grows={false} />
        </div>
      ) : (
        <pre className="code" tabIndex={0}>
          <code>
            <Said
              text={
                form === "text"
                  ? (result ?? "")
                  : form === "json"
                    ? JSON.stringify(body, null, 2)
                    : given.headers.map(([name, value]) => `${name}: ${value}`).join("\n")
              }
            />
          </code>
        </pre>
      )}
    </Card>
  );
}

function usePlay(
  owner: boolean,
  apps: App[],
  way: Way,
): {
  given: Given | null;
  error: ApiError | null;
  busy: boolean;
  run(asked: Asked, app: string, files: string[]): void;
  stop(): void;
} {
  const [given, setGiven] = useState<Given | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [abort, setAbort] = useState<AbortController | null>(null);
  const work = async (asked: Asked, app: string, files: string[], signal: AbortSignal): Promise<void> => {
    const actAs = owner ? app || (await needApp(apps)) : null;
    if (way === "conversation") {
      const { prompt, ...opening } = bodyOf(asked);
      const made = await ask<{ session_id: string }>("sessions", { method: "POST", app: actAs, json: opening, signal });
      await sendTurn(made.session_id, actAs, String(prompt), files);
      changed("sessions");
      go(sessionLink(made.session_id, actAs));
      return;
    }
    const response = await patiently("run", {
      method: "POST",
      app: actAs,
      signal,
      json: { ...bodyOf(asked), include: ["usage"], ...(files.length > 0 ? { files } : {}) },
    });
    if (!response.ok) throw await refusal(response);
    setGiven({
      ok: true,
      body: (await response.json()) as Record<string, unknown>,
      headers: [...response.headers.entries()],
    });
    changed("runs");
    changed("usage");
  };
  const run = (asked: Asked, app: string, files: string[]): void => {
    const control = new AbortController();
    setAbort(control);
    setError(null);
    setGiven(null);
    work(asked, app, files, control.signal)
      .catch((fault: unknown) => {
        if (!control.signal.aborted)
          setError(fault instanceof ApiError ? fault : new ApiError(0, "page_fault", String(fault)));
      })
      .finally(() => setAbort(null));
  };
  return { given, error, busy: abort !== null, run, stop: () => abort?.abort() };
}

interface BarOptions {
  owner: boolean;
  way: Way;
  asked: Asked;
  set(change: Partial<Asked>): void;
  agents: Agent[];
  apps: App[];
  app: string;
  setApp(app: string): void;
}

function PlayBar({ owner, way, asked, set, agents, apps, app, setApp }: BarOptions): ReactNode {
  const models = agents.find((agent) => agent.name === asked.agent)?.models ?? [];
  const others = apps.filter((each) => each.name !== "playground").map((each) => [each.name, each.name] as const);
  return (
    <div className="filters">
      <Segments<Way>
        label="Way"
        value={way}
        onPick={(value) => setQuery({ as: value === "answer" ? null : value })}
        options={[
          ["answer", "One answer"],
          ["conversation", "Conversation"],
        ]}
      />
      {owner ? <Select label="as app" value={app} options={[["", "playground"], ...others]} onPick={setApp} /> : null}
      <Select
        label="agent"
        value={asked.agent}
        options={agents.map((agent) => [agent.name, agent.name] as const)}
        onPick={(agent) => set({ agent, model: "" })}
      />
      {models.length > 0 ? (
        <Select
          label="model"
          value={asked.model}
          options={[["", "default"], ...models.map((model) => [model, model] as const)]}
          onPick={(model) => set({ model })}
        />
      ) : (
        <label className="select">
          <span>model</span>
          <input
            value={asked.model}
            placeholder="default"
            size={12}
            onChange={(event) => set({ model: event.target.value })}
          />
        </label>
      )}
      <Select label="effort" value={asked.effort} options={EFFORTS} onPick={(effort) => set({ effort })} />
    </div>
  );
}

/** Lets the reader pick files. */
function browse(add: (files: Iterable<File>) => void): void {
  const input = document.createElement("input");
  input.type = "file";
  input.multiple = true;
  input.onchange = () => add(input.files ?? []);
  input.click();
}

interface FormOptions {
  asked: Asked;
  set(change: Partial<Asked>): void;
  way: Way;
  play: ReturnType<typeof usePlay>;
  app: string;
  owner: boolean;
}

function PlayForm({ asked, set, way, play, app, owner }: FormOptions): ReactNode {
  const files = useAttachments(owner ? app || "playground" : null);
  const can = asked.prompt.trim() !== "" && !play.busy && files.files.every((file) => file.token !== null);
  const run = (): void => {
    if (can)
      play.run(
        asked,
        app,
        files.files.map((file) => file.token ?? ""),
      );
  };
  const key = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run();
    }
  };
  return (
    <div className="card play-in">
      <Field label="System prompt, optional">
        <textarea rows={2} value={asked.system} onChange={(event) => set({ system: event.target.value })} />
      </Field>
      <Field label="Prompt">
        <textarea
          rows={7}
          value={asked.prompt}
          onKeyDown={key}
          onChange={(event) => set({ prompt: event.target.value })}
          placeholder="What should the agent do?"
        />
      </Field>
      <AttachedList files={files.files} remove={files.remove} />
      <div className="row">
        <IconButton icon="clip" label="Attach a file" onClick={() => browse(files.add)} />
        <span className="grow" />
        {play.busy && way === "answer" ? (
          <Button icon="stop" onClick={play.stop}>
            Cancel
          </Button>
        ) : null}
        <Button kind="go" icon="up" shortcut="Ctrl ⏎" disabled={!can} onClick={run}>
          {play.busy ? "Runs" : way === "answer" ? "Run" : "Begin"}
        </Button>
      </div>
    </div>
  );
}

export function PlayPage(): ReactNode {
  useTitle("Playground");
  const owner = useStore(identity)?.kind === "admin";
  const { query } = useStore(route);
  const way: Way = query.get("as") === "conversation" ? "conversation" : "answer";
  const agents = useLoaded("agents", (signal) => ask<{ agents: Agent[] }>("agents", { signal }));
  const apps = useLoaded(owner ? "apps" : null, (signal) => ask<{ tokens: App[] }>("admin/tokens", { signal }));
  const [picked, setPicked] = useState<Asked>({
    agent: "",
    model: "",
    effort: "",
    system: "",
    prompt: readDraft("play"),
  });
  const [app, setApp] = useState("");
  const list = agents.data?.agents.filter((agent) => agent.present) ?? [];
  // With no agent logged in the built-in one answers, so that there is always something to see.
  const ready = list.find((agent) => ["key", "file", "in"].includes(agent.login));
  const asked = { ...picked, agent: picked.agent || (ready?.name ?? "demo") };
  const play = usePlay(owner, apps.data?.tokens ?? [], way);
  const set = (change: Partial<Asked>): void => {
    setPicked({ ...picked, ...change });
    if (change.prompt !== undefined) keepDraft("play", change.prompt);
  };
  return (
    <>
      <PageHead title="Playground">
        <FindButton />
      </PageHead>
      <PlayBar
        owner={owner}
        way={way}
        asked={asked}
        set={set}
        agents={list}
        apps={apps.data?.tokens ?? []}
        app={app}
        setApp={setApp}
      />
      <div className="play">
        <PlayForm asked={asked} set={set} way={way} play={play} app={app} owner={owner} />
        <Code way={way} asked={asked} />
      </div>
      {play.error ? <Refusal error={play.error} /> : null}
      {play.given ? <Answer given={play.given} /> : null}
    </>
  );
}
