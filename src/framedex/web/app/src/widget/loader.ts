/**
 * The module of the widget, which anywidget loads for each one: it shows the app in a shadow root.
 *
 * Modules are never collected, and anywidget loads one for each widget. So this one is small. The app itself is loaded
 * once for a page; it is a function, and each call makes an app of its own, which goes when its view is closed.
 */
import { notebook as words } from "../texts/notebook";
import { Kernel, type Model } from "./kernel";
import type { Surroundings } from "./surroundings";

/** The hash of the app, by which pages keep it; the build puts it here. */
declare const APP_HASH: string;

interface App {
  start: (surroundings: Surroundings) => void;
  styles: CSSStyleSheet;
}
const page = globalThis as Record<symbol, unknown>;
const name = Symbol.for("framedex.apps");
page[name] ??= {};
/** The apps of this page by their hashes: those of other versions, too. */
const apps = page[name] as Record<string, Promise<App> | undefined>;
const WAIT_MS = 3_000;

async function load(kernel: Kernel): Promise<App> {
  const { status, headers, body } = await kernel.assets();
  if (status !== 200) throw new Error(new TextDecoder().decode(body));
  const text = await new Response(new Blob([body]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  const size = Number(headers.find(([name]) => name === "x-styles")?.[1]);
  const styles = new CSSStyleSheet();
  styles.replaceSync(text.slice(0, size));
  const url = URL.createObjectURL(new Blob([text.slice(size)], { type: "text/javascript" }));
  try {
    const module = (await import(/* the app */ url)) as { default: App["start"] };
    return { start: module.default, styles };
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Return the app of this page, which the first widget loads. */
function appOf(kernel: Kernel): Promise<App> {
  const found = apps[APP_HASH];
  if (found) return found;
  const loading = load(kernel);
  apps[APP_HASH] = loading;
  loading.catch(() => delete apps[APP_HASH]);
  return loading;
}

/** Return the app; a widget that waited for another one, which failed, loads it itself. */
async function anyApp(kernel: Kernel): Promise<App> {
  const isOther = apps[APP_HASH] !== undefined;
  try {
    return await appOf(kernel);
  } catch (error) {
    if (!isOther || kernel.closing.aborted) throw error;
    return appOf(kernel);
  }
}

/** Keep keys in the widget: those of the notebook have other meanings. */
function keepKeys(host: HTMLElement, root: ShadowRoot): void {
  host.dataset.lmSuppressShortcuts = "true"; // of JupyterLab, which listens before the widget does
  for (const name of ["keydown", "keyup", "keypress"]) root.addEventListener(name, (event) => event.stopPropagation());
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const closed = new AbortController();
  const kernel = new Kernel(model, closed.signal);
  const host = document.createElement("div");
  const root = host.attachShadow({ mode: "open" });
  const place = document.createElement("div");
  place.className = "widget";
  place.tabIndex = -1;
  const resize = (): void => {
    place.style.height = `${Number(model.get("height"))}px`;
  };
  resize();
  model.on("change:height", resize);
  keepKeys(host, root);
  place.textContent = words.loading;
  const late = setTimeout(() => {
    place.textContent = words.waiting;
  }, WAIT_MS);
  root.append(place);
  el.append(host);
  const show = async (): Promise<void> => {
    try {
      const { start, styles } = await anyApp(kernel);
      clearTimeout(late);
      if (closed.signal.aborted) return;
      place.textContent = "";
      place.removeAttribute("role");
      root.adoptedStyleSheets = [styles];
      start({ model, kernel, root, place, closing: closed.signal });
    } catch (error) {
      clearTimeout(late);
      place.setAttribute("role", "alert");
      const isGone = kernel.state === "gone";
      place.textContent = isGone ? words.gone : words.failed(String((error as Error).message));
      if (!isGone || closed.signal.aborted) return;
      await kernel.ready(); // a long cell looks like a kernel that is gone
      await show();
    }
  };
  void show();
  return () => {
    clearTimeout(late);
    model.off("change:height", resize);
    closed.abort();
    host.remove();
  };
}

export default { render };
