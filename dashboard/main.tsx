// The dashboard: a page that uses the public API, and nothing else.
import { StrictMode, useEffect, useState, type ReactNode } from "react";
import { createRoot } from "react-dom/client";
import { proofNeeded, signInAgain } from "./api/client";
import { PhoneTabs, PhoneTop, PLACES, Sidebar } from "./parts/frame";
import { Boundary } from "./parts/boundary";
import { openKeys, Palette } from "./parts/palette";
import { useKeys, useSequences } from "./parts/keys";
import { Pages } from "./pages/pages";
import { ProofSheet, SignIn } from "./pages/sign_in";
import { learnVersion } from "./state/facts";
import { askOtherTabs, identity } from "./state/keep";
import { loadQuestions, questions } from "./state/questions";
import { go, route, sessionLink, signInCode } from "./state/route";
import { useStore } from "./state/store";
import { nextTheme } from "./state/theme";

const OTHER_TABS_MS = 300;

function nextQuestion(): void {
  const first = questions.get()?.[0];
  if (first?.session_id) go(sessionLink(first.session_id, first.app_name ?? null));
}

function Signed(): ReactNode {
  const now = useStore(route);
  const again = useStore(signInAgain);
  const proof = useStore(proofNeeded);
  useEffect(() => {
    void loadQuestions();
    void learnVersion();
  }, []);
  useKeys({ t: nextTheme, "?": openKeys, n: nextQuestion }, []);
  useSequences({
    "g o": () => go("#/"),
    "g s": () => go("#/sessions"),
    "g r": () => go("#/runs"),
    "g p": () => go("#/play"),
    "g a": () => go("#/apps"),
    "g u": () => go("#/audit"),
    "g ,": () => go("#/settings"),
  });
  const title = PLACES.find((place) => place.page === now.page)?.name ?? "clawdforge";
  const inSession = now.page === "sessions" && now.rest.length > 0;
  return (
    <div className="app">
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        To the content
      </a>
      <Sidebar />
      <main className="main" id="main" tabIndex={-1}>
        {inSession ? null : <PhoneTop title={title} />}
        <Boundary key={now.page + now.rest.join("/")} name={now.page}>
          <Pages route={now} />
        </Boundary>
      </main>
      <PhoneTabs />
      <Palette />
      {proof ? <ProofSheet /> : null}
      {again ? (
        <div className="again">
          <SignIn again />
        </div>
      ) : null}
    </div>
  );
}

function Page(): ReactNode {
  const mine = useStore(identity);
  const code = useStore(signInCode);
  // With a code no other tab is asked; and the form stays when the code is taken, to say how it went.
  const [asked, setAsked] = useState(mine !== null || code !== null);
  useEffect(() => {
    if (!asked) void askOtherTabs(OTHER_TABS_MS).then(() => setAsked(true));
  }, []);
  if (mine !== null && code === null) return <Signed />;
  return asked || code !== null ? <SignIn again={false} /> : null;
}

const place = document.getElementById("root");
if (place !== null)
  createRoot(place).render(
    <StrictMode>
      <Boundary name="page">
        <Page />
      </Boundary>
    </StrictMode>,
  );
