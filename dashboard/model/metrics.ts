// Prometheus' text form, as far as the page reads it. Pure.

export type Metrics = Map<string, { labels: Record<string, string>; value: number }[]>;

export function parseMetrics(text: string): Metrics {
  const found: Metrics = new Map();
  for (const line of text.split("\n")) {
    const parts = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (parts === null) continue;
    const [, name = "", labels = "", value = ""] = parts;
    const rows = found.get(name) ?? [];
    rows.push({
      labels: Object.fromEntries(
        [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map((each) => [each[1] ?? "", each[2] ?? ""]),
      ),
      value: Number(value),
    });
    found.set(name, rows);
  }
  return found;
}

export function gauge(metrics: Metrics, name: string): number | null {
  const rows = metrics.get(`clawdforge_${name}`);
  return rows === undefined ? null : rows.reduce((sum, row) => sum + row.value, 0);
}

/** The upper end of the bucket that holds this share of all, in seconds. */
export function quantile(metrics: Metrics, name: string, share: number): number | null {
  const buckets = new Map<number, number>();
  for (const row of metrics.get(`clawdforge_${name}_bucket`) ?? []) {
    const end = row.labels["le"] === "+Inf" ? Infinity : Number(row.labels["le"]);
    buckets.set(end, (buckets.get(end) ?? 0) + row.value);
  }
  const ends = [...buckets.keys()].sort((a, b) => a - b);
  const all = buckets.get(Infinity) ?? 0;
  if (all === 0) return null;
  const end = ends.find((each) => (buckets.get(each) ?? 0) >= share * all);
  return end === undefined || end === Infinity ? (ends[ends.length - 2] ?? null) : end;
}

/** All requests, and those that were refused or failed. */
export function requestsOf(metrics: Metrics): { all: number; bad: number } {
  let all = 0;
  let bad = 0;
  for (const row of metrics.get("clawdforge_http_requests_total") ?? []) {
    all += row.value;
    if (Number(row.labels["status"]) >= 400) bad += row.value;
  }
  return { all, bad };
}
