// The frame of every page: where one can go, what waits, and the light that says whether the picture is live.
import { useEffect, type ReactNode } from "react";
import { clockAhead, reach, signOut } from "../api/client";
import { heardAt, link } from "../api/stream";
import { Icon, Mark, type IconName } from "../icons";
import { duration } from "../model/numbers";
import { useNow } from "../state/clock";
import { facts } from "../state/facts";
import { identity } from "../state/keep";
import { questions } from "../state/questions";
import { route } from "../state/route";
import { usePart, useStore } from "../state/store";
import { nextTheme, theme } from "../state/theme";
import { IconButton } from "./basic";
import { openPalette } from "./palette";

export interface Place {
  page: string;
  name: string;
  icon: IconName;
  owner?: boolean;
  key: string;
}

export const PLACES: readonly Place[] = [
  { page: "overview", name: "Overview", icon: "overview", key: "o" },
  { page: "sessions", name: "Sessions", icon: "sessions", key: "s" },
  { page: "runs", name: "Runs", icon: "runs", key: "r" },
  { page: "play", name: "Playground", icon: "play", key: "p" },
  { page: "apps", name: "Apps and tokens", icon: "apps", owner: true, key: "a" },
  { page: "audit", name: "Audit", icon: "audit", owner: true, key: "u" },
  { page: "settings", name: "Settings", icon: "settings", key: "," },
];

export const addressOf = (page: string): string => (page === "overview" ? "#/" : `#/${page}`);

/** What the light says: its word, its tone, and what stands beside it. */
export function lightOf(now: number): { word: string; tone: string; aside: string } {
  const { away, milliseconds, draining } = reach.get();
  const stream = link.get();
  if (draining) return { word: "Shutting down", tone: "old", aside: "comes back" };
  if (away !== null)
    return { word: "Gateway away", tone: "away", aside: `since ${duration(Math.max(1000, Date.now() - away))}` };
  if (stream.state === "waiting")
    return {
      word: "Trying again",
      tone: "old",
      aside: `in ${Math.max(0, Math.ceil((stream.until - Date.now()) / 1000))} s`,
    };
  if (stream.state === "opening" && Date.now() - stream.since > 1500)
    return { word: "Catching up", tone: "old", aside: "" };
  const silent = Date.now() - heardAt.get();
  if (stream.state === "live" && silent > 18_000)
    return { word: `Old: ${Math.round(silent / 1000)} s`, tone: "old", aside: "no heartbeat" };
  return { word: "Live", tone: "", aside: milliseconds === null || now === 0 ? "" : `${milliseconds} ms` };
}

function Light(): ReactNode {
  const now = useNow();
  useStore(reach);
  useStore(link);
  const { word, tone, aside } = lightOf(now);
  return (
    <div className="row" role="status">
      <span className="row">
        <span className={`beat ${tone}`} />
        <b>{word}</b>
      </span>
      <span className="num">{aside}</span>
    </div>
  );
}

function Count({ page }: { page: string }): ReactNode {
  const asks = usePart(questions, (list) => list?.length ?? 0);
  const known = useStore(facts);
  if (page === "sessions" && asks > 0)
    return (
      <span className="count hot">
        {asks} {asks === 1 ? "question" : "questions"}
      </span>
    );
  const value =
    page === "runs" ? known.running : page === "apps" ? known.apps : page === "settings" ? known.findings : null;
  return value ? (
    <span className="count" title={page === "settings" ? "things to look at" : undefined}>
      {value}
    </span>
  ) : null;
}

const THEME_NAMES = { system: "as the system", light: "light", dark: "dark" };

export function Sidebar(): ReactNode {
  const { page } = useStore(route);
  const mine = useStore(identity);
  const looks = useStore(theme);
  const known = useStore(facts);
  const ahead = useStore(clockAhead);
  const places = PLACES.filter((place) => !place.owner || mine?.kind === "admin");
  const item = (place: Place): ReactNode => (
    <a key={place.page} href={addressOf(place.page)} aria-current={place.page === page ? "page" : undefined}>
      <Icon name={place.icon} />
      <span>{place.name}</span>
      <Count page={place.page} />
    </a>
  );
  return (
    <div className="side">
      <header>
        <a className="brand" href="#/">
          <Mark />
          <span>clawdforge</span>
        </a>
      </header>
      <nav className="nav" aria-label="Pages">
        {places.slice(0, 4).map(item)}
        <hr />
        {places.slice(4).map(item)}
      </nav>
      <footer className="foot">
        <Light />
        {ahead !== 0 ? (
          <div className="row">
            <span>
              This clock is {duration(Math.abs(ahead))} {ahead > 0 ? "behind" : "ahead"}
            </span>
          </div>
        ) : null}
        <div className="row">
          <span>{location.host}</span>
          <span>{known.version}</span>
        </div>
        <div className="row">
          <span className="cut">{mine?.kind === "admin" ? "As the owner" : `As ${mine?.name ?? "an app"}`}</span>
          <span className="row tight">
            <IconButton
              icon={looks === "dark" ? "moon" : looks === "light" ? "sun" : "screen"}
              label={`Theme: ${THEME_NAMES[looks]}`}
              onClick={nextTheme}
            />
            <IconButton
              icon="out"
              label="Sign out"
              onClick={() => {
                void signOut();
              }}
            />
          </span>
        </div>
      </footer>
    </div>
  );
}

export function PhoneTop({ title }: { title: string }): ReactNode {
  useNow();
  const { word, tone } = lightOf(1);
  return (
    <div className="m-top">
      <Mark />
      <h1 className="grow m-title">{title}</h1>
      <span className="row dim m-light">
        <span className={`beat ${tone}`} />
        {word}
      </span>
      <IconButton icon="search" label="Search" onClick={openPalette} />
    </div>
  );
}

export function PhoneTabs(): ReactNode {
  const { page } = useStore(route);
  const asks = usePart(questions, (list) => list?.length ?? 0);
  const inMore = !["overview", "sessions", "runs", "play"].includes(page);
  return (
    <nav className="tabs" aria-label="Pages on a phone">
      {PLACES.slice(0, 4).map((place) => (
        <a key={place.page} href={addressOf(place.page)} aria-current={place.page === page ? "page" : undefined}>
          <Icon name={place.icon} />
          <span>{place.name}</span>
          {place.page === "sessions" && asks > 0 ? (
            <span className="bub" aria-label={`${asks} ask`}>
              {asks}
            </span>
          ) : null}
        </a>
      ))}
      <a href="#/more" aria-current={inMore ? "page" : undefined}>
        <Icon name="more" className="thick" />
        <span>More</span>
      </a>
    </nav>
  );
}

/** What waits is in the title of the tab and in its icon. */
export function useTitle(title: string): void {
  const asks = usePart(questions, (list) => list?.length ?? 0);
  useEffect(() => {
    document.title = `${asks > 0 ? `(${asks}) ` : ""}${title}, clawdforge`;
  }, [title, asks]);
}
