// The figures over time, for the overview.
import { ask, gatewayNow, query } from "../api/client";
import type { UsageColumns, UsageSeries } from "../api/types";
import { useLoaded, type Loaded } from "./load";

export type Range = "1h" | "6h" | "24h" | "7d" | "30d";

export const RANGES: Record<Range, { seconds: number; step: number; each: string; label: string }> = {
  "1h": { seconds: 3600, step: 60, each: "each minute", label: "1 h" },
  "6h": { seconds: 6 * 3600, step: 300, each: "each 5 minutes", label: "6 h" },
  "24h": { seconds: 24 * 3600, step: 3600, each: "each hour", label: "24 h" },
  "7d": { seconds: 7 * 86_400, step: 3600 * 1, each: "each hour", label: "7 d" },
  "30d": { seconds: 30 * 86_400, step: 86_400, each: "each day", label: "30 d" },
};

/** The last `range`, and with `earlier` the one before it. */
export function useUsage(owner: boolean, range: Range, by: string | null, earlier = false): Loaded<UsageColumns> {
  const { seconds, step } = RANGES[range];
  return useLoaded<UsageColumns>(
    `usage ${owner} ${range} ${by ?? ""} ${earlier}`,
    (signal) => {
      const now = Math.floor(gatewayNow());
      const end = (Math.floor(now / step) + 1) * step - (earlier ? seconds : 0);
      return ask<UsageColumns>(
        `${owner ? "admin/usage" : "usage"}${query({ from: end - seconds, to: end, step, by })}`,
        { signal },
      );
    },
    { topics: earlier ? [] : ["usage"], everyMs: earlier ? 600_000 : 15_000 },
  );
}

export function nameOf(series: UsageSeries): string {
  if (typeof series.key === "string") return series.key;
  return (
    Object.values(series.key)
      .map((value) => value ?? "default")
      .join(", ") || "all"
  );
}

export const sum = (values: readonly (number | null)[] | undefined): number =>
  (values ?? []).reduce<number>((total, value) => total + (value ?? 0), 0);

export const tokensIn = (series: UsageSeries): number[] =>
  series.input_tokens.map(
    (value, at) => value + (series.cache_read_tokens[at] ?? 0) + (series.cache_write_tokens[at] ?? 0),
  );

export const tokensOf = (series: UsageSeries): number[] =>
  tokensIn(series).map((value, at) => value + (series.output_tokens[at] ?? 0));

export function total(columns: UsageColumns, of: (series: UsageSeries) => number[]): number[] {
  return columns.times.map((_, at) => columns.series.reduce((all, series) => all + (of(series)[at] ?? 0), 0));
}
