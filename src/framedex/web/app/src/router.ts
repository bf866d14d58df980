/** The address of the page: its parts, and how to change it. The address is the state of a page. */

import { computed, signal } from "@preact/signals";
import { BASE, onAddress, pathOfLink, readAddress, root, writeAddress } from "#host";

export interface Route {
  /** The name of the page, as in {@link PAGES}, or `home`, `tasks`, `login`, `settings`, `missing`. */
  page: string;
  /** The name or id of the dataset, where the page is about one. */
  dataset: string | null;
  /** What follows the page in the path: an issue type, a media id. */
  rest: string | null;
}

/** The pages of a dataset, by their part of the address. */
export const PAGES = [
  "pictures",
  "clusters",
  "map",
  "duplicates",
  "labels",
  "issues",
  "cleanup",
  "history",
  "views",
  "settings",
  "m",
] as const;
const OF_SERVICE = ["tasks", "login", "account", "users", "admin", "import", "notifications"];

/** Return the route of a path below the base. */
export function parsePath(path: string): Route {
  const parts = path.split("/").filter(Boolean).map(decode);
  const [first, name, page, ...rest] = parts;
  if (first === undefined) return { page: "home", dataset: null, rest: null };
  if (OF_SERVICE.includes(first) && parts.length === 1) return { page: first, dataset: null, rest: null };
  if (first !== "d" || name === undefined) return { page: "missing", dataset: null, rest: null };
  if (page === undefined) return { page: "overview", dataset: name, rest: null };
  if (!(PAGES as readonly string[]).includes(page)) return { page: "missing", dataset: name, rest: null };
  return { page, dataset: name, rest: rest.length ? rest.join("/") : null };
}

/** Return the path of a page of a dataset, with its query. */
export function pathOf(dataset: string, page = "overview", rest: string | null = null, query = ""): string {
  const path = page === "overview" ? `/d/${encodeURIComponent(dataset)}` : `/d/${encodeURIComponent(dataset)}/${page}`;
  return `${path}${rest ? `/${encodeURIComponent(rest)}` : ""}${query ? `?${query}` : ""}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const current = signal(read());

/** The present route. */
export const route = computed<Route>(() => parsePath(current.value.path));
/** The query of the present address. */
export const query = computed(() => new URLSearchParams(current.value.search));

function read(): { path: string; search: string } {
  const { path, search } = readAddress();
  return { path: path.startsWith(BASE) ? path.slice(BASE.length) : path, search };
}

/** Go to a path below the base; with `replace` the present entry of the browser's history is replaced. */
export function navigate(path: string, options: { replace?: boolean } = {}): void {
  writeAddress(BASE + path, options.replace === true);
  current.value = read();
}

/** Change parts of the query; null removes one. */
export function setQuery(changes: Record<string, string | null>, options: { replace?: boolean } = {}): void {
  const next = new URLSearchParams(current.value.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  navigate(`${current.value.path}${text ? `?${text}` : ""}`, options);
}

/** Follow the browser's history, and links within the app without loading the page again. */
export function startRouter(): void {
  onAddress(() => {
    current.value = read();
  });
  const follow = (event: Event): void => {
    const { button, metaKey, ctrlKey, shiftKey } = event as MouseEvent;
    if (event.defaultPrevented || button !== 0 || metaKey || ctrlKey || shiftKey) return;
    const link = (event.target as Element | null)?.closest("a");
    const path = link ? pathOfLink(link) : null;
    if (path === null) return;
    event.preventDefault();
    navigate(path);
  };
  root.addEventListener("click", follow);
}
