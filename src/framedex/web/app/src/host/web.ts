/**
 * What surrounds the app: here the page that the service serves. The app reaches it by `#host`, which is another module
 * in a notebook (see the key `imports` of package.json).
 */
import type { ReadonlySignal } from "@preact/signals";
import type { KernelState } from "../widget/kernel";

/** The path below which the service is reached: empty, or the prefix of a proxy. */
export const BASE = (
  typeof document === "undefined"
    ? ""
    : (document.querySelector<HTMLMetaElement>('meta[name="framedex-base"]')?.content ?? "")
).replace(/\/$/, "");

/** Where the elements of the app are found, and which of them has the focus. */
export const root: Document | ShadowRoot = globalThis.document;

/** Where the app is rendered. */
export const place = (): HTMLElement => document.getElementById("app")!;

/** What keys are pressed in. */
export const keyTarget = (): EventTarget => globalThis;

/** Ends listeners once the app is closed; the page ends all of its own. */
export const closing: AbortSignal | undefined = undefined;

/** Whether the app may take the focus without having been asked. */
export const mayTakeFocus = (): boolean => true;

/** Send a request to the service. */
export const request = (url: string, init: RequestInit): Promise<Response> => fetch(url, init);

/** A stream of events of the service. */
export type Stream = Pick<EventSource, "onopen" | "onerror" | "addEventListener" | "close">;
export const openStream = (url: string): Stream => new EventSource(url);

/** Return the channel to the other pages of this browser, to which one page passes events on. */
export const openChannel = (): Pick<BroadcastChannel, "onmessage" | "postMessage"> | null =>
  typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel("framedex.events");

/** Call a function in one page of this browser at a time. */
export function inOnePage(hold: () => Promise<void>): void {
  if (navigator.locks) void navigator.locks.request("framedex.events", hold);
  else void hold();
}

/** Return the present address: the path with the base, and the query. */
export function readAddress(): { path: string; search: string } {
  return typeof location === "undefined"
    ? { path: "/", search: "" }
    : { path: location.pathname, search: location.search };
}

/** Go to an address, with its base. */
export function writeAddress(address: string, replaces: boolean): void {
  history[replaces ? "replaceState" : "pushState"](null, "", address);
}

/** Call a function whenever the user goes back or forward. */
export const onAddress = (call: () => void): void => addEventListener("popstate", call);

/** Leave for a page that is loaded anew. */
export const leave = (address: string): void => location.assign(address);

/** The address of the service, as other programs reach it. */
export const serviceUrl = (): string => location.origin + BASE;

/** The folder of the workspace, where that is open in the process that runs code; null for a service. */
export const workspaceFolder = (): string | null => null;

/** Return the path and the query of a link within the app; null for any other. */
export function pathOfLink(link: HTMLAnchorElement): string | null {
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return null;
  const path = link.pathname;
  if (!path.startsWith(`${BASE}/`) || path.startsWith(`${BASE}/api/`) || path.startsWith(`${BASE}/cdn/`)) return null;
  return path.slice(BASE.length) + link.search;
}

/** Show a name in the place for that of a page. */
export function showTitle(title: string): void {
  document.title = title;
}

/** Show a theme: `system`, `light` or `dark`. */
export function showTheme(theme: string): void {
  document.documentElement.dataset.theme = theme;
}

/** Call a function now, and whenever the surroundings become light or dark, with whether they are dark. */
export function watchDark(call: (isDark: boolean) => void): void {
  const query = matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", () => call(query.matches));
  call(query.matches);
}

/** The element of the content. */
export const Main = "main";

/** The elements of images and videos of the service. */
export const Image = "img";
export const Video = "video";

/** Load an image before it is shown. */
export function loadAhead(address: string): void {
  const image = document.createElement("img");
  image.fetchPriority = "low";
  image.src = address;
}

/** The name of the file of the map's worker beside this one; the build puts it here. */
declare const MAP_WORKER: string;

/** Start the worker of the map. */
export const startWorker = (): Worker => new Worker(new URL(MAP_WORKER, import.meta.url), { type: "module" });

/** Whether the service runs within a notebook's kernel. */
export const isNotebook: boolean = false;

/** Whether that kernel answers; null for a service. */
export const kernelState: ReadonlySignal<KernelState> | null = null;
