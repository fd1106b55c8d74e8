// Asks the gateway. All addresses are relative, so that the page works below a path of a proxy.
import { forgetIdentity, identity } from "../state/keep";
import { createStore } from "../state/store";

export interface FieldError {
  field: string;
  message: string;
}

/** What the gateway refused, or that it could not be reached: then the code is "away". */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly requestId: string | null = null,
    readonly retryAfter: number | null = null,
    readonly fields: FieldError[] = [],
    readonly body: unknown = null,
  ) {
    super(detail);
  }
}

export interface AskOptions {
  method?: "GET" | "POST" | "PATCH" | "DELETE";
  json?: unknown;
  form?: FormData;
  /** The owner acts as this app. */
  app?: string | null;
  accept?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Without a token, and without waiting for another sign-in after a 401. */
  bare?: boolean;
}

/** How far the gateway's clock is ahead of this browser's, in milliseconds. */
export const clockAhead = createStore(0);
/** Whether the last request reached the gateway, since when not, and how long the last answer took. */
export const reach = createStore<{ away: number | null; milliseconds: number | null; draining: boolean }>({
  away: null,
  milliseconds: null,
  draining: false,
});
/** True while a sheet asks for another sign-in; those who got a 401 wait. */
export const signInAgain = createStore(false);

/** Set while a sheet asks the owner for another proof. */
export const proofNeeded = createStore<{ done(proved: boolean): void } | null>(null);

const CLOCK_SLACK_MS = 5000;

export const gatewayNow = (): number => (Date.now() + clockAhead.get()) / 1000;

function noteClock(response: Response): void {
  const said = Date.parse(response.headers.get("Date") ?? "");
  if (Number.isNaN(said)) return;
  const ahead = said + 500 - Date.now();
  clockAhead.set(Math.abs(ahead) > CLOCK_SLACK_MS ? ahead : 0);
}

export function headersFor(options: AskOptions): Headers {
  const headers = new Headers(options.headers);
  const mine = identity.get();
  if (!options.bare && mine !== null) headers.set("Authorization", `Bearer ${mine.token}`);
  if (options.app && mine?.kind === "admin") headers.set("X-Clawdforge-App", options.app);
  if (options.accept) headers.set("Accept", options.accept);
  if (options.json !== undefined) headers.set("Content-Type", "application/json");
  return headers;
}

/** The answer as it is, also a refusal. Throws only where no answer came. */
export async function request(path: string, options: AskOptions = {}): Promise<Response> {
  const begun = performance.now();
  try {
    const response = await fetch(path, {
      method: options.method ?? "GET",
      headers: headersFor(options),
      body: options.form ?? (options.json === undefined ? null : JSON.stringify(options.json)),
      signal: options.signal ?? null,
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
    });
    noteClock(response);
    reach.set({ away: null, milliseconds: Math.round(performance.now() - begun), draining: false });
    return response;
  } catch (fault) {
    if (options.signal?.aborted) throw fault;
    reach.update((now) => ({ ...now, away: now.away ?? Date.now() }));
    throw new ApiError(0, "away", "The gateway does not answer.");
  }
}

export async function refusal(response: Response): Promise<ApiError> {
  let body: unknown = null;
  try {
    body = await response.json();
  } catch {
    // A proxy's page: the status says enough.
  }
  const said = (body ?? {}) as { code?: string; detail?: string; request_id?: string; errors?: FieldError[] };
  const retry = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  const error = new ApiError(
    response.status,
    said.code ?? `http_${response.status}`,
    said.detail ?? `The answer had the status ${response.status}.`,
    said.request_id ?? response.headers.get("X-Request-Id"),
    Number.isNaN(retry) ? null : retry,
    said.errors ?? [],
    body,
  );
  if (error.code === "draining") reach.update((now) => ({ ...now, draining: true }));
  return error;
}

/** Waits until another sign-in has given this tab another token. */
function anotherToken(old: string): Promise<void> {
  signInAgain.set(true);
  return new Promise((resolve) => {
    const look = (): void => {
      const mine = identity.get();
      if (mine === null || mine.token === old) return;
      stop();
      signInAgain.set(false);
      resolve();
    };
    const stop = identity.subscribe(look);
    look();
  });
}

async function needsProof(response: Response): Promise<boolean> {
  if (response.status !== 403) return false;
  const said = (await response
    .clone()
    .json()
    .catch(() => null)) as { code?: string } | null;
  return said?.code === "proof_needed";
}

/** Whether the owner has shown the token again. */
function anotherProof(): Promise<boolean> {
  return new Promise((resolve) => {
    proofNeeded.set({
      done: (proved) => {
        proofNeeded.set(null);
        resolve(proved);
      },
    });
  });
}

/** Asks, and after a 401 asks once more when the person has signed in again. */
export async function patiently(path: string, options: AskOptions = {}): Promise<Response> {
  while (true) {
    const token = identity.get()?.token ?? "";
    const response = await request(path, options);
    if (options.bare || token === "") return response;
    if (response.status === 401 && path !== "ui/proof") await anotherToken(token);
    else if (!(await needsProof(response)) || !(await anotherProof())) return response;
  }
}

export async function ask<T>(path: string, options: AskOptions = {}): Promise<T> {
  const response = await patiently(path, options);
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as T;
}

/** As `ask`, and null where this gateway does not have the path. */
export async function askIfThere<T>(path: string, options: AskOptions = {}): Promise<T | null> {
  try {
    return await ask<T>(path, options);
  } catch (fault) {
    if (fault instanceof ApiError && (fault.code === "path_not_found" || fault.status === 405)) return null;
    throw fault;
  }
}

export async function askBlob(path: string, options: AskOptions = {}): Promise<Blob> {
  const response = await patiently(path, options);
  if (!response.ok) throw await refusal(response);
  return await response.blob();
}

/** Tells the gateway, so that the token ends, and forgets it here whatever the gateway says. */
export async function signOut(): Promise<void> {
  try {
    await request("ui/sign-out", { method: "POST" });
  } finally {
    forgetIdentity();
  }
}

export function query(fields: Record<string, string | number | boolean | null | undefined>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && value !== undefined && value !== "") parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return text === "" ? "" : `?${text}`;
}

/** The address of a path of the API as another program would write it. */
export const address = (path: string): string => new URL(path, document.baseURI).href.replace(/#.*$/, "");
