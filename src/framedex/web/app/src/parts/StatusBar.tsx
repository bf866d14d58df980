import { kernelState } from "#host";
import { isOnline } from "../api/http";
import { route } from "../router";
import { dataset, datasets } from "../state/datasets";
import { notice, pendingChanges } from "../state/notices";
import { whyNot, whyNotWith } from "../state/permissions";
import { profile } from "../state/session";
import { abortTask, runningTasks } from "../state/tasks";
import { t } from "../texts";
import type { KernelState } from "../widget/kernel";
import { Button } from "./Button";
import { Icon } from "./Icon";

/** The bar at the bottom: the server, tasks in progress, the last message. */
export function StatusBar() {
  return (
    <footer class="status-bar">
      {kernelState ? <KernelBar state={kernelState.value} /> : !isOnline.value && <OfflineBar />}
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
            <Button
              kind="quiet"
              disabledReason={whyNotWith(
                datasets.value?.find((each) => each.id === task.dataset_id) ?? null,
                "task.abort",
              )}
              onClick={() => void abortTask(task.task_id)}
            >
              {t.status.abort}
            </Button>
          </span>
        ))}
        <Lock />
        <span class="grow" role="status" aria-live="polite">
          <span class={notice.value?.kind === "error" ? "message error" : "message"}>{notice.value?.text ?? ""}</span>
        </span>
        {pendingChanges.value > 0 && <span>{t.status.pending(pendingChanges.value)}</span>}
      </div>
    </footer>
  );
}

function OfflineBar() {
  return (
    <div class="bar error" role="alert">
      {t.status.offline} <code>{t.status.offlineCommand}</code>
    </div>
  );
}

/** Says that the kernel of the notebook does not answer, and why. */
function KernelBar({ state }: { state: KernelState }) {
  if (state === "ready") return null;
  return (
    <div class={state === "gone" ? "bar error" : "bar"} role={state === "gone" ? "alert" : "status"}>
      {t.notebook[state]}
    </div>
  );
}

/** Says that nothing can be changed here, and why. */
function Lock() {
  const reason = route.value.dataset ? whyNot("dataset.edit") : profile.value?.read_only && t.permissions.readOnly;
  if (!reason) return null;
  return (
    <span class="lock">
      <Icon name="lock" />
      <strong>{t.permissions.locked}</strong> <span class="words">{reason}</span>
    </span>
  );
}
