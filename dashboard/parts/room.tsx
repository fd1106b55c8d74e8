// Room left: each bounded thing beside its bound. Health: of the gateway alone.
import type { ReactNode } from "react";
import { gauge, quantile, type Metrics } from "../model/metrics";
import { bytes, count, duration } from "../model/numbers";
import { Card, Chip, Meter } from "./basic";

export interface Room {
  name: string;
  used: number;
  max: number | null;
  text?: string;
  note?: string;
}

export function RoomLeft({ rooms, className = "c4" }: { rooms: Room[]; className?: string }): ReactNode {
  return (
    <Card className={className} title="Room left" sub="of the limits">
      <div className="meters">
        {rooms.map((room) => (
          <div key={room.name}>
            <div className="row">
              <b>{room.name}</b>
              <span className="v">
                {room.text ?? (room.max === null ? count(room.used) : `${count(room.used)} of ${count(room.max)}`)}
              </span>
            </div>
            {room.max === null ? null : <Meter used={room.used} of={room.max} label={room.name} />}
            {room.note ? <p className="t-ask small">{room.note}</p> : null}
          </div>
        ))}
      </div>
    </Card>
  );
}

export interface Fact {
  name: string;
  value: string;
  bad?: boolean;
}

export function factsOf(metrics: Metrics): Fact[] {
  const ms = (name: string): string => {
    const value = quantile(metrics, name, 0.99);
    return value === null ? "–" : `within ${duration(value * 1000)}`;
  };
  const left = gauge(metrics, "recovered");
  const failures =
    (gauge(metrics, "ledger_failed_checkpoints_total") ?? 0) +
    (gauge(metrics, "sweep_failures_total") ?? 0) +
    (gauge(metrics, "ledger_stalled_jobs_total") ?? 0);
  return [
    { name: "Ledger, 99 of 100 commits", value: ms("ledger_commit_seconds") },
    { name: "Loop delay, 99 of 100", value: ms("io_loop_lag_seconds") },
    { name: "Journals", value: bytes(gauge(metrics, "journal_kept_bytes")) },
    { name: "Memory held for callers", value: bytes(gauge(metrics, "memory_held_bytes")) },
    { name: "Mended at the last start", value: left ? count(left) : "nothing" },
    { name: "Failures of ledger and sweeps", value: failures > 0 ? count(failures) : "none", bad: failures > 0 },
  ];
}

export function Health({ ready, facts }: { ready: string | null; facts: Fact[] }): ReactNode {
  const bad = facts.some((fact) => fact.bad);
  const chip =
    ready === null ? (
      bad ? (
        <Chip tone="ask" dot>
          Look here
        </Chip>
      ) : (
        <Chip tone="ok" dot>
          All well
        </Chip>
      )
    ) : (
      <Chip tone="bad" dot>
        Not taking work
      </Chip>
    );
  return (
    <Card className="c4" title="Health" aside={chip}>
      {ready === null ? null : <p className="t-bad small">{ready}</p>}
      <dl className="facts">
        {facts.map((fact) => (
          <div key={fact.name}>
            <dt>{fact.name}</dt>
            <dd className={fact.bad ? "t-ask" : undefined}>{fact.value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

export function roomsOf(metrics: Metrics): Room[] {
  const value = (name: string): number => gauge(metrics, name) ?? 0;
  return [
    {
      name: "Runs",
      used: value("runs_running"),
      max: null,
      text: `${count(value("runs_running"))} running, ${count(value("runs_waiting"))} wait`,
    },
    { name: "Open sessions", used: value("open_sessions"), max: null },
    { name: "Agent processes", used: value("agents_running"), max: null },
    { name: "Turns that wait", used: value("turns_waiting"), max: null },
    { name: "Connections", used: value("http_connections"), max: null },
    { name: "Questions open", used: value("permissions_open"), max: null },
  ];
}

export interface Overview {
  started_at: number;
  ready: boolean;
  apps: number;
  rooms: { name: string; used: number; max: number; at_max: string }[];
}

const ROOM_NAMES: Record<string, string> = {
  runs: "Runs",
  runs_waiting: "Runs that wait",
  sessions_open: "Open sessions",
  agents: "Agent processes",
  connections: "Connections",
};
const NEARLY_FULL = 0.8;

/** What happens at the bound is said when it is near. */
export function boundedRooms(overview: Overview): Room[] {
  return overview.rooms.map((room) => ({
    name: ROOM_NAMES[room.name] ?? room.name.replaceAll("_", " "),
    used: room.used,
    max: room.max,
    ...(room.max > 0 && room.used >= NEARLY_FULL * room.max ? { note: room.at_max } : {}),
  }));
}
