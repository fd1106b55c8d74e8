import { useEffect, useState, type FormEvent, type ReactNode } from "react";
import { ApiError, proofNeeded } from "../api/client";
import { prove, signIn, type Proof } from "../api/sign_in";
import { Mark } from "../icons";
import { signInCode } from "../state/route";
import { useStore } from "../state/store";
import { Button, CopyButton, Refusal } from "../parts/basic";

const SENTENCES: Record<string, string> = {
  unauthorized: "This token is not known. It may have been revoked or rotated.",
  code_used: "This link has been used already. clawdforge dashboard prints another one.",
  code_expired: "This link is too old. clawdforge dashboard prints another one.",
};

const isLoopback = (): boolean => /^(localhost|127\.|\[::1\]|.*\.localhost$)/.test(location.hostname);

function useSignIn(): { busy: boolean; error: ApiError | null; enter(proof: Proof, stays: boolean): void } {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const enter = (proof: Proof, stays: boolean): void => {
    setBusy(true);
    setError(null);
    signIn(proof, stays)
      .catch((fault: unknown) => {
        const said = fault instanceof ApiError ? fault : new ApiError(0, "page_fault", String(fault));
        const sentence = SENTENCES[said.code] ?? said.detail;
        setError(new ApiError(said.status, said.code, sentence, said.requestId, said.retryAfter));
      })
      .finally(() => setBusy(false));
  };
  return { busy, error, enter };
}

/** `again`: a sheet over the page, which stays as it is. */
export function SignIn({ again }: { again: boolean }): ReactNode {
  const [token, setToken] = useState("");
  const [stays, setStays] = useState(false);
  const code = useStore(signInCode);
  const { busy, error, enter } = useSignIn();
  useEffect(() => {
    if (code === null) return;
    signInCode.set(null);
    enter({ code }, false);
  }, [code]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (token.trim() === "") return;
    enter({ token: token.trim() }, stays);
    setToken("");
  };
  return (
    <main className="sign-in" id="main">
      <form className="card" onSubmit={submit} aria-label="Sign in">
        <h1>
          <Mark />
          clawdforge
        </h1>
        {again ? (
          <p>
            <b>Your sign-in has ended.</b> Sign in again; what you were doing goes on, and drafts stay.
          </p>
        ) : null}
        <p className="muted">Open the link that this prints, on the gateway’s machine:</p>
        <div className="command">
          <code>clawdforge dashboard</code>
          <CopyButton quiet text="clawdforge dashboard" />
        </div>
        <p className="muted">or paste a token, the owner’s or an app’s:</p>
        <div className="row">
          <input
            type="password"
            value={token}
            autoComplete="off"
            spellCheck={false}
            aria-label="Token"
            placeholder="cf_…"
            onChange={(event) => setToken(event.target.value)}
          />
          <Button kind="go" type="submit" disabled={busy || token.trim() === ""}>
            {busy ? "Signs in" : "Sign in"}
          </Button>
        </div>
        <label className="check">
          <input type="checkbox" checked={stays} onChange={(event) => setStays(event.target.checked)} />
          Stay signed in on this browser for 30 days
        </label>
        {error ? <Refusal error={error} /> : null}
        {location.protocol === "http:" && !isLoopback() ? (
          <p className="warning">
            This page talks over plain HTTP to {location.host}. Everybody on the way can read the token.
          </p>
        ) : null}
      </form>
    </main>
  );
}

/** What makes or ends tokens asks the owner's browser for the token once more, after ten minutes. */
export function ProofSheet(): ReactNode {
  const [token, setToken] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setError(null);
    prove(token.trim()).catch((fault: unknown) =>
      setError(fault instanceof ApiError ? fault : new ApiError(0, "page_fault", String(fault))),
    );
    setToken("");
  };
  return (
    <div className="again">
      <div className="sign-in">
        <form className="card" onSubmit={submit} aria-label="Show the owner’s token">
          <h2>Show the owner’s token once more</h2>
          <p className="muted">This makes or ends a token, and your last proof is older than ten minutes.</p>
          <input
            type="password"
            value={token}
            autoFocus
            autoComplete="off"
            aria-label="Owner’s token"
            onChange={(event) => setToken(event.target.value)}
          />
          {error ? <Refusal error={error} /> : null}
          <div className="row">
            <span className="grow" />
            <Button kind="quiet" onClick={() => proofNeeded.get()?.done(false)}>
              Leave it
            </Button>
            <Button kind="go" type="submit" disabled={token.trim() === ""}>
              Show it
            </Button>
          </div>
        </form>
      </div>
    </div>
  );
}
