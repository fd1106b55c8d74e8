// Scales and shapes of the plots. Pure.

export interface Tick {
  at: number;
  label: string;
}

/** At most `most` grid lines at round values, with zero among them. */
export function ticksOf(max: number, most: number): number[] {
  if (!(max > 0)) return [0];
  const rough = max / most;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((each) => each * size).find((each) => each >= rough * 0.999) ?? 10 * size;
  const ticks: number[] = [];
  for (let at = 0; at < max + step * 0.999; at += step) ticks.push(Number(at.toPrecision(12)));
  return ticks;
}

const LOG_TICKS_MS = [
  1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 60_000, 180_000, 600_000, 1_800_000, 3_600_000,
];

/** Round times within the range, at most `most` of them. */
export function logTicks(least: number, greatest: number, most: number): number[] {
  const inside = LOG_TICKS_MS.filter((tick) => tick >= least && tick <= greatest);
  const every = Math.max(1, Math.ceil(inside.length / most));
  return inside.filter((_, at) => at % every === 0);
}

export const logScale =
  (least: number, greatest: number, from: number, to: number) =>
  (value: number): number =>
    from +
    ((Math.log(Math.max(value, least)) - Math.log(least)) / Math.max(1e-9, Math.log(greatest) - Math.log(least))) *
      (to - from);

const two = (value: number): string => String(value).padStart(2, "0");
const DAY = 86_400;

export function timeLabel(seconds: number, step: number): string {
  const date = new Date(seconds * 1000);
  return step >= DAY
    ? `${date.getDate()}.${date.getMonth() + 1}.`
    : `${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** At most `most` labels for columns, at round times. */
export function timeTicks(times: readonly number[], step: number, most: number): { index: number; label: string }[] {
  const rounds = [300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, DAY, 2 * DAY, 5 * DAY, 7 * DAY, 10 * DAY];
  const zone = new Date((times[0] ?? 0) * 1000).getTimezoneOffset() * 60;
  const span = times.length * step;
  const round = rounds.find((each) => each >= step && span / each <= most) ?? 30 * DAY;
  const found: { index: number; label: string }[] = [];
  times.forEach((time, index) => {
    if ((time - zone) % round === 0) found.push({ index, label: timeLabel(time, round >= DAY ? DAY : step) });
  });
  return found;
}

/** A line with gaps where there is nothing. */
export function linePath(points: readonly (readonly [number, number] | null)[]): string {
  let path = "";
  let pen = false;
  for (const point of points) {
    if (point !== null) path += `${pen ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}`;
    pen = point !== null;
  }
  return path;
}

/** A small line without axes, and the area below it. */
export function sparkPaths(values: readonly number[], width: number, height: number): { line: string; area: string } {
  const max = Math.max(...values, 1e-9);
  const step = values.length > 1 ? width / (values.length - 1) : width;
  const points = values.map((value, at): [number, number] => [at * step, height - 2 - (value / max) * (height - 6)]);
  const line = linePath(points);
  return { line, area: points.length > 1 ? `${line}L${width} ${height}L0 ${height}Z` : "" };
}

export interface Series {
  name: string;
  values: number[];
}

/** The largest keep their names, the rest is one series. An app keeps its place while it is among them. */
export function largest(series: readonly Series[], most: number, before: readonly string[] = []): Series[] {
  const sum = (each: Series): number => each.values.reduce((total, value) => total + value, 0);
  const named = series.filter((each) => each.name !== "other" && sum(each) > 0).sort((a, b) => sum(b) - sum(a));
  const kept = named.slice(0, most);
  const rest = [...named.slice(most), ...series.filter((each) => each.name === "other")];
  const place = (each: Series): number => {
    const at = before.indexOf(each.name);
    return at < 0 ? before.length + kept.indexOf(each) : at;
  };
  const ordered = [...kept].sort((a, b) => place(a) - place(b));
  const length = Math.max(0, ...series.map((each) => each.values.length));
  const other = Array.from({ length }, (_, at) => rest.reduce((total, each) => total + (each.values[at] ?? 0), 0));
  return other.some((value) => value > 0) ? [...ordered, { name: "other", values: other }] : ordered;
}
