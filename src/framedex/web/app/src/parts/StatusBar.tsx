import { isOnline } from "../api/http";
import { dataset } from "../state/datasets";
import { notice, pendingChanges } from "../state/notices";
import { abortTask, runningTasks } from "../state/tasks";
import { t } from "../texts";
import { Button } from "./Button";

/** The bar at the bottom: the server, tasks in progress, the last message. */
export function StatusBar() {
  return (
    <footer class="status-bar">
      {!isOnline.value && (
        <div class="bar error" role="alert">
          {t.status.offline} <code>{t.status.offlineCommand}</code>
        </div>
      )}
      <div class="status-line">
        {runningTasks.value.slice(0, 3).map((task) => (
          <span key={task.task_id} class="task">
            <progress
              max={100}
              value={task.progress_percentage ?? 0}
              aria-label={t.tasks.types[task.task_type] ?? task.task_type}
            />
            {t.status.task(t.tasks.types[task.task_type] ?? task.task_type, task.progress_percentage ?? 0)}
            {task.dataset_name !== dataset.value?.display_name && ` · ${task.dataset_name}`}
            <Button kind="quiet" onClick={() => void abortTask(task.task_id)}>
              {t.status.abort}
            </Button>
          </span>
        ))}
        <span class="grow" role="status" aria-live="polite">
          <span class={notice.value?.kind === "error" ? "message error" : "message"}>{notice.value?.text ?? ""}</span>
        </span>
        {pendingChanges.value > 0 && <span>{t.status.pending(pendingChanges.value)}</span>}
      </div>
    </footer>
  );
}
