// Plots as our own SVG: drawn at the size they have, coloured by the theme, readable as text and as a table.
import {
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  type RefObject,
} from "react";
import { clock } from "../model/numbers";
import { linePath, logScale, logTicks, sparkPaths, ticksOf, timeTicks, type Series } from "../model/plots";
import { duration } from "../model/numbers";

function useWidth(): [RefObject<HTMLDivElement>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    setWidth(element.clientWidth);
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [box, width];
}

export function Spark({ values, label }: { values: readonly number[]; label: string }): ReactNode {
  const { line, area } = sparkPaths(values, 200, 30);
  return (
    <svg className="spark" viewBox="0 0 200 30" preserveAspectRatio="none" role="img" aria-label={label}>
      <path className="f" d={area} />
      <path className="l" d={line} />
    </svg>
  );
}

export interface Columns {
  times: readonly number[];
  step: number;
  series: readonly Series[];
  classes?: readonly string[];
}

const spanLabel = (time: number, step: number): string =>
  step >= 86_400
    ? new Date(time * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" })
    : `${clock(time)} to ${clock(time + step)}`;

interface TipOptions {
  columns: Columns;
  at: number;
  format(value: number): string;
  left: number;
  flip: boolean;
}

function Tip({ columns, at, format, left, flip }: TipOptions): ReactNode {
  const rows = columns.series
    .map((each, index) => ({ name: each.name, value: each.values[at] ?? 0, index }))
    .filter((row) => row.value > 0)
    .sort((a, b) => b.value - a.value);
  const sum = rows.reduce((total, row) => total + row.value, 0);
  return (
    <div className="tip" style={flip ? { right: left } : { left }} role="status">
      <div>
        <b>{spanLabel(columns.times[at] ?? 0, columns.step)}</b>
        <b>{format(sum)}</b>
      </div>
      {rows.map((row) => (
        <div key={row.name}>
          <span>
            <i className={`sw ${columns.classes?.[row.index] ?? `s${row.index + 1}`}`} />
            {row.name}
          </span>
          <span>{format(row.value)}</span>
        </div>
      ))}
    </div>
  );
}

/** Which column is pointed at, or reached with the arrow keys. */
function usePointed(
  length: number,
  left: number,
  slot: number,
): { at: number | null; events: Record<string, unknown> } {
  const [at, setAt] = useState<number | null>(null);
  const move = (event: PointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const index = Math.floor((event.clientX - box.left - left) / slot);
    setAt(index >= 0 && index < length ? index : null);
  };
  const key = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    setAt((now) => Math.max(0, Math.min(length - 1, (now ?? (step > 0 ? -1 : length)) + step)));
  };
  return {
    at,
    events: {
      onPointerMove: move,
      onPointerLeave: () => setAt(null),
      onKeyDown: key,
      onBlur: () => setAt(null),
      tabIndex: 0,
    },
  };
}

interface BarOptions {
  columns: Columns;
  height: number;
  format(value: number): string;
  axis(value: number): string;
  label: string;
  onPick?: (time: number) => void;
}

interface Frame {
  width: number;
  height: number;
  left: number;
  slot: number;
  base: number;
  y(value: number): number;
  ticks: number[];
}

function frameOf({ times, series }: Columns, width: number, height: number, axis: (value: number) => string): Frame {
  const sums = times.map((_, at) => series.reduce((sum, each) => sum + (each.values[at] ?? 0), 0));
  const ticks = ticksOf(Math.max(...sums, 0), 4);
  const top = ticks[ticks.length - 1] || 1;
  const left = 10 + 6.4 * Math.max(2, ...ticks.map((tick) => axis(tick).length));
  const base = height - 20;
  const slot = Math.max(0, width - left) / Math.max(1, times.length);
  return { width, height, left, slot, base, ticks, y: (value) => base - (value / top) * (base - 8) };
}

