/** The one listener for keys: it finds the row of {@link KEYS} that a key means, and calls who handles it. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { keyTarget, root } from "#host";
import { KEYS, type Key, permissionOf, SCOPES, type Scope } from "./table";

/** Handles a key; the text is the key that was pressed, for rows with several. */
export type Handler = (pressed: string) => void;
export type Handlers = Readonly<Record<string, Handler>>;

interface Binding {
  scope: Scope;
  handlers: () => Handlers;
}

const bindings: Binding[] = [];
const SEQUENCE_MS = 1_500;
/** Whether single letters are keys; some people cannot use them. */
export const letterKeys = signal(readLetterKeys());
let pending: { text: string; at: number } | null = null;

function readLetterKeys(): boolean {
  return typeof localStorage === "undefined" || localStorage.getItem("framedex.letter-keys") !== "off";
}

/** Turn single letters as keys on or off. */
export function setLetterKeys(on: boolean): void {
  letterKeys.value = on;
  localStorage.setItem("framedex.letter-keys", on ? "on" : "off");
}

/** Return the text of a key event as in {@link KEYS}. */
export function keyText(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "shiftKey" | "altKey">): string {
  const key = event.key === " " ? "Space" : event.key;
  const parts: string[] = [];
  if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
  if (event.altKey) parts.push("Alt");
  const isLetter = /^[a-z]$/i.test(key);
  if (event.shiftKey && (key.length > 1 || isLetter)) parts.push("Shift");
  parts.push(isLetter ? key.toLowerCase() : key);
  return parts.join("+");
}

/** Return the rows of a scope that a key means, or begins. */
export function matches(scope: Scope, text: string): Key[] {
  return KEYS.filter((key) => key.scope === scope && key.keys.includes(text));
}

function begins(text: string): boolean {
  return KEYS.some((key) => key.keys.some((each) => each.startsWith(`${text} `)));
}

function isTextbox(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement)
    return true;
  return (
    target instanceof HTMLInputElement && !["checkbox", "radio", "button", "submit", "range"].includes(target.type)
  );
}

/** Return whether a key belongs to the element that has the focus, and not to the app. */
function belongsToTarget(event: KeyboardEvent, text: string): boolean {
  const target = event.target;
  if (isTextbox(target))
    return !(text === "Escape" || text === "F6" || (text.startsWith("Ctrl+") && text === "Ctrl+k"));
  if (!(target instanceof Element)) return false;
  if (target instanceof HTMLInputElement && target.type === "range")
    return text.startsWith("Arrow") || text === "Home" || text === "End";
  const isButton = target.closest("button, a, summary, input, [role=option], [role=tab], [role=menuitem]") !== null;
  return isButton && (text === "Enter" || text === "Space");
}

/** Take a key event; return whether somebody handled it. */
export function dispatch(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.isComposing || ["Shift", "Control", "Alt", "Meta"].includes(event.key))
    return false;
  const single = keyText(event);
  if (belongsToTarget(event, single)) return false;
  const isPlain = single.length === 1;
  if (isPlain && /[a-z]/.test(single) && !letterKeys.value) return false;
  const now = event.timeStamp; // when it was pressed: a busy page handles keys later
  const text = pending && now - pending.at < SEQUENCE_MS ? `${pending.text} ${single}` : single;
  pending = null;
  if (isPlain && text === single && begins(single) && !root.querySelector("dialog[open]")) {
    pending = { text: single, at: now };
    return true;
  }
  return handle(text, single);
}

function handle(text: string, pressed: string): boolean {
  const isModal = root.querySelector("dialog[open]") !== null;
  const ordered = [...bindings].sort((a, b) => SCOPES.indexOf(a.scope) - SCOPES.indexOf(b.scope));
  for (const binding of ordered) {
    if (isModal !== (binding.scope === "dialog")) continue;
    for (const key of matches(binding.scope, text)) {
      const handler = binding.handlers()[key.id];
      if (handler) {
        if (!isRefused(key)) handler(pressed);
        return true;
      }
    }
  }
  return false;
}

/** Asked before a key is handled that needs a permission; it tells the user why not, and returns whether it did. */
export const refuseKey: { current: (permission: string) => boolean } = { current: () => false };

function isRefused(key: Key): boolean {
  const permission = permissionOf(key);
  return permission !== null && refuseKey.current(permission);
}

/** Handle the keys of a scope while a component is shown. */
export function useKeys(scope: Scope, handlers: Handlers): void {
  const latest = useRef(handlers);
  latest.current = handlers;
  // Before anything is painted, so that what is seen has its keys.
  useLayoutEffect(() => bind(scope, () => latest.current), [scope]);
}

/** Handle the keys of a scope until the returned function is called. */
export function bind(scope: Scope, handlers: () => Handlers): () => void {
  const binding = { scope, handlers };
  bindings.unshift(binding);
  return () => {
    bindings.splice(bindings.indexOf(binding), 1);
  };
}

/** Call a row's handler as if its key had been pressed; return whether there was one. */
export function perform(key: Key): boolean {
  const found = bindings.find((each) => each.scope === key.scope && each.handlers()[key.id]);
  if (found && !isRefused(key)) found.handlers()[key.id]?.(key.keys[0] ?? "");
  return found !== undefined;
}

/** Return the rows that somebody handles now. */
export function handledKeys(): Key[] {
  return KEYS.filter((key) => bindings.some((each) => each.scope === key.scope && each.handlers()[key.id]));
}

/** Listen to the keys of the window. */
export function startKeys(): void {
  keyTarget().addEventListener("keydown", (event) => {
    if (dispatch(event as KeyboardEvent)) event.preventDefault();
  });
}
