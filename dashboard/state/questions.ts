// The questions that wait anywhere, for the count in the frame, the title of the tab and the overview.
import { ask, askIfThere } from "../api/client";
import type { Question } from "../api/types";
import { identity } from "./keep";
import { changed } from "./load";
import { createStore } from "./store";

/** Null: this gateway has no list over all sessions. */
export const questions = createStore<Question[] | null>([]);

let timer: ReturnType<typeof setTimeout> | undefined;
let missing = false;
const EVERY_MS = 5000;

const bySoonest = (a: Question, b: Question): number => (a.expires_at ?? Infinity) - (b.expires_at ?? Infinity);

export async function loadQuestions(): Promise<void> {
  clearTimeout(timer);
  try {
    if (identity.get() !== null && !document.hidden && !missing) {
      const page = await askIfThere<{ permissions: Question[] }>("permissions");
      missing = page === null;
      takeQuestions(page === null ? null : page.permissions);
    }
  } catch {
    // The light in the frame says that the gateway is away; what is shown stays.
  }
  timer = setTimeout(() => {
    void loadQuestions();
  }, EVERY_MS);
}

export function takeQuestions(list: Question[] | null): void {
  const next = list === null ? null : [...list].sort(bySoonest);
  if (JSON.stringify(next) !== JSON.stringify(questions.get())) questions.set(next);
}

export interface Answer {
  decision?: "allow" | "deny";
  option_id?: string;
}

export async function answerQuestion(
  session: string,
  app: string | null,
  question: string,
  answer: Answer,
): Promise<void> {
  await ask(`sessions/${encodeURIComponent(session)}/permissions/${encodeURIComponent(question)}`, {
    method: "POST",
    json: answer,
    app,
  });
  questions.update((list) => list?.filter((each) => each.id !== question) ?? null);
  changed("questions");
  changed("sessions");
}
