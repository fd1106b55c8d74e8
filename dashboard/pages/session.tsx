// One session: the transcript, the rail beside it, and the composer.
import { useEffect, useMemo, useState, type ReactNode } from "react";
import { ApiError, patiently, refusal } from "../api/client";
import type { SessionState } from "../api/types";
import { openAsks, type Folded } from "../model/fold";
import { duration, money, tokens } from "../model/numbers";
import { Icon } from "../icons";
import { Conversation, type View } from "../state/conversation";
import { useNow } from "../state/clock";
import { identity, keepPrompt, readPrompts } from "../state/keep";
import { createStore, useStore } from "../state/store";
import { MODES } from "../words";
import { Button, Empty, LinkButton, Meter, Outline, Refusal, Said, Segments } from "../parts/basic";
import { Composer, sendTurn } from "../parts/composer";
import { useKeys } from "../parts/keys";
import { Menu } from "../parts/menu";
import { RawView } from "../parts/raw";
import { About, Files, Rail } from "../parts/rail";
import { sessionStateOf, StateChip, titleOf } from "../parts/state";
import { toEnd, Transcript, type Context } from "../parts/transcript";
import { saveSession } from "../parts/save";

const NOTHING = createStore<View | null>(null);
type Tab = "talk" | "files" | "about";

export function SessionPage({ id, app }: { id: string; app: string | null }): ReactNode {
  const [conversation, setConversation] = useState<Conversation | null>(null);
  useEffect(() => {
    const next = new Conversation(id, app);
    setConversation(next);
    return () => next.close();
  }, [id, app]);
  const view = useStore((conversation?.view ?? NOTHING) as typeof NOTHING);
  useEffect(() => {
    document.body.classList.add("has-composer");
    return () => document.body.classList.remove("has-composer");
  }, []);
  if (conversation === null || view === null || conversation.id !== id) return null;
  if (view.state === null) {
    return view.error === null ? <Outline rows={5} /> : <Missing error={view.error} />;
  }
  return <Open conversation={conversation} view={view} state={view.state} />;
}

function Missing({ error }: { error: ApiError }): ReactNode {
  if (error.status !== 404) return <Refusal error={error} />;
  return (
    <>
      <h1 className="vh">Session</h1>
      <Empty icon="sessions" title="There is no such session.">
        <p className="muted">It was deleted, or it belongs to another app.</p>
        <LinkButton to="#/sessions">All sessions</LinkButton>
      </Empty>
    </>
  );
}

function Elapsed({ state }: { state: SessionState }): ReactNode {
  const now = useNow();
  return state.turn_started_at ? <>, {duration(Math.max(1, now - state.turn_started_at) * 1000)}</> : null;
}

function Facts({ state, folded }: { state: SessionState; folded: Folded }): ReactNode {
  const context = state.context ?? folded.context;
  const usage = state.usage;
  const input =
    usage === null
      ? null
      : (usage.input_tokens ?? 0) + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0);
  return (
    <div className="s-meta" tabIndex={0} role="group" aria-label="Facts">
      <span>
        App{" "}
        <b>
          <Said text={state.app_name} />
        </b>
      </span>
      <span>
        Agent <b>{state.agent}</b>
        {state.model ? (
          <>
            , <Said text={state.model} />
          </>
        ) : null}
      </span>
      <span>
        Turn <b>{state.turn_count}</b>
        <Elapsed state={state} />
      </span>
      {state.cost_usd ? (
        <span>
          <b>{money(state.cost_usd)}</b>
        </span>
      ) : null}
      {usage === null ? null : (
        <span>
          <b>{tokens(input)}</b> in, <b>{tokens(usage.output_tokens)}</b> out
        </span>
      )}
      {context ? (
        <span className="ctx">
          Context <Meter used={context.used} of={context.size} label="Context" />
          <b>{tokens(context.used)}</b> of {tokens(context.size)}
        </span>
      ) : null}
    </div>
  );
}

