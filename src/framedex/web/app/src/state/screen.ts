/** What the present page shows, as a query: what is copied as code. */
import { signal } from "@preact/signals";
import type { ResultQuery } from "../api/types";
import { query, route } from "../router";
import { queryOf } from "./pictures";

/** The query of a page that knows better than its address: the page's part of the address, and the query. */
const told = signal<{ page: string; query: ResultQuery } | null>(null);

const pageName = (): string => `${route.peek().dataset}/${route.peek().page}/${route.peek().rest ?? ""}`;

/** Say what the present page shows. */
export function shows(shown: ResultQuery): void {
  told.value = { page: pageName(), query: shown };
}

/** Return the query of what the present page shows; that of the whole dataset where it shows no rows. */
export function shownQuery(): ResultQuery {
  if (told.peek()?.page === pageName()) return told.peek()!.query;
  const { page, rest } = route.peek();
  const address = query.peek();
  if (page === "pictures" || page === "map") return queryOf(address);
  if (page === "m" && rest) return { ids: [rest] };
  if (page === "clusters") {
    const inside = lastStep(address.get("in"));
    return inside ? { vql: [{ cluster: { op: "is", value: inside } }] } : {};
  }
  if (page === "duplicates")
    return { vql: [{ duplicates: { op: "duplicates", value: Number(address.get("level") ?? 0.96) } }] };
  if (page === "labels") return { vql: [{ issues: { op: "issue", value: "mislabels" } }] };
  if (page === "issues" && rest) return { vql: [{ issues: { op: "issue", value: rest } }] };
  if (page === "cleanup") return { vql: [{ tags: { op: "is", value: "basket" } }] };
  return {};
}

function lastStep(text: string | null): string | null {
  try {
    const steps = JSON.parse(text ?? "[]") as { id?: unknown }[];
    const id = steps.at(-1)?.id;
    return typeof id === "string" ? id : null;
  } catch {
    return null;
  }
}
