// Jump to anything, and the list of keys.
import { useEffect, useMemo, useRef, useState, type KeyboardEvent as ReactKey, type ReactNode } from "react";
import { ask } from "../api/client";
import type { SessionList } from "../api/types";
import { Icon, type IconName } from "../icons";
import { identity, lettersAreOn, setLetters } from "../state/keep";
import { go, sessionLink } from "../state/route";
import { createStore, useStore } from "../state/store";
import { nextTheme } from "../state/theme";
import { titleOf } from "./state";

type Shown = "palette" | "keys" | null;
const shown = createStore<Shown>(null);

export const openPalette = (): void => shown.set("palette");
export const openKeys = (): void => shown.set("keys");

interface Entry {
  name: string;
  note: string;
  icon: IconName;
  act(): void;
}

const GOES: readonly [string, string, IconName, boolean][] = [
  ["Overview", "#/", "overview", false],
  ["Sessions", "#/sessions", "sessions", false],
  ["Runs", "#/runs", "runs", false],
  ["Failed runs", "#/runs?state=failed", "runs", false],
  ["Playground", "#/play", "play", false],
  ["Apps and tokens", "#/apps", "apps", true],
  ["New app", "#/apps?new=1", "plus", true],
  ["Audit", "#/audit", "audit", true],
  ["Settings", "#/settings", "settings", false],
  ["Doctor", "#/settings/doctor", "settings", true],
];

function useEntries(open: boolean): Entry[] {
  const mine = useStore(identity);
  const [sessions, setSessions] = useState<Entry[]>([]);
  useEffect(() => {
    if (!open) return;
    ask<SessionList>(
      mine?.kind === "admin" ? "admin/sessions?limit=200" : "sessions?limit=200&include_closed=true",
    ).then(
      (page) => {
        setSessions(
          page.sessions.map((session) => ({
            name: titleOf(session),
            note: `${session.app_name}, ${session.agent}`,
            icon: "sessions",
            act: () => go(sessionLink(session.session_id, mine?.kind === "admin" ? session.app_name : null)),
          })),
        );
      },
      () => setSessions([]),
    );
  }, [open, mine]);
  return useMemo(
    () => [
      ...GOES.filter(([, , , owner]) => !owner || mine?.kind === "admin").map(([name, to, icon]): Entry => ({
        name,
        note: "page",
        icon,
        act: () => go(to),
      })),
      { name: "Change the theme", note: "t", icon: "moon", act: nextTheme },
      { name: "Keys", note: "?", icon: "list", act: openKeys },
      ...sessions,
    ],
    [mine, sessions],
  );
}

function Dialog({ label, children }: { label: string; children: ReactNode }): ReactNode {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (box.current?.open === false) box.current.showModal();
  }, []);
  return (
    <dialog
      ref={box}
      aria-label={label}
      onClose={() => shown.set(null)}
      onClick={(event) => {
        if (event.target === box.current) box.current?.close();
      }}
    >
      {children}
    </dialog>
  );
}

const ENTRIES_MAX = 12;

function FoundList({
  found,
  at,
  pick,
  point,
}: {
  found: Entry[];
  at: number;
  pick(entry: Entry): void;
  point(at: number): void;
}): ReactNode {
  return (
    <ul id="found" role="listbox" aria-label="Found">
      {found.map((entry, index) => (
        <li
          key={`${index}${entry.name}`}
          id={`found-${index}`}
          role="option"
          aria-selected={index === at}
          onClick={() => pick(entry)}
          onPointerMove={() => point(index)}
        >
          <Icon name={entry.icon} />
          <span className="cut grow">{entry.name}</span>
          <span className="dim small">{entry.note}</span>
        </li>
      ))}
      {found.length === 0 ? (
        <li className="dim" role="option" aria-selected="false">
          Nothing of that name.
        </li>
      ) : null}
    </ul>
  );
}

function PaletteBody(): ReactNode {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries(true);
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  const found = entries
    .filter((entry) => words.every((word) => `${entry.name} ${entry.note}`.toLowerCase().includes(word)))
    .slice(0, ENTRIES_MAX);
  const pick = (entry: Entry | undefined): void => {
    if (entry) {
      shown.set(null);
      entry.act();
    }
  };
  const onKey = (event: ReactKey): void => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) {
      event.preventDefault();
      setAt(Math.max(0, Math.min(found.length - 1, at + step)));
    }
    if (event.key === "Enter") {
      event.preventDefault();
      pick(found[at]);
    }
  };
  return (
    <Dialog label="Search or jump to">
      <div className="palette">
        <div className="row find-row">
          <Icon name="search" />
          <input
            autoFocus
            value={text}
            placeholder="A page, a session, an app"
            role="combobox"
            aria-expanded="true"
            aria-controls="found"
            aria-activedescendant={`found-${at}`}
            aria-label="Search or jump to"
            onChange={(event) => {
              setText(event.target.value);
              setAt(0);
            }}
            onKeyDown={onKey}
          />
        </div>
        <FoundList found={found} at={at} pick={pick} point={setAt} />
      </div>
    </Dialog>
  );
}

const KEYS: readonly [string, string][] = [
  ["Ctrl K", "search or jump to anything"],
  ["g o", "Overview"],
  ["g s", "Sessions"],
  ["g r", "Runs"],
  ["g p", "Playground"],
  ["g a", "Apps and tokens"],
  ["g u", "Audit"],
  ["g ,", "Settings"],
  ["/", "filter this list"],
  ["j k Enter", "move in a list, open"],
  ["A", "allow the question in view, once"],
  ["D", "deny it"],
  ["S", "always allow it"],
  ["n", "the next question anywhere"],
  ["Esc", "cancel the turn, asks once; close a sheet"],
  ["G", "to the end of a transcript"],
  ["r", "raw events"],
  ["t", "theme"],
  ["?", "this list"],
];

function KeysBody(): ReactNode {
  const on = useStore(lettersAreOn);
  return (
    <Dialog label="Keys">
      <div className="keys-list">
        <h2>Keys</h2>
        <dl>
          {KEYS.map(([keys, what]) => (
            <div key={keys}>
              <dt>
                {keys.split(" ").map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
        <label className="check">
          <input type="checkbox" checked={on} onChange={(event) => setLetters(event.target.checked)} />
          Single letters act as keys
        </label>
      </div>
    </Dialog>
  );
}

export function Palette(): ReactNode {
  const what = useStore(shown);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openPalette();
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
  return what === "palette" ? <PaletteBody /> : what === "keys" ? <KeysBody /> : null;
}

export function FindButton(): ReactNode {
  return (
    <button type="button" className="find" onClick={openPalette}>
      <Icon name="search" />
      <span>Search or jump to</span>
      <kbd>Ctrl K</kbd>
    </button>
  );
}
