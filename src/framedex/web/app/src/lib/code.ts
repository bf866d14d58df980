/** A query as code that selects the same rows: Python, a command, a filter, requests of curl. */
import type { ResultQuery } from "../api/types";

/** What code is about: a query of a dataset of a service. */
export interface Selected {
  /** The address of the service, without a slash at its end. */
  url: string;
  /** The folder of the workspace, where code runs in the process that has it open; null for a service. */
  folder?: string | null;
  /** The name of the dataset, or its id where several have the name. */
  dataset: string;
  datasetId: string;
  query: ResultQuery;
  /** Whether somebody must log in. */
  needsLogin: boolean;
}

export const KINDS = ["python", "cli", "vql", "curl"] as const;
export type Kind = (typeof KINDS)[number];

const MOST_RESULTS = 1_000;
const ROWS = 500;

/** Return a value of JSON as Python writes it. */
export function python(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    const pairs = Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${python(each)}`);
    return `{${pairs.join(", ")}}`;
  }
  return JSON.stringify(value);
}

/** Return a text as one word of a shell. */
export const quoted = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) && !text.startsWith("-") ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Return the code of a kind. */
export function codeOf(kind: Kind, selected: Selected): string {
  return { python: pythonOf, cli: commandOf, vql: filterOf, curl: requestsOf }[kind](selected);
}

/** Return whether code of a kind leaves the search or the order of a query out. */
export function leavesOut(kind: Kind, query: ResultQuery): "search" | "order" | null {
  if (kind === "vql" && (query.search || query.sort)) return "search";
  return kind === "cli" && query.sort ? "order" : null;
}

function pythonOf({ url, folder, dataset, query, needsLogin }: Selected): string {
  const { ids, vql, search, region, sort } = query;
  const parts: string[] = [query.entity_type === "OBJECTS" ? ".objects" : ".view"];
  if (ids) parts.push(`.select(${python(ids)})`);
  if (vql?.length) parts.push(`.where(${python(vql)})`);
  if (search?.similar) {
    const box = region ? `, bounding_box=(${[region.x, region.y, region.width, region.height].join(", ")})` : "";
    parts.push(`.similar(${python(search.similar)}, ${python(search.limit)}${box})`);
  } else if (search?.text)
    parts.push(`.search(${python(search.text)}, ${python(search.limit)}, by=${python(search.by)})`);
  if (sort) parts.push(`.sort_by(${python(sort.column)}${sort.descending ? ", descending=True" : ""})`);
  const login = needsLogin ? ", key, secret" : "";
  const client = `ws = framedex.Client(${python(url)}${login})  # or framedex.Workspace(folder)`;
  return [
    "import framedex",
    "",
    folder ? `ws = framedex.Workspace(${python(folder)})` : client,
    `ds = ws.dataset(${python(dataset)})`,
    `view = ds${parts.join("")}`,
    "print(view.to_arrow())",
  ].join("\n");
}

function commandOf({ dataset, query }: Selected): string {
  const elements = elementsOf(query);
  const filter = elements.length ? ` --vql ${quoted(JSON.stringify(elements))}` : "";
  const objects = query.entity_type === "OBJECTS";
  const type = objects ? " --entity-type OBJECTS" : "";
  const limit = ` --limit ${query.search?.limit ?? MOST_RESULTS}`;
  if (query.search?.similar) {
    const { x, y, width, height } = query.region ?? {};
    const box = query.region ? ` --box ${[x, y, width, height].join(",")}` : "";
    return `framedex similar ${quoted(dataset)} ${quoted(query.search.similar)}${box}${limit}${filter}${type}`;
  }
  if (query.search?.text) {
    const by = query.search.by && query.search.by !== "auto" ? ` --by ${query.search.by}` : "";
    return `framedex search${by}${limit}${filter}${type} -- ${quoted(dataset)} ${quoted(query.search.text)}`;
  }
  return `framedex export ${quoted(dataset)} ${quoted(`${dataset.replaceAll(/[^\w-]/g, "_")}.json`)}${objects ? " --objects" : ""}${filter}`;
}

/** Return the filter of a query with its ids as an element; the order of ids is no part of a filter. */
function elementsOf({ ids, vql }: ResultQuery): Record<string, unknown>[] {
  return [...(ids ? [{ ids: { op: "one_of", value: ids } }] : []), ...(vql ?? [])];
}

function filterOf({ query }: Selected): string {
  return JSON.stringify(elementsOf(query));
}

function requestsOf({ url, datasetId, query, needsLogin }: Selected): string {
  const login = needsLogin ? ' -H "Authorization: Bearer $TOKEN"' : "";
  const body = quoted(JSON.stringify(query));
  return [
    `RESULTS=${quoted(`${url}/api/v1/dataset/${datasetId}/results`)}`,
    `RID=$(curl -sf${login} "$RESULTS" -H 'Content-Type: application/json' -d ${body} | grep -o '"rid":"[^"]*' | cut -d'"' -f4)`,
    `curl -sf${login} "$RESULTS/$RID/rows?limit=${ROWS}&columns=media_id&columns=file_path"`,
  ].join("\n");
}
