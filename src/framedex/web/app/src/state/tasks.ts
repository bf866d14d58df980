/** Tasks that are in progress, as events tell it, and changes of datasets by others. */
import { computed, signal } from "@preact/signals";
import { listen } from "../api/events";
import { ApiError, get, post } from "../api/http";
import type { Task, TaskPage } from "../api/types";
import { route } from "../router";
import { t } from "../texts";
import { dataset, loadDataset, loadDatasets, loadStats } from "./datasets";
import { editVersion } from "./edits";
import { say } from "./notices";

const POLL_MS = 500;
let hasOpened = false;
const ENDED = ["COMPLETED", "FAILED", "ABORTED"];
/** Tasks by id: those in progress, and those that ended while the page was open. */
export const tasks = signal<ReadonlyMap<string, Task>>(new Map());
/** Changes with each generation that events name; the ids are those of datasets. */
export const heads = signal<ReadonlyMap<string, string>>(new Map());
export const runningTasks = computed(() => [...tasks.value.values()].filter((task) => !ENDED.includes(task.status)));
/** Return whether a task holds its dataset: all but that of a map, which changes nothing. */
export const isHolding = (task: Task): boolean => task.task_type !== "MAP";
/** The task in progress of the present dataset. */
export const taskOfDataset = computed(() =>
  runningTasks.value.find((task) => task.dataset_id === dataset.value?.id && isHolding(task)),
);

function put(task: Task): void {
  tasks.value = new Map(tasks.value).set(task.task_id, { ...tasks.value.get(task.task_id), ...task });
}

/** Take what is new about a task: say how it ended, and read its dataset again. */
function take(task: Task): void {
  const before = tasks.peek().get(task.task_id)?.status;
  put(task);
  const type = t.tasks.types[task.task_type] ?? task.task_type;
  if (task.status === "FAILED" && before !== "FAILED")
    say(t.tasks.failed(type, task.dataset_name, task.error_message ?? ""), "error");
  if (task.status === "ABORTED" && before !== "ABORTED") say(t.tasks.aborted(type, task.dataset_name));
  const isUnknown = !isShown(task.dataset_id);
  if (isUnknown || ENDED.includes(task.status)) void refresh(task.dataset_id, isUnknown);
}

/** Read which tasks are in progress, and how those ended that were; an event that comes meanwhile is newer. */
export async function loadTasks(): Promise<void> {
  const known = tasks.peek();
  const page = await get<TaskPage>("/tasks", { page_size: 50 });
  for (const task of page.tasks) {
    const before = known.get(task.task_id);
    if (tasks.peek().get(task.task_id) !== before) continue;
    if (!ENDED.includes(task.status)) put(task);
    else if (before && before.status !== task.status) take(task);
  }
}

export async function abortTask(id: string): Promise<void> {
  take(await post<Task>(`/tasks/${id}/abort`));
}

/** Read again what has changed between the first answers and the moment from which events come. */
async function catchUp(): Promise<void> {
  const before = dataset.peek();
  await Promise.all([loadDatasets(), loadTasks()]);
  const now = dataset.peek();
  if (now && before && now.id === before.id && now.updated_at !== before.updated_at)
    takeHead(now.id, now.updated_at ?? "");
}

function takeHead(id: string, generation: string): void {
  heads.value = new Map(heads.value).set(id, generation);
  void refresh(id, false);
}

/** Follow the events of the server. */
export function startTasks(): void {
  listen((name, data) => {
    if (name === "task") take(data as unknown as Task);
    if (name === "head") takeHead(String(data.dataset_id), String(data.generation ?? ""));
    if (name === "open" && !hasOpened) {
      hasOpened = true;
      void catchUp().catch(() => {});
    } else if (name === "open" || name === "lost") {
      void loadDatasets().catch(() => {});
      void loadTasks().catch(() => {});
      editVersion.value++;
      if (name === "open") say(t.status.reconnected);
    }
  });
}

function isShown(id: string): boolean {
  return dataset.value?.id === id;
}

async function refresh(id: string, all: boolean): Promise<void> {
  try {
    if (all) await loadDatasets();
    else await loadDataset(id);
    if (dataset.value?.id === id && route.value.dataset) await loadStats(id);
  } catch {
    // a deleted dataset, or no server: the list is read again once it answers
    await loadDatasets().catch(() => {});
  }
}

/** Wait until a task has ended; throw its error if it failed. */
export async function waitForTask(id: string): Promise<void> {
  for (;;) {
    const task = tasks.peek().get(id) ?? (await readTask(id));
    if (task && ENDED.includes(task.status)) {
      if (task.status !== "COMPLETED") throw new ApiError(409, task.error_message ?? task.status_message);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const found = await readTask(id);
    if (found) put(found);
  }
}

async function readTask(id: string): Promise<Task | undefined> {
  const page = await get<TaskPage>("/tasks", { page_size: 50 });
  return page.tasks.find((task) => task.task_id === id);
}

/** Wait until no task of a dataset is in progress; throw the error of the last one if it failed. */
export async function waitForTasksOf(datasetId: string): Promise<void> {
  for (;;) {
    const page = await get<TaskPage>("/tasks", { dataset_id: datasetId, page_size: 10 });
    const task = page.tasks[0];
    if (!task) return;
    put(task);
    if (ENDED.includes(task.status)) return waitForTask(task.task_id);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
