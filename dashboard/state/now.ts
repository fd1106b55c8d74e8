// What the gateway does at this moment, for the owner: from its metrics, which curl can have as well.
import { useRef } from "react";
import { patiently, refusal } from "../api/client";
import { gauge, parseMetrics, quantile, requestsOf, type Metrics } from "../model/metrics";
import { useLoaded } from "./load";

export interface NowFigures {
  metrics: Metrics | null;
  requestsPerMinute: number | null;
  refusedShare: number | null;
  history: number[];
  running: number | null;
  waiting: number | null;
  ownMs: number | null;
}

const EVERY_MS = 3000;
const HISTORY_MAX = 100;

async function loadMetrics(signal: AbortSignal): Promise<{ at: number; metrics: Metrics }> {
  const response = await patiently("metrics", { signal, accept: "text/plain" });
  if (!response.ok) throw await refusal(response);
  return { at: Date.now(), metrics: parseMetrics(await response.text()) };
}

export function useNowFigures(owner: boolean): NowFigures {
  const { data } = useLoaded(owner ? "metrics" : null, loadMetrics, { everyMs: EVERY_MS });
  const seen = useRef<{ at: number; all: number; bad: number; rate: number | null }[]>([]);
  if (data !== null && seen.current[seen.current.length - 1]?.at !== data.at) {
    const { all, bad } = requestsOf(data.metrics);
    const before = seen.current[seen.current.length - 1];
    const minutes = before === undefined ? 0 : (data.at - before.at) / 60_000;
    seen.current = [
      ...seen.current.slice(1 - HISTORY_MAX),
      { at: data.at, all, bad, rate: before === undefined || all < before.all ? null : (all - before.all) / minutes },
    ];
  }
  return figures(data?.metrics ?? null, seen.current);
}

function figures(
  metrics: Metrics | null,
  seen: { at: number; all: number; bad: number; rate: number | null }[],
): NowFigures {
  const none: NowFigures = {
    metrics,
    requestsPerMinute: null,
    refusedShare: null,
    history: [],
    running: null,
    waiting: null,
    ownMs: null,
  };
  if (metrics === null) return none;
  const last = seen[seen.length - 1];
  const first = seen.find((each) => last !== undefined && last.at - each.at <= 60_000);
  const minutes = first && last ? (last.at - first.at) / 60_000 : 0;
  const all = first && last ? last.all - first.all : 0;
  const turns = Math.max(0, gauge(metrics, "turns_running") ?? 0);
  const commit = quantile(metrics, "ledger_commit_seconds", 0.5);
  return {
    ...none,
    requestsPerMinute: minutes > 0 ? all / minutes : 0,
    refusedShare: first && last && all > 0 && last.bad > first.bad ? (last.bad - first.bad) / all : null,
    history: seen.map((each) => each.rate ?? 0),
    running: (gauge(metrics, "runs_running") ?? 0) + turns,
    waiting: (gauge(metrics, "runs_waiting") ?? 0) + (gauge(metrics, "turns_waiting") ?? 0),
    ownMs: commit === null ? null : commit * 1000,
  };
}
