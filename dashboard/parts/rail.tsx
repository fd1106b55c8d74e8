// What stands beside a transcript: plan, turns, changed files, and what the session is.
import { useMemo, useState, type ReactNode } from "react";
import { ask, askBlob } from "../api/client";
import type { FileList, SessionFile, SessionState } from "../api/types";
import type { Folded } from "../model/fold";
import { Icon } from "../icons";
import { bytes, clock, count, duration, money, plural, shortId } from "../model/numbers";
import { changedFiles, type ToolCall } from "../model/tools";
import type { Conversation } from "../state/conversation";
import { useLoaded } from "../state/load";
import { At, Button, Card, CopyButton, Empty, Outline, Refusal, Said } from "./basic";
import { Counts } from "./diff_view";
import { Terminal } from "./steps";

interface Options {
  conversation: Conversation;
  state: SessionState;
  folded: Folded;
  actAs: string | null;
}

function* toolsOf(folded: Folded): Generator<ToolCall> {
  for (const block of folded.blocks) {
    if (block.kind === "tool") yield block.tool;
    if (block.kind === "look") yield* block.tools;
  }
}

function Plan({ folded }: { folded: Folded }): ReactNode {
  if (folded.plan.length === 0) return null;
  const done = folded.plan.filter((entry) => entry.status === "completed").length;
  return (
    <Card
      title="Plan"
      aside={
        <span className="dim num small">
          {done} of {folded.plan.length}
        </span>
      }
    >
      <ul className="plan">
        {folded.plan.map((entry, at) => {
          const state = entry.status === "completed" ? "done" : entry.status === "in_progress" ? "now" : "";
          return (
            <li key={at} className={state}>
              <Icon
                name={state === "done" ? "tick" : state === "now" ? "half" : "ring"}
                label={entry.status.replaceAll("_", " ")}
              />
              <Said text={entry.content} />
            </li>
          );
        })}
      </ul>
    </Card>
  );
}

