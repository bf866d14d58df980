/**
 * Changes of the dataset: shown at once, confirmed by the server, and taken back if it refuses.
 *
 * Changes of a page go to the server one after another. Those that replace values (labels, captions, fields) name the
 * generation that the user saw, so that they never overwrite what others did since.
 */

import { signal } from "@preact/signals";
import { closing } from "#host";
import { ApiError, get, post } from "../api/http";
import type { ActionOutcome, JournalPage, ResultsInfo, Row } from "../api/types";
import { count } from "../lib/format";
import { t } from "../texts";
import { loadDataset } from "./datasets";
import { pendingChanges, say } from "./notices";
import { taskHolding, whyNot } from "./permissions";
import type { Results } from "./results";

export type ActionName =
  | "tag" | "untag" | "set_labels" | "set_captions" | "set_field" | "not_duplicates" | "label_is_right" | "basket_add"
  | "basket_remove" | "keep" | "unkeep" | "delete"; // biome-ignore format: a list of words

/** Actions that replace values, and so must not be based on values that have changed since. */
const REPLACING: readonly ActionName[] = ["set_labels", "set_captions", "set_field", "delete"];
const MOST_IDS = 500;

export interface Targets {
  ids?: readonly string[];
  rid?: string;
}

export interface Change {
  datasetId: string;
  action: ActionName;
  on: Targets | null;
  args?: Record<string, unknown>;
  /** The generation that the user saw. */
  generation?: string | undefined;
  /** What the status bar says after it, for example `Tagged 3 with keep`. */
  words: (n: number) => string;
}

interface Step {
  datasetId: string;
  token: string;
  words: string;
}

const done: Step[] = [];
const undone: Step[] = [];
/** Changes with each step of this page; lists that depend on the dataset read it. */
export const editVersion = signal(0);
let queue: Promise<unknown> = Promise.resolve();

/** Let the browser ask before the page is left while changes wait: those behind the first were not sent yet. */
export function startEdits(): void {
  const ask = (event: Event): void => {
    if (pendingChanges.peek() > 0) event.preventDefault();
  };
  addEventListener("beforeunload", ask, { signal: closing });
}

/** Send a change after those before it; throws the server's refusal after it was told. */
export function change(wanted: Change): Promise<ActionOutcome> {
  const refusal = whyNot("dataset.edit");
  if (refusal) {
    say(refusal, "error");
    return Promise.reject(new ApiError(403, refusal, "forbidden"));
  }
  pendingChanges.value++; // those that wait for their turn count, too
  const next = queue.then(() => submit(wanted));
  queue = next.catch(() => {});
  return next;
}

async function submit(wanted: Change): Promise<ActionOutcome> {
  try {
    const on = wanted.on && (await named(wanted.datasetId, wanted.on));
    const outcome = await post<ActionOutcome>(`/dataset/${wanted.datasetId}/actions`, body({ ...wanted, on }));
    if (wanted.action === "delete") await unlock(wanted.datasetId);
    finish(wanted, outcome);
    return outcome;
  } catch (error) {
    refuse(wanted.datasetId, error);
    throw error;
  } finally {
    pendingChanges.value--;
  }
}

function body(wanted: Change): unknown {
  const replaces = REPLACING.includes(wanted.action) && wanted.generation;
  return {
    action: wanted.action,
    on: wanted.on,
    args: wanted.args ?? {},
    ...(replaces ? { expect_generation: wanted.generation } : {}),
  };
}

function finish(wanted: Change, outcome: ActionOutcome): void {
  const words = wanted.words(outcome.count);
  if (outcome.undo) {
    done.push({ datasetId: wanted.datasetId, token: outcome.undo, words });
    undone.length = 0;
  }
  const refused = outcome.errors?.[0];
  if (refused) say(`${words}. ${t.edits.refused(count(outcome.errors?.length ?? 0), refused.reason)}`, "error");
  else say(outcome.undo ? `${words}. ${t.edits.undoHint}` : words);
  editVersion.value++;
}

