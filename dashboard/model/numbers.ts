// Figures as people read them. Pure.

export const NONE = "–";

const whole = new Intl.NumberFormat("en");

export const count = (value: number | null | undefined): string =>
  value === null || value === undefined ? NONE : whole.format(value);

/** 950, 1.9 k, 41.8 M: the figure and its unit apart, because the unit is shown a step quieter. */
export function short(value: number | null | undefined): [string, string] {
  if (value === null || value === undefined) return [NONE, ""];
  for (const [size, unit] of [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (value >= size * 0.9995) return [trim(value / size), unit];
  }
  return [whole.format(Math.round(value)), ""];
}

function trim(value: number): string {
  return value >= 99.95 ? String(Math.round(value)) : value.toFixed(1).replace(/\.0$/, "");
}

export function tokens(value: number | null | undefined): string {
  const [figure, unit] = short(value);
  return unit === "" ? figure : `${figure} ${unit}`;
}

export function money(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  if (value > 0 && value < 0.01) return "< $0.01";
  return `$${value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
}

/** 0.6 ms, 3.1 s, 2:07, 1 h 12 m, 6 d 4 h. */
export function duration(milliseconds: number | null | undefined): string {
  if (milliseconds === null || milliseconds === undefined) return NONE;
  if (milliseconds < 10) return `${milliseconds.toFixed(1).replace(/\.0$/, "")} ms`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1).replace(/\.0$/, "")} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  return long(Math.floor(seconds));
}

function long(seconds: number): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}:${two(seconds % 60)}`;
  const hours = Math.floor(seconds / 3600);
  if (hours < 48) return `${hours} h ${Math.floor((seconds % 3600) / 60)} m`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return NONE;
  for (const [size, unit] of [
    [1e12, "TB"],
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "KB"],
  ] as const) {
    if (value >= size) return `${trim(value / size)} ${unit}`;
  }
  return `${value} B`;
}

export function percent(part: number, of: number): string {
  if (of <= 0) return NONE;
  const value = (100 * part) / of;
  return `${value > 0 && value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)} %`;
}

const two = (value: number): string => String(value).padStart(2, "0");

export function clock(seconds: number, withSeconds = false): string {
  const date = new Date(seconds * 1000);
  return `${two(date.getHours())}:${two(date.getMinutes())}${withSeconds ? `:${two(date.getSeconds())}` : ""}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** now, 2 m ago, today 14:02, 12 Nov 14:02. */
export function when(seconds: number | null | undefined, now: number): string {
  if (seconds === null || seconds === undefined) return NONE;
  const ago = now - seconds;
  if (ago >= 0 && ago < 10) return "now";
  if (ago >= 0 && ago < 60) return `${Math.floor(ago)} s ago`;
  if (ago >= 0 && ago < 3600) return `${Math.floor(ago / 60)} m ago`;
  return dated(seconds, now);
}

export function dated(seconds: number, now: number): string {
  const date = new Date(seconds * 1000);
  const today = new Date(now * 1000);
  if (date.toDateString() === today.toDateString()) return `today ${clock(seconds)}`;
  const year = date.getFullYear() === today.getFullYear() ? "" : ` ${date.getFullYear()}`;
  return `${date.getDate()} ${MONTHS[date.getMonth()]}${year} ${clock(seconds)}`;
}

/** For the title of a time: local with its zone, and UTC. */
export function exact(seconds: number): string {
  const date = new Date(seconds * 1000);
  return `${date.toLocaleString("en-GB", { timeZoneName: "short" })} · ${date.toISOString().replace(".000", "")}`;
}

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`;

export const shortId = (id: string): string => (id.length > 14 ? `${id.slice(0, 8)}…${id.slice(-5)}` : id);
