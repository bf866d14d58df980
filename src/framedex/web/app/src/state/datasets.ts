/** The datasets that the user may view, and the one of the present page. */
import { computed, signal } from "@preact/signals";
import { get } from "../api/http";
import type { DatasetStats, DatasetStatus } from "../api/types";
import { route } from "../router";

export const datasets = signal<DatasetStatus[] | null>(null);
/** The dataset of the present page; null while it is not known, or if there is none. */
export const dataset = computed<DatasetStatus | null>(() => {
  const name = route.value.dataset;
  return (datasets.value ?? []).find((each) => each.id === name || each.display_name === name) ?? null;
});
/** The counts of the present dataset: media, issues, labels. */
export const stats = signal<DatasetStats | null>(null);
let statsOf = "";

/** How often each dataset was read alone. */
const turns = new Map<string, number>();

/** Read the datasets again; those that were read alone meanwhile stay as they are. */
export async function loadDatasets(): Promise<void> {
  const before = new Map(turns);
  const list = await get<DatasetStatus[]>("/datasets");
  const known = new Map((datasets.peek() ?? []).map((each) => [each.id, each]));
  const isOlder = (id: string): boolean => turns.get(id) !== before.get(id);
  datasets.value = list.map((each) => (isOlder(each.id) && known.get(each.id)) || each);
}

/** Read a dataset again; an answer that comes after a later question is left out, as it may be older. */
export async function loadDataset(id: string): Promise<void> {
  const turn = (turns.get(id) ?? 0) + 1;
  turns.set(id, turn);
  const found = await get<DatasetStatus>(`/dataset/${id}`);
  if (turns.get(id) !== turn) return;
  const known = datasets.value ?? [];
  datasets.value = known.some((each) => each.id === id)
    ? known.map((each) => (each.id === id ? found : each))
    : [found, ...known];
}

/** Read the counts of a dataset. */
export async function loadStats(id: string): Promise<void> {
  if (statsOf !== id) stats.value = null;
  statsOf = id;
  const found = await get<DatasetStats>(`/dataset/${id}/stats`);
  if (statsOf === id) stats.value = found;
}

/** Return the part of an address that names a dataset: its name, or its id where several have the name. */
export function addressOf(found: DatasetStatus): string {
  const same = (datasets.value ?? []).filter((each) => each.display_name === found.display_name);
  return same.length > 1 ? found.id : found.display_name;
}