function Axes({ frame, columns, axis }: { frame: Frame; columns: Columns; axis(value: number): string }): ReactNode {
  const { width, height, left, slot, y } = frame;
  const labels = timeTicks(columns.times, columns.step, Math.max(2, Math.floor((width - left) / 62)));
  return (
    <>
      {frame.ticks.map((tick) => (
        <g key={tick}>
          <line className={tick === 0 ? "base" : "grid-l"} x1={left} x2={width} y1={y(tick)} y2={y(tick)} />
          <text x={left - 8} y={y(tick) + 4} textAnchor="end">
            {axis(tick)}
          </text>
        </g>
      ))}
      {labels.map((tick) => (
        <text
          key={tick.index}
          x={left + (tick.index + 0.5) * slot}
          y={height - 4}
          textAnchor={tick.index === 0 ? "start" : "middle"}
        >
          {tick.label}
        </text>
      ))}
    </>
  );
}

export function StackedBars({ columns, height, format, axis, label, onPick }: BarOptions): ReactNode {
  const [box, width] = useWidth();
  const { times, series } = columns;
  const frame = frameOf(columns, width, height, axis);
  const { left, slot, base, y } = frame;
  const bar = Math.max(1.5, Math.min(26, slot * 0.68));
  const { at, events } = usePointed(times.length, left, slot);
  const flip = at !== null && left + at * slot > width / 2;
  return (
    <div className="plot-box" ref={box}>
      {width > 0 ? (
        <svg
          className={`plot ${onPick ? "can-pick" : ""}`}
          width={width}
          height={height}
          role="img"
          aria-label={label}
          onClick={() => {
            if (at !== null) onPick?.(times[at] ?? 0);
          }}
          {...events}
        >
          {at === null ? null : <rect className="pointed" x={left + at * slot} y={6} width={slot} height={base - 6} />}
          <Axes frame={frame} columns={columns} axis={axis} />
          {times.map((time, index) => (
            <Bar
              key={time}
              x={left + index * slot + (slot - bar) / 2}
              width={bar}
              base={base}
              y={y}
              values={series.map((each) => each.values[index] ?? 0)}
              classes={columns.classes}
              partial={index === times.length - 1}
            />
          ))}
        </svg>
      ) : null}
      {at === null ? null : (
        <Tip
          columns={columns}
          at={at}
          format={format}
          flip={flip}
          left={flip ? width - (left + at * slot) + 10 : left + (at + 1) * slot + 10}
        />
      )}
    </div>
  );
}

function Bar({
  x,
  width,
  base,
  y,
  values,
  classes,
  partial,
}: {
  x: number;
  width: number;
  base: number;
  y(value: number): number;
  values: number[];
  classes: readonly string[] | undefined;
  partial: boolean;
}): ReactNode {
  let below = 0;
  return (
    <g className={partial ? "partial" : undefined}>
      {values.map((value, at) => {
        const from = y(below);
        below += value;
        const height = from - y(below) - 1;
        return value > 0 && height > 0.2 ? (
          <rect
            key={at}
            className={classes?.[at] ?? `s${at + 1}`}
            x={x}
            y={Math.min(base, from) - height - 0.5}
            width={width}
            height={height}
            rx={1.5}
          />
        ) : null;
      })}
    </g>
  );
}

export interface Line {
  name: string;
  values: readonly (number | null)[];
}

