import { keepTheme, readTheme, type Theme } from "./keep";
import { createStore } from "./store";

export const theme = createStore<Theme>(readTheme());

function show(next: Theme): void {
  if (next === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = next;
}

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };

export function nextTheme(): void {
  const next = NEXT[theme.get()];
  keepTheme(next);
  theme.set(next);
  show(next);
}

show(theme.get());
