// Where in the page we are. Places are fragments: paths such as /sessions are the API's own, and no id, filter or
// sign-in code ever reaches a server's log.
import { createStore } from "./store";

export interface Route {
  page: string;
  rest: string[];
  query: URLSearchParams;
}

export function parseRoute(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const at = text.indexOf("?");
  const path = at < 0 ? text : text.slice(0, at);
  const parts = path
    .split("/")
    .filter((part) => part !== "")
    .map(decode);
  return {
    page: parts[0] ?? "overview",
    rest: parts.slice(1),
    query: new URLSearchParams(at < 0 ? "" : text.slice(at + 1)),
  };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The code of a sign-in link, taken out of the address before anything else happens. */
export function takeCode(): string | null {
  const route = parseRoute(location.hash);
  if (route.page !== "in" || route.rest[0] === undefined) return null;
  history.replaceState(null, "", "#/");
  return route.rest[0];
}

export const signInCode = createStore<string | null>(takeCode());
export const route = createStore<Route>(parseRoute(location.hash));

window.addEventListener("hashchange", () => {
  const code = takeCode();
  if (code !== null) signInCode.set(code);
  route.set(parseRoute(location.hash));
});

export function go(to: string): void {
  if (location.hash !== to) location.hash = to;
}

/** Filters live in the fragment, so that a view can be sent as a link. */
export function setQuery(fields: Record<string, string | null>): void {
  const now = route.get();
  const next = new URLSearchParams(now.query);
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  const path = [now.page === "overview" ? "" : now.page, ...now.rest.map(encodeURIComponent)].join("/");
  history.replaceState(null, "", `#/${path}${text === "" ? "" : `?${text}`}`);
  route.set(parseRoute(location.hash));
}

export const sessionLink = (id: string, app?: string | null): string =>
  `#/sessions/${encodeURIComponent(id)}${app ? `?app=${encodeURIComponent(app)}` : ""}`;