function Turns({ folded }: { folded: Folded }): ReactNode {
  if (folded.turns.length === 0) return null;
  const shown = folded.turns.slice(-12);
  return (
    <Card
      title="Turns"
      aside={
        folded.turns.length > shown.length ? (
          <span className="dim num small">the last 12 of {folded.turns.length}</span>
        ) : null
      }
    >
      <ol className="turns">
        {shown.map((turn) => (
          <li key={turn.turn} aria-current={turn.turn === folded.running ? "true" : undefined}>
            <button type="button" onClick={() => document.getElementById(`turn-${turn.turn}`)?.scrollIntoView()}>
              <span className="n">{turn.turn}</span>
              <span className="cut">
                {turn.prompt === null ? (
                  <span className="dim">prompt not kept</span>
                ) : (
                  <Said text={turn.prompt.trim().split("\n")[0]?.slice(0, 120) ?? ""} />
                )}
              </span>
              <span className="r">
                {turn.end === null ? (
                  "runs"
                ) : (
                  <>
                    {turn.end.state === "done" ? "" : `${turn.end.state}, `}
                    {duration(turn.end.durationMs)}
                    {turn.end.cost ? `, ${money(turn.end.cost)}` : ""}
                  </>
                )}
              </span>
            </button>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function useChanged(folded: Folded): ReturnType<typeof changedFiles> {
  return useMemo(() => changedFiles(toolsOf(folded)), [folded, folded.version]);
}

function Changed({ folded, count: all, onAll }: { folded: Folded; count: number | null; onAll(): void }): ReactNode {
  const files = useChanged(folded);
  if (files.length === 0 && !all) return null;
  return (
    <Card
      title={files.length > 0 ? "Changed files" : "Files"}
      aside={
        files.length > 0 ? (
          <Counts
            added={files.reduce((sum, file) => sum + file.added, 0)}
            removed={files.reduce((sum, file) => sum + file.removed, 0)}
          />
        ) : null
      }
    >
      <ul className="files">
        {files.map((file) => (
          <li key={file.path}>
            <Icon name="file" />
            <span className="mono cut grow" title={file.path}>
              <Said text={file.path} />
            </span>
            <Counts added={file.added} removed={file.removed} />
          </li>
        ))}
      </ul>
      {all ? (
        <button type="button" className="dim small link" onClick={onAll}>
          All {plural(all, "file")} of its directory
        </button>
      ) : null}
    </Card>
  );
}

const HIDDEN_META = new Set(["title"]);

function aboutOf(state: SessionState, folded: Folded): [string, ReactNode][] {
  const meta = Object.entries(state.meta).filter(([name]) => !HIDDEN_META.has(name));
  const rows: [string, ReactNode][] = [
    ["Opened", <At at={state.created_at} />],
    ["Permissions", state.permission_mode?.replaceAll("_", " ")],
    ["Effort", state.effort],
    [
      "Workspace",
      state.workspace ? `${state.workspace}${state.workspace_mode ? `, ${state.workspace_mode}` : ""}` : null,
    ],
    ["Branch", state.branch ? <Said text={state.branch} /> : null],
    ...meta.map(([name, value]): [string, ReactNode] => [
      name,
      <Said text={typeof value === "string" ? value : JSON.stringify(value)} />,
    ]),
    ["Agent’s version", state.agent_version ? <Said text={state.agent_version} /> : null],
    ["Events", count(folded.lastId)],
    ["Closed", state.closed_at === null ? null : <At at={state.closed_at} />],
    ["Closes when idle", state.closed_at === null && state.closes_at ? clock(state.closes_at) : null],
    ["Deleted", state.delete_at ? <At at={state.delete_at} /> : null],
  ];
  return rows.filter(([, value]) => value !== null && value !== undefined);
}

export function About({ state, folded }: { state: SessionState; folded: Folded }): ReactNode {
  return (
    <Card title="About">
      <dl className="facts">
        <div>
          <dt>Session</dt>
          <dd className="mono small">
            {shortId(state.session_id)} <CopyButton quiet text={state.session_id} label="Copy the session’s id" />
          </dd>
        </div>
        {aboutOf(state, folded).map(([name, value]) => (
          <div key={name}>
            <dt>
              <Said text={name} />
            </dt>
            <dd className="cut">{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

const PREVIEW_BYTES_MAX = 256 * 1024;
const BITMAPS: Record<string, string> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
};

type Shown = { path: string; text: string | null; picture: string | null; error: string | null };

async function previewed(conversation: Conversation, path: string, size: number, actAs: string | null): Promise<Shown> {
  const address = `${conversation.path}/files/${path.split("/").map(encodeURIComponent).join("/")}`;
  const type = BITMAPS[path.split(".").pop()?.toLowerCase() ?? ""];
  if (type === undefined && size > PREVIEW_BYTES_MAX)
    return { path, text: null, picture: null, error: "Too large to be shown here. Save it instead." };
  const blob = await askBlob(address, { app: actAs });
  if (type !== undefined)
    return { path, text: null, picture: URL.createObjectURL(new Blob([blob], { type })), error: null };
  const text = await blob.text();
  return text.includes("\u0000")
    ? { path, text: null, picture: null, error: "Not a text. Save it instead." }
    : { path, text, picture: null, error: null };
}

async function saveFile(conversation: Conversation, path: string, actAs: string | null): Promise<void> {
  const blob = await askBlob(`${conversation.path}/files/${path.split("/").map(encodeURIComponent).join("/")}`, {
    app: actAs,
  });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = path.split("/").pop() ?? "file";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const useFiles = (
  conversation: Conversation,
  actAs: string | null,
  version: number,
): ReturnType<typeof useLoaded<FileList>> =>
  useLoaded<FileList>(`files ${conversation.id} ${version}`, (signal) =>
    ask<FileList>(`${conversation.path}/files`, { app: actAs, signal }),
  );

interface FileRowOptions {
  file: SessionFile;
  changed: boolean;
  look(): void;
  save(): void;
}

function FileRow({ file, changed, look, save }: FileRowOptions): ReactNode {
  return (
    <li>
      <Icon name="file" />
      <button type="button" className="mono cut grow link" onClick={look}>
        <Said text={file.path} />
      </button>
      {changed ? <span className="chip live">changed</span> : null}
      <span className="dim num small">{bytes(file.size)}</span>
      <Button kind="quiet" aria-label={`Save ${file.path}`} icon="download" onClick={save} />
    </li>
  );
}

function Preview({ shown }: { shown: Shown }): ReactNode {
  return (
    <div className="preview">
      <p className="mono small">
        <Said text={shown.path} />
      </p>
      {shown.error ? (
        <p className="muted">{shown.error}</p>
      ) : shown.picture ? (
        <img src={shown.picture} alt={`Preview of ${shown.path}`} />
      ) : (
        <Terminal text={shown.text ?? ""} />
      )}
    </div>
  );
}

/** The session's directory, with a look into texts and bitmaps; never a drawing or a page, which could be programs. */
export function Files({ conversation, folded, actAs }: Options): ReactNode {
  const { data, error, reload } = useFiles(conversation, actAs, folded.turns.length + (folded.running > 0 ? 0.5 : 0));
  const [shown, setShown] = useState<Shown | null>(null);
  const marks = new Set(useChanged(folded).map((file) => file.path));
  const look = (path: string, size: number): void => {
    previewed(conversation, path, size, actAs).then(setShown, (fault: unknown) =>
      setShown({ path, text: null, picture: null, error: String(fault) }),
    );
  };
  if (error) return <Refusal error={error} onRetry={reload} />;
  if (data === null) return <Outline />;
  if (data.files.length === 0) return <Empty icon="file" title="Its directory is empty." />;
  return (
    <Card title="Files" sub={`${plural(data.count, "file")}${data.truncated ? ", and more" : ""}`}>
      <ul className="files tall">
        {data.files.map((file) => (
          <FileRow
            key={file.path}
            file={file}
            changed={marks.has(file.path)}
            look={() => look(file.path, file.size)}
            save={() => {
              void saveFile(conversation, file.path, actAs);
            }}
          />
        ))}
      </ul>
      {shown ? <Preview shown={shown} /> : null}
    </Card>
  );
}

export function Rail(options: Options): ReactNode {
  const { conversation, state, folded, actAs } = options;
  const [all, setAll] = useState(false);
  const { data } = useFiles(conversation, actAs, folded.turns.length + (folded.running > 0 ? 0.5 : 0));
  return (
    <aside className="rail" aria-label="About this session">
      <Plan folded={folded} />
      <Turns folded={folded} />
      {all ? (
        <Files {...options} />
      ) : (
        <Changed folded={folded} count={data?.count ?? null} onAll={() => setAll(true)} />
      )}
      <About state={state} folded={folded} />
    </aside>
  );
}
