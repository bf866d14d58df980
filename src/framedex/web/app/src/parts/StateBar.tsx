import { get, post } from "../api/http";
import type { DatasetStatus, TaskPage } from "../api/types";
import { sayError } from "../state/notices";
import { whyNot } from "../state/permissions";
import { abortTask, loadTasks, taskOfDataset } from "../state/tasks";
import { t } from "../texts";
import { Button } from "./Button";
import { useResource } from "./Resource";

/** Start an index of all media. */
export async function reindex(datasetId: string): Promise<void> {
  try {
    await post(`/dataset/${datasetId}/reindex`);
    await loadTasks();
  } catch (error) {
    sayError(error);
  }
}

/** Says what state a dataset is in where that limits what can be done, and offers what ends it. */
export function StateBar({ dataset }: { dataset: DatasetStatus }) {
  switch (dataset.status_new) {
    case "PARTIAL INDEX":
      return (
        <div class="bar warning" role="status">
          {t.status.partialUnknown}
          <Button needs="dataset.edit" kind="main" onClick={() => void reindex(dataset.id)}>
            {t.status.reindex}
          </Button>
        </div>
      );
    case "INDEXING":
      return <Indexing dataset={dataset} />;
    case "ERROR":
      return <Ended dataset={dataset} />;
    default:
      return null;
  }
}

/** How far the index is, and what can be looked at before it is done. */
function Indexing({ dataset }: { dataset: DatasetStatus }) {
  const task = taskOfDataset.value;
  const share = task?.progress_percentage ?? dataset.progress;
  return (
    <div class="bar" role="status">
      {dataset.updated_at === null ? t.status.creating : t.status.indexing}
      <progress max={100} value={share} aria-label={t.statuses.INDEXING} />
      {task && (
        <Button disabledReason={whyNot("task.abort")} onClick={() => void abortTask(task.task_id).catch(sayError)}>
          {t.status.abort}
        </Button>
      )}
    </div>
  );
}

/** Why there is nothing to look at: the creation failed or was aborted, and can be started again. */
function Ended({ dataset }: { dataset: DatasetStatus }) {
  const page = useResource<TaskPage>(
    (signal) => get("/tasks", { dataset_id: dataset.id, page_size: 10 }, signal),
    [dataset.id, dataset.status_new],
  );
  const task = page.value?.tasks[0];
  const name = task && (t.tasks.types[task.task_type] ?? task.task_type);
  const retry = (id: string): void => void post(`/tasks/${id}/retry`).then(loadTasks).catch(sayError);
  return (
    <div class="bar error" role="alert">
      {task?.status === "ABORTED" ? t.tasks.aborted(name ?? "", dataset.display_name) : dataset.fatal_error_msg}
      {task && (
        <Button disabledReason={whyNot("task.retry")} onClick={() => retry(task.task_id)}>
          {t.tasks.retry}
        </Button>
      )}
      {/* Not before the text and the button are there, beside which it would move under the pointer. */}
      {(page.value || page.error) && <a href="/tasks">{t.navigation.tasks}</a>}
    </div>
  );
}
