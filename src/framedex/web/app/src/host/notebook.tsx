/** What surrounds the app in a notebook: a widget, whose kernel is the service. See `web.ts`, which is the other one. */
import { type ReadonlySignal, signal } from "@preact/signals";
import type { JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { size } from "../lib/format";
import { notebook as words } from "../texts/notebook";
import type { KernelState } from "../widget/kernel";
import { MOST_BYTES, Sources } from "../widget/sources";
import type { Surroundings } from "../widget/surroundings";
import type { Stream } from "./web";

/** The argument of the function that the build puts around the app. */
declare const WIDGET: Surroundings;
/** The source of the map's worker; the build puts it here. */
declare const MAP_WORKER_SOURCE: string;

const { model, kernel } = WIDGET;
export const BASE: string = "";
export const root: Document | ShadowRoot = WIDGET.root;
export const place = (): HTMLElement => WIDGET.place;
export const keyTarget = (): EventTarget => WIDGET.place;
export const closing: AbortSignal | undefined = WIDGET.closing;
export const isNotebook: boolean = true;

const state = signal<KernelState>(kernel.state);
kernel.listeners.add((found) => {
  state.value = found;
});
export const kernelState: ReadonlySignal<KernelState> | null = state;

export const request = (url: string, init: RequestInit): Promise<Response> => kernel.request(url, init);

/** A stream of events over messages: what browsers do with `EventSource`. */
class EventMessages implements Stream {
  onopen: Stream["onopen"] = null;
  onerror: Stream["onerror"] = null;
  private readonly target = new EventTarget();
  private readonly decoder = new TextDecoder();
  private readonly stop: () => void;
  private text = "";
  private isOpen = true;

  constructor(url: string) {
    this.stop = kernel.stream(
      url,
      (bytes) => this.read(bytes),
      () => this.end(),
    );
  }

  addEventListener(name: string, listener: unknown): void {
    this.target.addEventListener(name, listener as EventListener);
  }

  close(): void {
    this.isOpen = false;
    this.stop();
  }

  private end(): void {
    if (!this.isOpen || WIDGET.closing.aborted) return;
    this.isOpen = false;
    setTimeout(() => this.onerror?.call(this as never, new Event("error")));
  }

  private read(bytes: Uint8Array): void {
    if (!this.isOpen) return;
    if (this.onopen) {
      this.onopen.call(this as never, new Event("open"));
      this.onopen = null;
    }
    this.text += this.decoder.decode(bytes, { stream: true });
    const blocks = this.text.split("\n\n");
    this.text = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = new Map(block.split("\n").map((line) => line.split(/: (.*)/s, 2) as [string, string]));
      const data = lines.get("data");
      if (data !== undefined) this.target.dispatchEvent(new MessageEvent(lines.get("event") ?? "message", { data }));
    }
  }
}

export const openStream = (url: string): Stream => new EventMessages(url);
export const openChannel = (): Pick<BroadcastChannel, "onmessage" | "postMessage"> | null => null;
export const inOnePage = (hold: () => Promise<void>): void => void hold();

// The address is that of the widget; the notebook has its own.
const address = signal(String(model.get("url") || "/"));
export function readAddress(): { path: string; search: string } {
  const [path, search] = address.peek().split(/(?=\?)/, 2);
  return { path: path || "/", search: search ?? "" };
}
export function writeAddress(next: string, _replaces: boolean): void {
  address.value = next;
}
export const onAddress = (_call: () => void): void => {};
export const leave = (next: string): void => {
  model.set("url", next); // as if Python had said so
};
export const serviceUrl = (): string => "";
export const workspaceFolder = (): string | null => String(model.get("folder"));

export function pathOfLink(link: HTMLAnchorElement): string | null {
  const target = link.getAttribute("href") ?? "";
  const isPage = target.startsWith("/") && !target.startsWith("/api/");
  return isPage && !link.target && !link.hasAttribute("download") ? target : null;
}

/** Save a file of the service as the browser does. */
async function save(link: HTMLAnchorElement): Promise<void> {
  const target = (link.getAttribute("href") ?? "").replace(/^https?:\/\/[^/]*/, "");
  const response = await kernel.request(target, {}, MOST_BYTES);
  const saved = document.createElement("a");
  saved.href = URL.createObjectURL(await response.blob());
  saved.download = link.download;
  saved.click();
  setTimeout(() => URL.revokeObjectURL(saved.href), 60_000);
}

