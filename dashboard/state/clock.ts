// One timer for all that counts seconds on the page.
import { useSyncExternalStore } from "react";
import { gatewayNow } from "../api/client";

const listeners = new Set<() => void>();
let second = Math.floor(gatewayNow());

setInterval(() => {
  if (document.hidden) return;
  second = Math.floor(gatewayNow());
  for (const listener of [...listeners]) listener();
}, 1000);

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
  };
}

/** The gateway's time in whole seconds; what calls this is drawn each second. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => second);

/** The same, in steps of so many seconds. */
export const useNowEvery = (seconds: number): number =>
  useSyncExternalStore(subscribe, () => second - (second % seconds));
