// Where a person says what comes next. A draft for each session stays in the tab.
import {
  useEffect,
  useRef,
  useState,
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type ReactNode,
} from "react";
import { ApiError, ask, patiently, refusal } from "../api/client";
import { Icon } from "../icons";
import { bytes, plural } from "../model/numbers";
import { keepDraft, readDraft } from "../state/keep";
import { Button, IconButton, Refusal, Said } from "./basic";

export interface Attached {
  name: string;
  size: number;
  token: string | null;
  error: string | null;
}

const FILES_MAX = 32;

/** Brings a file to the gateway, for the next prompt. */
export async function upload(file: File, app: string | null): Promise<string> {
  const form = new FormData();
  form.append("file", file, file.name);
  return (await ask<{ file_token: string }>("files", { method: "POST", form, app })).file_token;
}

/** Begins a turn, and lets its stream go: the page reads the session's own. A stream that is let go does not end its turn. */
export async function sendTurn(session: string, app: string | null, prompt: string, files: string[]): Promise<void> {
  const abort = new AbortController();
  const response = await patiently(`sessions/${encodeURIComponent(session)}/turn`, {
    method: "POST",
    app,
    signal: abort.signal,
    json: { prompt, stream: true, ...(files.length > 0 ? { files } : {}) },
  });
  if (!response.ok) throw await refusal(response);
  abort.abort();
}

export function useAttachments(app: string | null): {
  files: Attached[];
  add(list: Iterable<File>): void;
  remove(at: number): void;
  clear(): void;
} {
  const [files, setFiles] = useState<Attached[]>([]);
  const add = (list: Iterable<File>): void => {
    for (const file of [...list].slice(0, FILES_MAX)) {
      const entry: Attached = { name: file.name, size: file.size, token: null, error: null };
      setFiles((now) => [...now, entry]);
      const done = (change: Partial<Attached>): void =>
        setFiles((now) =>
          now.map((each) =>
            each === entry || (each.name === entry.name && each.token === null) ? { ...each, ...change } : each,
          ),
        );
      upload(file, app).then(
        (token) => done({ token }),
        (fault: unknown) => done({ error: fault instanceof ApiError ? fault.detail : String(fault) }),
      );
    }
  };
  return {
    files,
    add,
    remove: (at) => setFiles((now) => now.filter((_, index) => index !== at)),
    clear: () => setFiles([]),
  };
}

export function AttachedList({ files, remove }: { files: Attached[]; remove(at: number): void }): ReactNode {
  if (files.length === 0) return null;
  return (
    <ul className="attached">
      {files.map((file, at) => (
        <li key={`${at}-${file.name}`} className="att">
          <Icon name="clip" />
          <b>
            <Said text={file.name} />
          </b>
          {file.error ? <span className="t-bad">{file.error}</span> : file.token ? bytes(file.size) : "is brought"}
          <button type="button" aria-label={`Remove ${file.name}`} onClick={() => remove(at)}>
            <Icon name="cross" />
          </button>
        </li>
      ))}
    </ul>
  );
}

function useGrowing(text: string): React.RefObject<HTMLTextAreaElement> {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, window.innerHeight * 0.4)}px`;
  }, [text]);
  return field;
}

interface Options {
  place: string;
  app: string | null;
  busy: boolean;
  waiting: number;
  mode: string | null;
  send(prompt: string, files: string[]): Promise<void>;
}

interface Composing {
  text: string;
  write(text: string): void;
  error: ApiError | null;
  can: boolean;
  submit(): void;
}

function useComposing(place: string, attachments: ReturnType<typeof useAttachments>, send: Options["send"]): Composing {
  const [text, setText] = useState(() => readDraft(place));
  const [error, setError] = useState<ApiError | null>(null);
  const [sending, setSending] = useState(false);
  const write = (next: string): void => {
    setText(next);
    keepDraft(place, next);
  };
  const can = text.trim() !== "" && !sending && attachments.files.every((file) => file.token !== null);
  const submit = (): void => {
    if (!can) return;
    setSending(true);
    setError(null);
    send(
      text,
      attachments.files.map((file) => file.token ?? ""),
    )
      .then(
        () => {
          write("");
          attachments.clear();
        },
        (fault: unknown) => setError(fault instanceof ApiError ? fault : new ApiError(0, "page_fault", String(fault))),
      )
      .finally(() => setSending(false));
  };
  return { text, write, error, can, submit };
}

export function Composer({ place, app, busy, waiting, mode, send }: Options): ReactNode {
  const attachments = useAttachments(app);
  const { text, write, error, can, submit } = useComposing(place, attachments, send);
  const field = useGrowing(text);
  const picker = useRef<HTMLInputElement>(null);
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      submit();
    }
    if (event.key === "Escape") field.current?.blur();
  };
  const take = (event: DragEvent | ClipboardEvent, files: FileList): void => {
    if (files.length > 0) {
      event.preventDefault();
      attachments.add(files);
    }
  };
  return (
    <div
      className="composer"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => take(event, event.dataTransfer.files)}
    >
      {error ? <Refusal error={error} /> : null}
      <div className="box">
        <textarea
          ref={field}
          rows={1}
          value={text}
          aria-label="What comes next"
          onChange={(event) => write(event.target.value)}
          onKeyDown={onKey}
          onPaste={(event) => take(event, event.clipboardData.files)}
          placeholder={busy ? "Say what comes next. It waits until this turn has ended." : "Say what comes next."}
        />
        <AttachedList files={attachments.files} remove={attachments.remove} />
        <div className="row">
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            onChange={(event) => {
              attachments.add(event.target.files ?? []);
              event.target.value = "";
            }}
          />
          <IconButton icon="clip" label="Attach a file" onClick={() => picker.current?.click()} />
          {mode ? <span className="chip opt">{mode}</span> : null}
          <span className="grow" />
          <span className="dim opt small">
            {waiting > 0 ? `${plural(waiting, "turn")} wait` : busy ? "nothing waits" : ""}
          </span>
          <Button kind="go" icon="up" shortcut="Ctrl ⏎" disabled={!can} onClick={submit}>
            Send
          </Button>
        </div>
      </div>
    </div>
  );
}
