// The five figures on top of the overview.
import type { ReactNode } from "react";
import type { UsageColumns } from "../api/types";
import { count, duration, money, percent, short, tokens } from "../model/numbers";
import type { NowFigures } from "../state/now";
import { RANGES, sum, tokensIn, tokensOf, total, type Range } from "../state/usage";
import { Spark } from "./plot";

function Tile({ title, wide, children }: { title: string; wide?: boolean; children: ReactNode }): ReactNode {
  return (
    <div className={`tile ${wide ? "wide" : ""}`}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

const Big = ({ figure, unit }: { figure: string; unit?: string | undefined }): ReactNode => (
  <div className="big">
    {figure}
    {unit ? <small>{unit}</small> : null}
  </div>
);

/** The newest value that is one. */
const last = (values: readonly (number | null)[] | undefined): number | null =>
  [...(values ?? [])].reverse().find((value) => value !== null) ?? null;

function change(now: number, before: number): string {
  if (before <= 0) return "nothing to compare with yet";
  const share = Math.round((100 * (now - before)) / before);
  return share === 0 ? "as much as before" : `${share > 0 ? "up" : "down"} ${Math.abs(share)} % on the time before`;
}

function Answer({ columns, own }: { columns: UsageColumns; own: number | null }): ReactNode {
  const series = columns.series[0];
  const figures = [
    ["p50", last(series?.p50_ms)],
    ["p90", last(series?.p90_ms)],
    ["p99", last(series?.p99_ms)],
  ] as const;
  return (
    <Tile title="Time to answer" wide>
      <dl className="trio">
        {figures.map(([name, value]) => {
          const [figure = "–", unit = ""] = duration(value).split(" ");
          return (
            <div key={name}>
              <dt>{name}</dt>
              <dd>
                {figure}
                {unit ? <small> {unit}</small> : null}
              </dd>
            </div>
          );
        })}
      </dl>
      {own === null ? null : (
        <div className="more">
          Gateway’s own part <b className="num">{duration(own)}</b>
        </div>
      )}
      <div className="more dim">runs and turns together</div>
    </Tile>
  );
}

interface Options {
  now: NowFigures;
  all: UsageColumns;
  before: UsageColumns | null;
  range: Range;
}

export function Tiles({ now, all, before, range }: Options): ReactNode {
  const label = RANGES[range].label;
  const asks = total(all, (series) => series.asks);
  const failed = sum(total(all, (series) => series.failed));
  const spent = total(all, (series) => series.cost_usd);
  const used = total(all, tokensOf);
  const input = sum(total(all, tokensIn));
  const cached = sum(total(all, (series) => series.cache_read_tokens));
  const out = sum(total(all, (series) => series.output_tokens));
  const [figure, unit] = short(sum(used));
  const earlier = before === null ? null : sum(total(before, (series) => series.cost_usd));
  return (
    <section className="tiles" aria-label="Now">
      {now.requestsPerMinute === null ? null : (
        <Tile title="Requests">
          <Big figure={count(Math.round(now.requestsPerMinute))} unit="a minute" />
          <div className="more">
            {now.refusedShare === null ? "none refused or failed" : `${percent(now.refusedShare, 1)} refused or failed`}
          </div>
          <Spark values={now.history} label="Requests in the last minutes" />
        </Tile>
      )}
      <Tile title={now.running === null ? `Runs and turns, ${label}` : "Runs and turns"}>
        {now.running === null ? <Big figure={count(sum(asks))} /> : <Big figure={count(now.running)} unit="running" />}
        <div className="more">
          {now.waiting ? (
            <>
              <span className="t-ask">{count(now.waiting)} wait</span>,{" "}
            </>
          ) : null}
          {count(sum(asks))} in {label}, {failed > 0 ? `${count(failed)} failed` : "none failed"}
        </div>
        <Spark values={asks} label={`Runs and turns, ${label}`} />
      </Tile>
      <Answer columns={all} own={now.ownMs} />
      <Tile title={`Tokens, ${label}`}>
        <Big figure={figure} unit={unit} />
        <div className="more">
          {tokens(out)} out{input > 0 ? `, ${percent(cached, input)} cached` : ""}
        </div>
        <Spark values={used} label={`Tokens, ${label}`} />
      </Tile>
      <Tile title={`Cost, ${label}`}>
        <Big figure={money(sum(spent))} />
        <div className="more">{earlier === null ? "as the agents report it" : change(sum(spent), earlier)}</div>
        <Spark values={spent} label={`Cost, ${label}`} />
      </Tile>
    </section>
  );
}
