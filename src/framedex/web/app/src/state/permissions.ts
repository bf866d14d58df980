/** What the user may do with the present dataset, and why not. */
import type { DatasetStatus, Task } from "../api/types";
import { t } from "../texts";
import { dataset } from "./datasets";
import { profile } from "./session";
import { isHolding, runningTasks } from "./tasks";

export type Permission = DatasetStatus["permissions"][number];

const READING: readonly Permission[] = ["dataset.view", "dataset.search_upload", "dataset.export", "task.view"];

/** What a task of the dataset forbids while it is in progress; the task itself can be aborted. */
const LOCKED: readonly Permission[] = ["dataset.edit", "dataset.enrich", "dataset.delete"];

/** What waits until a dataset is indexed. */
const UNINDEXED: readonly Permission[] = ["dataset.edit", "dataset.enrich", "dataset.export"];

/** Return the task in progress of a dataset, which others wait for. */
export const taskHolding = (datasetId: string): Task | undefined =>
  runningTasks.value.find((each) => each.dataset_id === datasetId && isHolding(each));

/** Return why the user may not do something with a dataset, as a sentence; null if the user may. */
export function whyNotWith(found: DatasetStatus | null, permission: Permission): string | null {
  if (found && !found.permissions.includes(permission)) {
    return t.permissions.reasons[permission] ?? t.permissions.reasons["dataset.edit"]!;
  }
  if (found?.status_new === "READ ONLY" && LOCKED.includes(permission)) {
    return t.permissions.busy(taskHolding(found.id)?.task_type ?? "ENRICHMENT", found.display_name); // that of a copy is not its own
  }
  if (found?.status_new === "INDEXING" && UNINDEXED.includes(permission)) {
    return t.permissions.indexing(taskHolding(found.id)?.task_type ?? "REINDEX", found.display_name);
  }
  return profile.value?.read_only && !READING.includes(permission) ? t.permissions.readOnly : null;
}

/** Return why the user may not do something with the dataset of the page; null if the user may. */
export function whyNot(permission: Permission): string | null {
  return whyNotWith(dataset.value, permission);
}
