// The first screen: what waits for a person, what it costs, how it goes.
import { useEffect, type ReactNode } from "react";
import { ask, askIfThere, gatewayNow, request } from "../api/client";
import type { Agent, Question } from "../api/types";
import { Icon } from "../icons";
import { duration, plural } from "../model/numbers";
import { newTool, absorbUpdate } from "../model/tools";
import { learn } from "../state/facts";
import { identity } from "../state/keep";
import { useLoaded } from "../state/load";
import { useNowFigures } from "../state/now";
import { questions } from "../state/questions";
import { route, setQuery } from "../state/route";
import { useStore } from "../state/store";
import { RANGES, sum, total, useUsage, type Range } from "../state/usage";
import { Outline, PageHead, Refusal, Said, Segments } from "../parts/basic";
import { useTitle } from "../parts/frame";
import { Agents, AnswerTimes, ByApp, Ends, JustNow } from "../parts/overview_cards";
import { FirstSteps } from "../parts/first_steps";
import { FindButton } from "../parts/palette";
import { QuestionCard, type Asked } from "../parts/question";
import { boundedRooms, factsOf, Health, RoomLeft, roomsOf, type Overview } from "../parts/room";
import { Tiles } from "../parts/tiles";

const RANGE_NAMES = Object.keys(RANGES) as Range[];

export function askedFrom(question: Question, owner: boolean): Asked {
  const tool = newTool("", { id: null, event: "", data: null });
  absorbUpdate(tool, { ...(question.tool ?? {}), kind: question.kind } as Record<string, unknown>, {
    id: null,
    event: "",
    data: null,
  });
  return {
    id: question.id,
    session: question.session_id ?? "",
    app: owner ? (question.app_name ?? null) : null,
    agent: question.agent ?? "The agent",
    title: question.title,
    kind: question.kind,
    options: question.options,
    askedAt: question.asked_at,
    expiresAt: question.expires_at,
    tool,
    message: question,
    truncated: (question.truncated ?? question.tool?.truncated) === true,
  };
}

function NeedsYou({ owner, agents }: { owner: boolean; agents: Agent[] | null }): ReactNode {
  const waiting = useStore(questions);
  const limited = (agents ?? []).filter((agent) => agent.door);
  const full = (agents ?? []).flatMap((agent) =>
    (agent.windows ?? []).filter((window) => (window.used ?? 0) >= 0.9).map((window) => ({ agent, window })),
  );
  if ((waiting?.length ?? 0) + limited.length + full.length === 0)
    return waiting === null ? null : (
      <p className="calm">
        <Icon name="tick" />
        Nothing waits for you.
      </p>
    );
  return (
    <section className="needs-list" aria-label="Needs you">
      {(waiting ?? []).map((question, at) => (
        <QuestionCard
          key={question.id}
          asked={askedFrom(question, owner)}
          keys={at === 0}
          compact
          where={
            <>
              <Said text={question.app_name ?? ""} />
              {question.session_title ? (
                <>
                  , “<Said text={question.session_title} />”
                </>
              ) : null}
              , turn {question.turn_index}
            </>
          }
        />
      ))}
      {limited.map((agent) => (
        <Need
          key={agent.name}
          what={`${agent.name} is at its limit`}
          where={`It starts again at ${new Date((agent.door?.until ?? 0) * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}; until then new work waits or is refused.`}
        />
      ))}
      {full.map(({ agent, window }) => (
        <Need
          key={agent.name + window.name}
          what={`${agent.name} has used ${Math.round(100 * (window.used ?? 0))} % of its ${window.name} window`}
          where={
            window.resets_at
              ? `It starts again at ${new Date(window.resets_at * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}.`
              : ""
          }
        />
      ))}
    </section>
  );
}

function Need({ what, where }: { what: string; where: string }): ReactNode {
  return (
    <div className="needs">
      <div className="need">
        <span className="ico">
          <Icon name="clock" />
        </span>
        <p>
          <span className="what">{what}</span>
          <br />
          <span className="where">{where}</span>
        </p>
      </div>
    </div>
  );
}

async function whyNotReady(): Promise<string | null> {
  const response = await request("readyz", { bare: true });
  if (response.ok) return null;
  const said = (await response.json()) as { detail?: string };
  return said.detail ?? "The gateway is not ready.";
}

function subOf(known: Overview | null, agents: Agent[] | null): string {
  const parts =
    known === null ? [] : [`up ${duration((gatewayNow() - known.started_at) * 1000)}`, plural(known.apps, "app")];
  if (agents !== null) parts.push(`${plural(agents.filter((agent) => agent.present).length, "agent")} installed`);
  return parts.join(", ");
}

export function OverviewPage(): ReactNode {
  useTitle("Overview");
  const owner = useStore(identity)?.kind === "admin";
  const { query } = useStore(route);
  const named = query.get("range") as Range | null;
  const range: Range = named !== null && RANGE_NAMES.includes(named) ? named : "24h";
  const by = owner ? "app" : "agent";
  const all = useUsage(owner, range, null);
  const apart = useUsage(owner, range, by);
  const before = useUsage(owner, range, null, true);
  const now = useNowFigures(owner);
  const agents = useLoaded("agents", (signal) => ask<{ agents: Agent[] }>("agents", { signal }), {
    topics: ["agents"],
    everyMs: 30_000,
  });
  const known = useLoaded(owner ? "overview" : null, (signal) => askIfThere<Overview>("admin/overview", { signal }), {
    everyMs: 3000,
  }).data;
  useEffect(() => {
    if (known !== null) learn({ apps: known.apps });
  }, [known]);
  const ready = useLoaded("readyz", whyNotReady, { everyMs: 15_000 });
  useEffect(() => {
    if (now.metrics !== null) learn({ running: now.running });
  }, [now.metrics, now.running]);
  const pick = (value: Range): void => setQuery({ range: value === "24h" ? null : value });
  const options = RANGE_NAMES.map((name) => [name, RANGES[name].label] as const);
  const list = agents.data?.agents ?? null;
  const quiet = all.data !== null && sum(total(all.data, (series) => series.asks)) === 0;
  return (
    <>
      <PageHead title="Overview" sub={subOf(known, list)}>
        <Segments label="Time range" value={range} options={options} onPick={pick} />
        <FindButton />
      </PageHead>
      <Segments className="m-range" label="Time range" value={range} options={options} onPick={pick} />
      {all.error && all.data === null ? <Refusal error={all.error} onRetry={all.reload} /> : null}
      {owner && quiet ? <FirstSteps agents={list} /> : null}
      <NeedsYou owner={owner} agents={list} />
      {all.data === null ? <Outline rows={2} /> : <Tiles now={now} all={all.data} before={before.data} range={range} />}
      <div className="grid">
        {apart.data === null ? null : <ByApp data={apart.data} range={range} by={by} />}
        {list === null ? null : <Agents agents={list} />}
        {all.data === null ? null : <AnswerTimes data={all.data} />}
        {all.data === null ? null : <Ends data={all.data} />}
        {now.metrics === null ? null : <RoomLeft rooms={known === null ? roomsOf(now.metrics) : boundedRooms(known)} />}
        {owner ? <JustNow /> : null}
        {now.metrics === null ? null : <Health ready={ready.data} facts={factsOf(now.metrics)} />}
      </div>
    </>
  );
}
