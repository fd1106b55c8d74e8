import type { ReactNode } from "react";
import type { Route } from "../state/route";
import { identity } from "../state/keep";
import { useStore } from "../state/store";
import { Empty, LinkButton } from "../parts/basic";
import { AppsPage } from "./apps";
import { AuditPage } from "./audit";
import { OverviewPage } from "./overview";
import { PlayPage } from "./play";
import { RunsPage } from "./runs";
import { SessionPage } from "./session";
import { SessionsPage } from "./sessions";
import { MorePage, SettingsPage } from "./settings";

const OWNERS = new Set(["apps", "audit"]);

export function Pages({ route }: { route: Route }): ReactNode {
  const mine = useStore(identity);
  const first = route.rest[0] ?? null;
  if (OWNERS.has(route.page) && mine?.kind !== "admin") return <Nothing />;
  switch (route.page) {
    case "overview":
      return <OverviewPage />;
    case "sessions":
      return first === null ? <SessionsPage /> : <SessionPage key={first} id={first} app={route.query.get("app")} />;
    case "runs":
      return <RunsPage id={first} />;
    case "play":
      return <PlayPage />;
    case "apps":
      return <AppsPage name={first} />;
    case "audit":
      return <AuditPage />;
    case "settings":
      return <SettingsPage tab={first} />;
    case "more":
      return <MorePage />;
    default:
      return <Nothing />;
  }
}

function Nothing(): ReactNode {
  return (
    <>
      <h1 className="vh">Nothing here</h1>
      <Empty icon="search" title="There is nothing at this address.">
        <LinkButton to="#/">Overview</LinkButton>
      </Empty>
    </>
  );
}