interface HeadOptions {
  conversation: Conversation;
  state: SessionState;
  folded: Folded;
  raw: boolean;
  setRaw(raw: boolean): void;
  asks: boolean;
}

function Head({ conversation, state, folded, raw, setRaw, asks }: HeadOptions): ReactNode {
  const runs = state.busy || folded.running > 0;
  const open = state.closed_at === null;
  return (
    <header className="s-head">
      <nav className="crumb" aria-label="Path">
        <a href="#/sessions">Sessions</a>
        <Icon name="right" />
        <a href={`#/sessions?app=${encodeURIComponent(state.app_name)}`}>
          <Said text={state.app_name} />
        </a>
      </nav>
      <div className="s-title">
        <a className="icon-btn m-back" aria-label="Back to sessions" href="#/sessions">
          <Icon name="left" />
        </a>
        <h1 className="cut">
          <Said text={titleOf(state)} />
        </h1>
        <StateChip state={sessionStateOf(state, asks)} />
        <span className="grow" />
        {runs && open ? <CancelButton conversation={conversation} /> : null}
        <Button aria-pressed={raw} shortcut="R" onClick={() => setRaw(!raw)}>
          {raw ? "Transcript" : "Raw"}
        </Button>
        <Menu
          label="More"
          items={[
            ["Export as Markdown", () => saveSession(state, folded, conversation.raw, "md")],
            ["Export as JSON lines", () => saveSession(state, folded, conversation.raw, "jsonl")],
            [
              "Copy the curl line of its events",
              () => {
                void navigator.clipboard?.writeText(curlOf(state));
              },
            ],
            ...(open
              ? [
                  [
                    state.busy ? "Close the session, which ends its turn" : "Close the session",
                    () => {
                      void conversation.end();
                    },
                  ] as const,
                ]
              : []),
          ]}
        />
      </div>
      <Facts state={state} folded={folded} />
    </header>
  );
}

const curlOf = (state: SessionState): string =>
  `curl -H "Authorization: Bearer $TOKEN" '${new URL(`sessions/${state.session_id}/events?limit=1000`, document.baseURI).href}'`;

/** Asks once: the same button, pressed again. */
function CancelButton({ conversation }: { conversation: Conversation }): ReactNode {
  const [sure, setSure] = useState(false);
  useEffect(() => {
    if (!sure) return undefined;
    const timer = setTimeout(() => setSure(false), 4000);
    return () => clearTimeout(timer);
  }, [sure]);
  const press = (): void => {
    if (sure) void conversation.cancelTurn();
    setSure(!sure);
  };
  useKeys({ Escape: press }, [sure]);
  return (
    <Button icon="stop" kind={sure ? "bad" : "plain"} shortcut="Esc" onClick={press}>
      {sure ? "Really cancel?" : "Cancel turn"}
    </Button>
  );
}

interface OpenOptions {
  conversation: Conversation;
  view: View;
  state: SessionState;
}

/** What is typed here is shown at once, also where the gateway keeps no prompts. */
function useTyped(
  conversation: Conversation,
  state: SessionState,
  actAs: string | null,
): { typed: Record<string, string>; send(prompt: string, files: string[]): Promise<void> } {
  const [typed, setTyped] = useState(() => readPrompts(state.session_id));
  const send = async (prompt: string, files: string[]): Promise<void> => {
    await sendTurn(state.session_id, actAs, prompt, files);
    const turn = state.turn_count + 1;
    keepPrompt(state.session_id, turn, prompt);
    setTyped((now) => ({ ...now, [turn]: prompt }));
    toEnd();
    void conversation.refresh();
  };
  return { typed, send };
}