/** Times on a logarithmic scale, each line named at its end in the colour of text. */
export function LogLines({
  times,
  step,
  lines,
  height,
  label,
}: {
  times: readonly number[];
  step: number;
  lines: readonly Line[];
  height: number;
  label: string;
}): ReactNode {
  const [box, width] = useWidth();
  const all = lines.flatMap((line) => line.values).filter((value): value is number => value !== null && value > 0);
  const least = Math.min(...all, Infinity) * 0.7;
  const greatest = Math.max(...all, 0) * 1.4;
  if (all.length === 0) return <p className="dim small">Nothing has been answered in this time.</p>;
  const left = 44;
  const right = 56;
  const x = (at: number): number =>
    left + (times.length > 1 ? (at / (times.length - 1)) * Math.max(0, width - left - right) : 0);
  const y = logScale(least, greatest, height - 26, 10);
  const ends = spread(
    lines.map((line) => {
      const last = lastOf(line);
      return last === null ? null : y(last.value);
    }),
    28,
  );
  return (
    <div className="plot-box" ref={box}>
      {width > 0 ? (
        <svg className="plot" width={width} height={height} role="img" aria-label={label}>
          {logTicks(least, greatest, 5).map((tick) => (
            <g key={tick}>
              <line className="grid-l" x1={left} x2={width - right} y1={y(tick)} y2={y(tick)} />
              <text x={left - 8} y={y(tick) + 4} textAnchor="end">
                {duration(tick).replace(":00", " m")}
              </text>
            </g>
          ))}
          {timeTicks(times, step, 4).map((tick) => (
            <text key={tick.index} x={x(tick.index)} y={height - 4} textAnchor="middle">
              {tick.label}
            </text>
          ))}
          {lines.map((line, at) => (
            <path
              key={line.name}
              className={`ln l${at + 1}`}
              d={linePath(joined(line.values).map((value, index) => (value === null ? null : [x(index), y(value)])))}
            />
          ))}
          {lines.map((line, at) => {
            const last = lastOf(line);
            if (last === null) return null;
            return (
              <g key={line.name}>
                <circle className={`e${at + 1}`} cx={x(last.index)} cy={y(last.value)} r={3} />
                <text className="end" x={width - right + 8} y={(ends[at] ?? 0) - 1}>
                  {line.name}
                </text>
                <text x={width - right + 8} y={(ends[at] ?? 0) + 12}>
                  {duration(last.value)}
                </text>
              </g>
            );
          })}
        </svg>
      ) : null}
    </div>
  );
}

/** A quiet hour has no value: the line goes on to the next one that has. */
function joined(values: readonly (number | null)[]): (number | null)[] {
  const first = values.findIndex((value) => value !== null);
  let last = first < 0 ? null : (values[first] ?? null);
  return values.map((value, at) => {
    if (at < first || first < 0) return null;
    last = value ?? last;
    return last;
  });
}

function lastOf(line: Line): { index: number; value: number } | null {
  const values = joined(line.values);
  const value = values[values.length - 1];
  return value === null || value === undefined ? null : { index: values.length - 1, value };
}

/** Labels that would lie on each other are moved apart. */
function spread(places: (number | null)[], gap: number): (number | null)[] {
  const order = places
    .map((place, index) => ({ place, index }))
    .filter((each): each is { place: number; index: number } => each.place !== null)
    .sort((a, b) => a.place - b.place);
  for (let at = 1; at < order.length; ++at) {
    const before = order[at - 1];
    const each = order[at];
    if (before && each && each.place - before.place < gap) each.place = before.place + gap;
  }
  const moved = [...places];
  for (const each of order) moved[each.index] = each.place;
  return moved;
}

/** The figures of a plot as a table, on demand. */
export function AsTable({
  columns,
  format,
  name,
}: {
  columns: Columns;
  format(value: number): string;
  name: string;
}): ReactNode {
  const [open, setOpen] = useState(false);
  useEffect(() => setOpen(false), [name]);
  return (
    <>
      <button type="button" className="link dim small as-table" aria-expanded={open} onClick={() => setOpen(!open)}>
        {open ? "Hide the table" : "Show as table"}
      </button>
      {open ? (
        <div className="table-card plot-table" tabIndex={0} role="region" aria-label={name}>
          <table className="list">
            <thead>
              <tr>
                <th>From</th>
                {columns.series.map((each) => (
                  <th key={each.name} className="n">
                    {each.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {columns.times.map((time, at) => (
                <tr key={time}>
                  <td>{new Date(time * 1000).toLocaleString("en-GB")}</td>
                  {columns.series.map((each) => (
                    <td key={each.name} className="n">
                      {format(each.values[at] ?? 0)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </>
  );
}