/** Say why the server did not make a change of a dataset: it is gone, a task holds the dataset, another edit came first. */
function refuse(datasetId: string, error: unknown): void {
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 0) say(t.edits.offline, "error");
  else if (error.status === 409 && isHeld(datasetId, error)) say(heldBy(datasetId, error), "error");
  else if (error.status === 409) say(`${t.edits.conflict} ${error.message}`, "error");
  else say(`${t.edits.takenBack} ${error.message}`, "error");
}

const isHeld = (datasetId: string, error: ApiError): boolean =>
  taskHolding(datasetId) !== undefined || / is blocked while /.test(error.message);

function heldBy(datasetId: string, error: ApiError): string {
  const task = taskHolding(datasetId);
  const holder = task ? t.permissions.held(task.task_type, task.dataset_name) : error.message;
  return `${t.edits.takenBack} ${holder}. ${t.edits.waitOrAbort}`;
}

/** Change selected rows of results: their values are shown at once, and results are opened again afterwards. */
export async function changeRows(
  results: Results,
  ids: readonly string[] | "all",
  wanted: Omit<Change, "datasetId" | "on" | "generation">,
  preview: (row: Row) => Row,
): Promise<void> {
  const info = results.info.value;
  if (!info) return;
  const rowIds = ids === "all" ? null : ids;
  const shown = results.preview(ids, preview);
  try {
    await change({
      ...wanted,
      datasetId: results.datasetId,
      on: rowIds === null ? { rid: info.rid } : { ids: rowIds },
      generation: info.generation,
    });
    shown.settle();
    await results.reopen(editVersion.peek());
  } catch (error) {
    shown.takeBack();
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 409) await results.reopen();
  }
}

/** Return the ids as they are, or results of them where there are more than an action takes. */
async function named(datasetId: string, on: Targets): Promise<Targets> {
  if (!on.ids || on.ids.length <= MOST_IDS) return on;
  return { rid: (await post<ResultsInfo>(`/dataset/${datasetId}/results`, { ids: on.ids })).rid };
}

/** Learn that a dataset is free again: a step that was a task has locked it, and the next key must not be refused. */
async function unlock(datasetId: string): Promise<void> {
  await loadDataset(datasetId).catch(() => {});
}

/** Make the last step of the journal, if it is of an operation, one that this page can undo; say what was done. */
export async function remember(datasetId: string, operation: string, words: string): Promise<void> {
  const page = await get<JournalPage>(`/dataset/${datasetId}/journal`, { limit: 1 });
  const last = page.steps[0];
  const isUndoable = last?.operation === operation && last.reason === null;
  if (isUndoable) done.push({ datasetId, token: String(last.step), words });
  await unlock(datasetId);
  say(isUndoable ? `${words}. ${t.edits.undoHint}` : words);
  editVersion.value++;
}

/** Undo the last step of this page in a dataset. */
export async function undo(datasetId: string): Promise<void> {
  await step(datasetId, done, undone, "undo", t.edits.undone, t.edits.nothingToUndo);
}

/** Do the last undone step of this page in a dataset again. */
export async function redo(datasetId: string): Promise<void> {
  await step(datasetId, undone, done, "redo", t.edits.redone, t.edits.nothingToRedo);
}

async function step(
  datasetId: string,
  from: Step[],
  to: Step[],
  path: "undo" | "redo",
  words: (text: string) => string,
  nothing: string,
): Promise<void> {
  await queue;
  const index = from.findLastIndex((each) => each.datasetId === datasetId);
  const found = from[index];
  if (!found) {
    say(nothing);
    return;
  }
  from.splice(index, 1);
  try {
    const outcome = await post<ActionOutcome>(`/dataset/${datasetId}/${path}`, { token: found.token });
    to.push({ ...found, token: outcome.undo ?? found.token });
    await unlock(datasetId);
    say(words(found.words) + t.edits.lostFiles(outcome.lost_files ?? 0));
    editVersion.value++;
  } catch (error) {
    if (error instanceof ApiError && error.status === 0) from.push(found);
    refuse(datasetId, error);
  }
}
