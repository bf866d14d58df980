/** The results that the images page shows, kept while another page or an image is open over it. */
import { signal } from "@preact/signals";
import type { Entity, Region, ResultQuery } from "../api/types";
import { balanced } from "../lib/search";
import { parseFilter } from "../lib/vql";
import { Results } from "./results";
import { Selection } from "./selection";

export const selection = new Selection();
/** The position of the row with the focus. */
export const focus = signal(0);
/** Whether the grid takes the focus of the page as soon as it is shown. */
export const wantsFocus = signal(false);
let current: Results | null = null;
let shown = "";
/** What is selected once the results that are opened first are there. */
let chosen: readonly string[] | "all" | null = null;

function select(ids: readonly string[] | "all" | null): void {
  if (ids === "all") selection.all();
  else selection.only(ids ?? []);
}

/** Select images by their ids, or all results; those of the first results also once these are there. */
export function choose(ids: readonly string[] | "all"): void {
  chosen = current?.info.peek() ? null : ids;
  select(ids);
}

/** Return the results of a dataset; they stay the same while the dataset does. */
export function resultsOf(datasetId: string): Results {
  if (current?.datasetId !== datasetId) {
    current = new Results(datasetId);
    select(chosen);
    focus.value = 0;
    shown = "";
  }
  return current;
}

/** Return what an address shows. */
export const entityOf = (address: URLSearchParams): Entity =>
  address.get("entity") === "OBJECTS" ? "OBJECTS" : "IMAGES";

/** Return the query of an address. */
export function queryOf(address: URLSearchParams): ResultQuery {
  const query: ResultQuery = {};
  const filter = parseFilter(address.get("f"));
  if (filter.length) query.vql = filter;
  const like = address.get("like");
  const text = address.get("q");
  if (like) query.search = { similar: like, limit: 1000 };
  else if (text) query.search = { text: balanced(text), by: address.get("by") ?? "auto", limit: null };
  const region = like && parseRegion(address.get("region"));
  if (region) query.region = region;
  const [column, order] = (address.get("sort") ?? "").split(":");
  if (column) query.sort = { column, descending: order === "desc" };
  if (entityOf(address) === "OBJECTS") query.entity_type = "OBJECTS";
  return query;
}

function parseRegion(text: string | null): Region | null {
  const parts = (text ?? "").split(",").map(Number);
  const [x, y, width, height] = parts;
  if (parts.length !== 4 || !parts.every(Number.isFinite)) return null;
  return { x: x!, y: y!, width: width!, height: height! };
}

/** Open the results of an address, unless they are shown already. */
export async function openQuery(results: Results, query: ResultQuery): Promise<void> {
  const text = JSON.stringify([results.datasetId, query]);
  if (text === shown && results.info.value) return;
  const isOther = text !== shown;
  shown = text;
  await results.open(query);
  if (isOther && shown === text) {
    // What was done meanwhile was about the images before.
    select(chosen);
    chosen = null;
    focus.value = 0;
  }
}
