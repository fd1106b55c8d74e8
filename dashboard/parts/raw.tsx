// The numbered events as they came.
import { useMemo, useState, type ReactNode } from "react";
import type { JournalEvent } from "../api/types";
import { clock, count } from "../model/numbers";
import { Button, CopyButton, Said } from "./basic";

const SHOWN = 300;

function nameOf(event: JournalEvent): string {
  const data = event.data as { params?: { update?: { sessionUpdate?: string } } } | null;
  return data?.params?.update?.sessionUpdate ?? event.event;
}

function RawRow({ event }: { event: JournalEvent }): ReactNode {
  const [open, setOpen] = useState(false);
  const text = JSON.stringify(event.data);
  return (
    <li>
      <button type="button" className="h" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span className="n num">{event.id ?? "–"}</span>
        <span className="k">{nameOf(event)}</span>
        <span className="o cut">
          <Said text={text.slice(0, 300)} />
        </span>
        <span className="t num">{event.at === undefined ? "" : clock(event.at, true)}</span>
      </button>
      {open ? (
        <div className="raw-open">
          <CopyButton quiet text={text} label="Copy this event" />
          <pre tabIndex={0}>
            <code>
              <Said text={JSON.stringify(event.data, null, 2)} />
            </code>
          </pre>
        </div>
      ) : null}
    </li>
  );
}

export function RawView({ events, version }: { events: JournalEvent[]; version: number }): ReactNode {
  const [filter, setFilter] = useState("");
  const [limit, setLimit] = useState(SHOWN);
  const found = useMemo(
    () =>
      events.filter(
        (event) => filter === "" || nameOf(event).includes(filter) || JSON.stringify(event.data).includes(filter),
      ),
    // The array grows in place; its version tells when.
    [events, version, filter],
  );
  const from = Math.max(0, found.length - limit);
  return (
    <div className="raw-view">
      <div className="row">
        <input
          type="search"
          value={filter}
          placeholder="Filter by name or text"
          aria-label="Filter the events"
          onChange={(event) => setFilter(event.target.value)}
        />
        <span className="dim small num">
          {count(found.length)} of {count(events.length)}
        </span>
      </div>
      {from > 0 ? (
        <Button onClick={() => setLimit(limit + 1000)}>Show {count(Math.min(1000, from))} earlier ones</Button>
      ) : null}
      <ol className="raw-list">
        {found.slice(from).map((event, at) => (
          <RawRow key={event.id ?? `x${at}`} event={event} />
        ))}
      </ol>
    </div>
  );
}
