/** What the user may do with the present dataset, and why not. */
import type { DatasetStatus } from "../api/types";
import { t } from "../texts";
import { dataset } from "./datasets";
import { profile } from "./session";

export type Permission = DatasetStatus["permissions"][number];

const READING: readonly Permission[] = ["dataset.view", "dataset.search_upload", "dataset.export", "task.view"];

/** Return why the user may not do something with a dataset, as a sentence; null if the user may. */
export function whyNotWith(found: DatasetStatus | null, permission: Permission): string | null {
  if (found && !found.permissions.includes(permission)) {
    return t.permissions.reasons[permission] ?? t.permissions.reasons["dataset.edit"]!;
  }
  if (found?.status_new === "READ ONLY" && !READING.includes(permission))
    return t.permissions.enriching(found.display_name);
  return profile.value?.read_only && !READING.includes(permission) ? t.permissions.readOnly : null;
}

/** Return why the user may not do something with the dataset of the page; null if the user may. */
export function whyNot(permission: Permission): string | null {
  return whyNotWith(dataset.value, permission);
}