function Talk({
  conversation,
  view,
  state,
  raw,
  actAs,
}: OpenOptions & { raw: boolean; actAs: string | null }): ReactNode {
  const { folded } = view;
  const { typed, send } = useTyped(conversation, state, actAs);
  const keyed = openAsks(folded)[0]?.question.id ?? null;
  const context = useMemo<Context>(
    () => ({
      app: state.app_name,
      agent: state.agent,
      session: state.session_id,
      actAs,
      prompts: typed,
      keyedAsk: keyed,
    }),
    [state.app_name, state.agent, state.session_id, actAs, typed, keyed],
  );
  return (
    <>
      {raw ? (
        <RawView events={conversation.raw} version={view.version} />
      ) : (
        <Transcript folded={folded} version={view.version} context={context} />
      )}
      {!raw && folded.blocks.length === 0 ? <Empty icon="sessions" title="Nothing has been said yet." /> : null}
      {state.closed_at === null ? (
        <Composer
          place={state.session_id}
          app={actAs}
          busy={state.busy}
          waiting={state.turns_waiting ?? 0}
          mode={MODES[state.permission_mode ?? ""] ?? null}
          send={send}
        />
      ) : (
        <Closed state={state} actAs={actAs} />
      )}
    </>
  );
}

function Open({ conversation, view, state }: OpenOptions): ReactNode {
  const [raw, setRaw] = useState(false);
  const [tab, setTab] = useState<Tab>("talk");
  const mine = useStore(identity);
  const { folded } = view;
  const asks = openAsks(folded).length;
  const actAs = mine?.kind === "admin" ? state.app_name : null;
  useKeys({ r: () => setRaw((now) => !now), G: toEnd }, []);
  useEffect(() => {
    document.title = `${asks > 0 ? `(${asks}) ` : ""}${titleOf(state)}, clawdforge`;
  }, [asks, state]);
  return (
    <>
      <Head conversation={conversation} state={state} folded={folded} raw={raw} setRaw={setRaw} asks={asks > 0} />
      <div className="sess">
        <div className="talk">
          <Segments<Tab>
            className="m-tabs"
            label="View"
            value={tab}
            onPick={setTab}
            options={[
              ["talk", "Talk"],
              ["files", "Files"],
              ["about", "About"],
            ]}
          />
          {tab === "files" ? (
            <Files conversation={conversation} state={state} folded={folded} actAs={actAs} />
          ) : tab === "about" ? (
            <About state={state} folded={folded} />
          ) : (
            <Talk conversation={conversation} view={view} state={state} raw={raw} actAs={actAs} />
          )}
        </div>
        <Rail conversation={conversation} state={state} folded={folded} actAs={actAs} />
      </div>
    </>
  );
}

function Closed({ state, actAs }: { state: SessionState; actAs: string | null }): ReactNode {
  const [error, setError] = useState<ApiError | null>(null);
  const another = async (): Promise<void> => {
    const response = await patiently("sessions", {
      method: "POST",
      app: actAs,
      json: {
        agent: state.agent,
        ...(state.model ? { model: state.model } : {}),
        ...(state.permission_mode ? { permission_mode: state.permission_mode } : {}),
        meta: state.meta,
      },
    });
    if (!response.ok) {
      setError(await refusal(response));
      return;
    }
    const made = (await response.json()) as { session_id: string };
    location.hash = `#/sessions/${made.session_id}${actAs ? `?app=${encodeURIComponent(actAs)}` : ""}`;
  };
  return (
    <div className="closed-note card">
      <Icon name="ring" />
      <p className="grow">
        The session is closed
        {state.close_reason && state.close_reason !== "closed" ? `: ${state.close_reason.replaceAll("_", " ")}` : ""}.
        {state.delete_at ? ` It is deleted ${new Date(state.delete_at * 1000).toLocaleString("en-GB")}.` : ""}
      </p>
      <Button
        kind="go"
        onClick={() => {
          void another();
        }}
      >
        Start another like this
      </Button>
      {error ? <Refusal error={error} /> : null}
    </div>
  );
}
