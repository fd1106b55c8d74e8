// Keys of a page. None acts in a field; none takes one of the browser's own.
import { useEffect } from "react";
import { lettersAreOn } from "../state/keep";

export type Keys = Record<string, () => void>;

const inField = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** By `KeyboardEvent.key`; letters are those without Ctrl, Alt and Meta. */
export function useKeys(keys: Keys, dependencies: readonly unknown[]): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const act = keys[event.key];
      if (
        act === undefined ||
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        event.defaultPrevented ||
        inField(event.target)
      )
        return;
      if (event.key.length === 1 && !lettersAreOn.get()) return;
      if (document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      act();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, dependencies);
}

const SEQUENCE_MS = 1200;

/** Two letters, one after the other, such as "g s". */
export function useSequences(keys: Keys): void {
  useEffect(() => {
    let first: { key: string; at: number } | null = null;
    const press = (event: KeyboardEvent): void => {
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        inField(event.target) ||
        !lettersAreOn.get() ||
        event.key.length !== 1
      )
        return;
      const act =
        first !== null && performance.now() - first.at < SEQUENCE_MS ? keys[`${first.key} ${event.key}`] : undefined;
      first = { key: event.key, at: performance.now() };
      if (act !== undefined) {
        event.preventDefault();
        act();
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}
