/** Exports of a dataset: those that are kept, and whether they are ready. */
import { signal } from "@preact/signals";
import { get, post } from "../api/http";
import type { components } from "../api/schema";
import { t } from "../texts";
import type { Targets } from "./edits";
import { say, sayError } from "./notices";

export type ListedExport = components["schemas"]["ListedExport"];
/** What is exported, and how, as the service takes it. */
export interface WantedExport {
  file_name: string;
  export_format: string;
  on: Targets | null;
  include_images: boolean;
  strip_metadata: boolean;
  split: Record<string, number> | null;
  confidences: boolean;
  outlines: boolean;
  keypoints: boolean;
}

const POLL_MS = 500;
/** The exports of the dataset that was asked for last, the newest first. */
export const exportsOf = signal<{ datasetId: string; list: readonly ListedExport[] } | null>(null);
const followed = new Set<string>();

const isRunning = (each: ListedExport): boolean => each.status === "PENDING" || each.status === "RUNNING";

/** Read the exports of a dataset, again and again while some of them run. */
export async function loadExports(datasetId: string): Promise<void> {
  if (exportsOf.peek()?.datasetId !== datasetId) exportsOf.value = null;
  if (followed.has(datasetId)) return;
  followed.add(datasetId);
  try {
    for (;;) {
      const before = exportsOf.peek()?.datasetId === datasetId ? exportsOf.peek()!.list : [];
      const list = await get<ListedExport[]>(`/dataset/${datasetId}/exports`);
      exportsOf.value = { datasetId, list };
      tell(before, list);
      if (!list.some(isRunning)) return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  } catch (error) {
    sayError(error);
  } finally {
    followed.delete(datasetId);
  }
}

/** Say which exports have ended since they were read last. */
function tell(before: readonly ListedExport[], now: readonly ListedExport[]): void {
  const ran = new Set(before.filter(isRunning).map((each) => each.id));
  for (const each of now.filter((other) => ran.has(other.id) && !isRunning(other))) {
    if (each.status === "COMPLETED") say(t.exports.ready(each.file_name));
    else say(t.exports.failed(each.result_message), "error");
  }
}

/** Start an export, and follow it to its end. */
export async function startExport(datasetId: string, wanted: WantedExport): Promise<void> {
  const record = await post<ListedExport>(`/dataset/${datasetId}/exports`, wanted);
  const known = exportsOf.peek()?.datasetId === datasetId ? exportsOf.peek()!.list : [];
  const started = { ...record, file_name: wanted.file_name, size_bytes: null, expires_at: "" };
  exportsOf.value = { datasetId, list: [started, ...known] };
  say(t.exports.running(wanted.file_name));
  void loadExports(datasetId);
}
