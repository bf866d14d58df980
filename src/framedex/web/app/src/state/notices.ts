/** What the status bar says: the last message, read aloud by screen readers, and what is being done. */
import { signal } from "@preact/signals";

export interface Notice {
  text: string;
  kind: "info" | "error";
  /** Distinguishes equal messages. */
  number: number;
}

export const notice = signal<Notice | null>(null);
/** The number of changes that the server has not confirmed yet. */
export const pendingChanges = signal(0);

let number = 0;

/** Say something in the status bar. */
export function say(text: string, kind: Notice["kind"] = "info"): void {
  notice.value = { text, kind, number: ++number };
}

/** Say why something failed. */
export function sayError(error: unknown): void {
  say(error instanceof Error ? error.message : String(error), "error");
}
