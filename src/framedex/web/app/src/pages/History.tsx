import { call, get, post } from "../api/http";
import type { ActionOutcome, DatasetStatus, JournalPage, JournalStep, Snapshot } from "../api/types";
import { count, date } from "../lib/format";
import { Button } from "../parts/Button";
import { Changes } from "../parts/Changes";
import { Confirm } from "../parts/Confirm";
import { datasetPage } from "../parts/DatasetPage";
import { Prompt } from "../parts/Prompt";
import { Pending, type Resource, useResource } from "../parts/Resource";
import { Trends } from "../parts/Trends";
import { navigate } from "../router";
import { loadDatasets } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { editVersion, remember } from "../state/edits";
import { say, sayError } from "../state/notices";
import { heads, waitForTasksOf } from "../state/tasks";
import { t } from "../texts";

const MOST_STEPS = 100;

export default datasetPage(History);

/** Snapshots and the journal of a dataset. */
function History({ dataset: of }: { dataset: DatasetStatus }) {
  const version = `${editVersion.value} ${heads.value.get(of.id)}`; // also what others did is shown
  const snapshots = useResource<Snapshot[]>(
    (signal) => get(`/dataset/${of.id}/snapshot`, {}, signal),
    [of.id, version],
  );
  const journal = useResource<JournalPage>(
    (signal) => get(`/dataset/${of.id}/journal`, { limit: MOST_STEPS }, signal),
    [of.id, version],
  );
  return (
    <div class="page">
      <h1>{t.navigation.history}</h1>
      <section aria-labelledby="snapshots">
        <h2 id="snapshots">{t.history.snapshots}</h2>
        <Button needs="dataset.edit" onClick={() => askSnapshot(of, snapshots)}>
          {t.history.take}
        </Button>
        <Button needs="dataset.clone" onClick={() => void attempt(() => cloneNow(of, {}))}>
          {t.history.clonePresent}
        </Button>
        {snapshots.value ? <Snapshots dataset={of} list={snapshots} /> : <Pending of={snapshots} />}
      </section>
      <section aria-labelledby="compare">
        <h2 id="compare">{t.history.compare}</h2>
        {snapshots.value ? (
          <Changes dataset={of} snapshots={snapshots.value} version={version} />
        ) : (
          <Pending of={snapshots} />
        )}
      </section>
      <section aria-labelledby="trends">
        <h2 id="trends">{t.history.trends}</h2>
        <Trends dataset={of} version={version} />
      </section>
      <section aria-labelledby="journal">
        <h2 id="journal">{t.history.journal}</h2>
        {journal.value ? <Journal dataset={of} steps={journal.value.steps} /> : <Pending of={journal} />}
      </section>
    </div>
  );
}

async function attempt(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    sayError(error);
  }
}

function askSnapshot(of: DatasetStatus, list: Resource<Snapshot[]>): void {
  const take = (name: string): Promise<void> =>
    attempt(async () => {
      await post(`/dataset/${of.id}/snapshot`, { name });
      list.reload();
    });
  openDialog(() => (
    <Prompt
      title={t.history.take}
      label={t.history.name}
      submit={t.history.take}
      onSubmit={(name) => void take(name)}
    />
  ));
}

function Snapshots({ dataset: of, list }: { dataset: DatasetStatus; list: Resource<Snapshot[]> }) {
  const restore = (snapshot: Snapshot): void =>
    openDialog(() => (
      <Confirm
        title={t.history.restoreTitle(snapshot.snapshot_name)}
        text={t.history.restoreHint}
        submit={t.history.restore}
        onConfirm={() => void attempt(() => restoreNow(of, snapshot))}
      />
    ));
  const clone = (snapshot: Snapshot): void => void attempt(() => cloneNow(of, { snapshot: snapshot.snapshot_id }));
  const remove = (snapshot: Snapshot): void =>
    openDialog(() => (
      <Confirm
        title={t.history.removeTitle(snapshot.snapshot_name)}
        text=""
        submit={t.history.remove}
        onConfirm={() =>
          void attempt(async () => {
            await call("DELETE", `/dataset/${of.id}/snapshot/${snapshot.snapshot_id}`);
            list.reload();
          })
        }
      />
    ));
  return (
    <ul class="rows">
      {list.value?.map((snapshot) => (
        <li key={snapshot.snapshot_id}>
          <strong>{snapshot.snapshot_name}</strong>
          <span>{t.home.counts(snapshot.n_images, snapshot.n_videos)}</span>
          <span>{date(snapshot.created_at)}</span>
          <span>{snapshot.created_by}</span>
          {snapshot.is_current && <span class="hint">{t.history.current}</span>}
          {snapshot.description && <span class="hint">{snapshot.description}</span>}
          <span class="grow" />
          <Button needs="dataset.edit" onClick={() => restore(snapshot)}>
            {t.history.restore}
          </Button>
          <Button needs="dataset.clone" onClick={() => clone(snapshot)}>
            {t.history.clone}
          </Button>
          <Button
            needs="dataset.edit"
            kind="quiet"
            disabledReason={snapshot.is_current ? t.history.currentStays : undefined}
            onClick={() => remove(snapshot)}
          >
            {t.history.remove}
          </Button>
        </li>
      ))}
    </ul>
  );
}

async function restoreNow(of: DatasetStatus, snapshot: Snapshot): Promise<void> {
  await post(`/dataset/${of.id}/snapshot/${snapshot.snapshot_id}/restore`);
  await waitForTasksOf(of.id);
  await remember(of.id, "restore", `${t.history.restore}: ${snapshot.snapshot_name}`);
}

/** Copies a snapshot, or without one the present state. */
async function cloneNow(of: DatasetStatus, state: { snapshot?: string }): Promise<void> {
  await post(`/dataset/${of.id}/clone`, state);
  await loadDatasets();
  navigate("/");
}

function Journal({ dataset: of, steps }: { dataset: DatasetStatus; steps: JournalStep[] }) {
  const columns = t.history.columns;
  const undo = (step: JournalStep): Promise<void> =>
    attempt(async () => {
      const { lost_files } = await post<ActionOutcome>(`/dataset/${of.id}/undo`, { token: String(step.step) });
      say(t.edits.undone(t.history.operations[step.operation] ?? step.operation) + t.edits.lostFiles(lost_files ?? 0));
      editVersion.value++;
    });
  if (steps.length === 0) return <p class="hint">{t.history.none}</p>;
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{columns.step}</th>
          <th scope="col">{columns.what}</th>
          <th scope="col">{columns.images}</th>
          <th scope="col">{columns.who}</th>
          <th scope="col">{columns.when}</th>
          <td />
        </tr>
      </thead>
      <tbody>
        {steps.map((step) => (
          <tr key={step.step}>
            <td class="number">{step.step}</td>
            <th scope="row">{t.history.operations[step.operation] ?? step.operation}</th>
            <td class="number">{count(step.n_media)}</td>
            <td>{step.created_by}</td>
            <td>{date(step.created_at)}</td>
            <td>
              {step.undone_by ? (
                <span class="hint">{t.history.undone(step.undone_by)}</span>
              ) : (
                <Button needs="dataset.edit" kind="quiet" onClick={() => void undo(step)} disabledReason={step.reason}>
                  {t.history.undo}
                </Button>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
