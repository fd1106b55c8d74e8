// A value that components may watch. A change renders those that read it, and none else.
import { useRef, useSyncExternalStore } from "react";

export interface Store<T> {
  get(): T;
  set(next: T): void;
  update(change: (now: T) => T): void;
  subscribe(listener: () => void): () => void;
}

export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const listeners = new Set<() => void>();
  const set = (next: T): void => {
    if (Object.is(next, value)) return;
    value = next;
    for (const listener of [...listeners]) listener();
  };
  return {
    get: () => value,
    set,
    update: (change) => set(change(value)),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}

export function useStore<T>(store: Store<T>): T {
  return useSyncExternalStore(store.subscribe, store.get);
}

/** One part of a store's value; renders only when that part is another one by `same`. */
export function usePart<T, P>(store: Store<T>, pick: (value: T) => P, same: (a: P, b: P) => boolean = Object.is): P {
  const last = useRef<{ part: P } | null>(null);
  return useSyncExternalStore(store.subscribe, () => {
    const part = pick(store.get());
    if (last.current === null || !same(last.current.part, part)) last.current = { part };
    return last.current.part;
  });
}