/** Called with a sentence about a file that cannot be saved. */
export const onProblem: { current: (sentence: string) => void } = { current: () => {} };

function followLinks(event: Event): void {
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link) return;
  const { button, metaKey, ctrlKey, shiftKey } = event as MouseEvent;
  const isFile = link.hasAttribute("download") || link.getAttribute("href")?.startsWith("/api/");
  // No other tab can show a page of the widget.
  if (isFile || (pathOfLink(link) !== null && (button !== 0 || metaKey || ctrlKey || shiftKey))) event.preventDefault();
  if (!isFile) return;
  save(link).catch((error: unknown) => {
    onProblem.current(error instanceof RangeError ? words.tooLarge(size(Number(error.message))) : String(error));
  });
}
root.addEventListener("click", followLinks);
root.addEventListener("auxclick", followLinks);

export function showTitle(_title: string): void {}

/** Return whether the notebook is dark, by what JupyterLab, VS Code and Colab say, else by its colour. */
function isDark(): boolean {
  const { body, documentElement } = document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false";
  if (body.dataset.vscodeThemeKind) return /dark|^vscode-high-contrast$/.test(body.dataset.vscodeThemeKind);
  const named = documentElement.getAttribute("theme") ?? documentElement.dataset.theme;
  if (named === "dark" || named === "light") return named === "dark";
  const [red = 255, green = 255, blue = 255, alpha = 1] = (getComputedStyle(body).backgroundColor.match(/[\d.]+/g) ?? [])
    .map(Number); // biome-ignore format: one expression
  return alpha > 0 && 0.2126 * red + 0.7152 * green + 0.0722 * blue < 110;
}

const dark = signal(isDark());
const themes = new MutationObserver(() => {
  dark.value = isDark();
});
for (const element of [document.body, document.documentElement]) themes.observe(element, { attributes: true });
WIDGET.closing.addEventListener("abort", () => themes.disconnect());

let stopTheme: () => void = () => {};
export function showTheme(theme: string): void {
  stopTheme();
  stopTheme = dark.subscribe((found) => {
    WIDGET.root.host.setAttribute("data-theme", theme === "system" ? (found ? "dark" : "light") : theme);
  });
}
export function watchDark(call: (isDark: boolean) => void): void {
  dark.subscribe(call);
}

// Keys go to the widget while it has the focus. An element that is removed takes the focus with it.
let hasFocus = false;
const inside = (): void => {
  hasFocus = true;
};
const outside = (event: Event): void => {
  if (!event.composedPath().includes(WIDGET.place)) hasFocus = false;
};
root.addEventListener("focusin", inside);
for (const name of ["focusin", "pointerdown"]) document.addEventListener(name, outside, { signal: WIDGET.closing });
const removed = new MutationObserver(() => {
  const isNowhere = root.activeElement === null && (document.activeElement ?? document.body) === document.body;
  if (hasFocus && isNowhere) WIDGET.place.focus({ preventScroll: true });
});
removed.observe(WIDGET.place, { childList: true, subtree: true });
WIDGET.closing.addEventListener("abort", () => removed.disconnect());
export const mayTakeFocus = (): boolean => hasFocus;

const sources = new Sources(kernel, WIDGET.closing);

function useSource(of: string | undefined): string | undefined {
  const [found, setFound] = useState<{ of: string; url: string } | null>(null);
  useLayoutEffect(() => (of === undefined ? undefined : sources.use(of, (url) => setFound({ of, url }))), [of]);
  if (of === undefined) return undefined;
  return found?.of === of ? found.url : (sources.ready(of) ?? undefined);
}

function ImageOfKernel({ src, ...others }: JSX.IntrinsicElements["img"]) {
  return <img src={useSource(src as string | undefined)} {...others} />;
}
function VideoOfKernel({ src, ...others }: JSX.IntrinsicElements["video"]) {
  return <video src={useSource(src as string | undefined)} {...others} />;
}
export const Main = "section" as unknown as "main"; // the notebook has a main element of its own
export const Image = ImageOfKernel as unknown as "img";
export const Video = VideoOfKernel as unknown as "video";

export function loadAhead(of: string): void {
  const stop = sources.use(of, () => setTimeout(() => stop()));
}

export function startWorker(): Worker {
  const url = URL.createObjectURL(new Blob([MAP_WORKER_SOURCE], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module" });
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
  WIDGET.closing.addEventListener("abort", () => worker.terminate());
  return worker;
}
