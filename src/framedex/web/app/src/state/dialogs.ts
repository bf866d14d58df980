/** The dialog that is open, one at a time. */
import { signal } from "@preact/signals";
import type { ComponentChild } from "preact";

export const dialog = signal<(() => ComponentChild) | null>(null);

export function openDialog(render: () => ComponentChild): void {
  dialog.value = render;
}

export function closeDialog(): void {
  dialog.value = null;
}
