/** Filters: their text in the address, and their words in chips. */
import type { VqlElement } from "../api/types";

/** Return the elements of a filter in an address; none if it cannot be read. */
export function parseFilter(text: string | null): VqlElement[] {
  if (!text) return [];
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found)
      ? (found.filter((each) => each !== null && typeof each === "object") as VqlElement[])
      : [];
  } catch {
    return [];
  }
}

/** Return a filter as the text of an address; null for none. */
export const filterText = (elements: readonly VqlElement[]): string | null =>
  elements.length ? JSON.stringify(elements) : null;

const OPS: Record<string, string> = {
  is: "is",
  is_not: "is not",
  one_of: "is one of",
  not_one_of: "is none of",
  issue: "is",
  gt: ">",
  ge: "≥",
  lt: "<",
  le: "≤",
  contains: "contains",
  starts: "starts with",
  ends: "ends with",
  between: "between",
  missing: "is missing",
  has: "has",
  fts: "has the words",
  semantic: "means",
  media: "is like",
  upload: "is like the image",
  duplicates: "≥",
  uniqueness: "≥",
};
const NAMES: Record<string, string> = {
  labels: "label",
  tags: "tag",
  issues: "issue",
  file_name: "file name",
  folder: "folder",
  text: "text",
  uniqueness: "uniqueness",
  duplicates: "similarity of copies",
  cluster: "cluster",
  batch: "batch",
  ids: "chosen images",
};

/** Return the words of an element, for example `label is dog`. */
export function describe(element: VqlElement): string {
  const [key, test] = Object.entries(element).find(([name]) => name !== "id") ?? ["", null];
  const name = NAMES[key] ?? key.replaceAll("_", " ");
  if (key === "not") return `not (${describe((Array.isArray(test) ? test[0] : test) as VqlElement)})`;
  if (key === "any" && Array.isArray(test)) return test.map((each) => describe(each as VqlElement)).join(" or ");
  if (key === "missing")
    return (test as { value?: unknown } | null)?.value === false ? "file is there" : "file is missing";
  if (key === "map_region") return "On the map: region";
  if (test === null || typeof test !== "object") return `${name} ${String(test)}`;
  const { op, value, ...rest } = test as Record<string, unknown>;
  if (key === "duplicates" && value === "near") return "near images and copies";
  const parts = [name, OPS[String(op ?? "is")] ?? String(op)];
  if (value !== undefined) parts.push(words(value));
  for (const [option, setting] of Object.entries(rest)) {
    if (setting !== null && option !== "id") parts.push(`${option.replaceAll("_", " ")} ${words(setting)}`);
  }
  return parts.join(" ");
}

function words(value: unknown): string {
  if (!Array.isArray(value)) return typeof value === "object" ? JSON.stringify(value) : String(value);
  return value.length > 3
    ? `${value.slice(0, 3).map(String).join(", ")}, … (${value.length})`
    : value.map(String).join(", ");
}
