// From the owner's token, an app's token or a one-time code to a token of this browser's own. The page holds nothing else.
import { ask, proofNeeded, signInAgain } from "./client";
import type { WhoAmI } from "./types";
import { keepIdentity } from "../state/keep";
import { forgetLoaded } from "../state/load";

export type Proof = { token: string } | { code: string };

export async function signIn(proof: Proof, stays: boolean): Promise<void> {
  const { token } = await ask<{ token: string }>("ui/sign-in", {
    method: "POST",
    bare: true,
    json: { ...proof, stay: stays },
  });
  const who = await ask<WhoAmI>("whoami", { bare: true, headers: { Authorization: `Bearer ${token}` } });
  forgetLoaded();
  keepIdentity({ token, kind: who.kind, name: who.name ?? null, stays });
  signInAgain.set(false);
}

/** Shows the owner's token once more, for what makes or ends tokens. */
export async function prove(token: string): Promise<void> {
  await ask("ui/proof", { method: "POST", json: { token } });
  proofNeeded.get()?.done(true);
}
