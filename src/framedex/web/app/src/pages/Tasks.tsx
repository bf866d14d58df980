import { get, post } from "../api/http";
import type { Task, TaskPage } from "../api/types";
import { date, share } from "../lib/format";
import { Button } from "../parts/Button";
import { Pending, useResource } from "../parts/Resource";
import { datasets } from "../state/datasets";
import { sayError } from "../state/notices";
import { type Permission, whyNotWith } from "../state/permissions";
import { tasks } from "../state/tasks";
import { t } from "../texts";

/** All tasks that the user may see, the newest first. */
export default function Tasks() {
  const events = tasks.value;
  const page = useResource<TaskPage>((signal) => get("/tasks", { page_size: 50 }, signal), [events.size]);
  const act = async (task: Task, what: "abort" | "retry"): Promise<void> => {
    try {
      await post(`/tasks/${task.task_id}/${what}`);
      page.reload();
    } catch (error) {
      sayError(error);
    }
  };
  if (!page.value) return <Pending of={page} />;
  const columns = Object.values(t.tasks.columns);
  return (
    <div class="page">
      <h1>{t.tasks.title}</h1>
      {page.value.tasks.length === 0 ? (
        <p class="empty">{t.tasks.empty}</p>
      ) : (
        <table>
          <thead>
            <tr>
              {columns.map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
              <td />
            </tr>
          </thead>
          <tbody>
            {page.value.tasks.map((stored) => {
              const task = { ...stored, ...events.get(stored.task_id) };
              return <TaskRow key={task.task_id} task={task} onAct={(what) => void act(task, what)} />;
            })}
          </tbody>
        </table>
      )}
    </div>
  );
}

function TaskRow({ task, onAct }: { task: Task; onAct: (what: "abort" | "retry") => void }) {
  const isOver = ["COMPLETED", "FAILED", "ABORTED"].includes(task.status);
  const of = datasets.value?.find((each) => each.id === task.dataset_id) ?? null;
  const reason = (permission: Permission): string | null => whyNotWith(of, permission);
  return (
    <tr>
      <th scope="row">{t.tasks.types[task.task_type] ?? task.task_type}</th>
      <td>{task.dataset_name}</td>
      <td>
        {task.status}
        {task.error_message && <p class="problem">{task.error_message}</p>}
      </td>
      <td>{isOver ? "" : share((task.progress_percentage ?? 0) / 100)}</td>
      <td>{task.created_by}</td>
      <td>{date(task.start_time)}</td>
      <td>
        {!isOver && (
          <Button disabledReason={reason("task.abort")} onClick={() => onAct("abort")}>
            {t.tasks.abort}
          </Button>
        )}
        {(task.status === "FAILED" || task.status === "ABORTED") && (
          <Button disabledReason={reason("task.retry")} onClick={() => onAct("retry")}>
            {t.tasks.retry}
          </Button>
        )}
      </td>
    </tr>
  );
}
