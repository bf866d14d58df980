import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { ApiError, get, post } from "../api/http";
import type { CleanupPlanInfo, DatasetStatus, VqlElement } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { count } from "../lib/format";
import { filterText } from "../lib/vql";
import { Button } from "../parts/Button";
import { Confirm } from "../parts/Confirm";
import { datasetPage } from "../parts/DatasetPage";
import { MAY_BE_IN_ORDER } from "../parts/faults";
import { useResource } from "../parts/Resource";
import { StateBar } from "../parts/StateBar";
import { pathOf } from "../router";
import { addressOf, stats } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { change, editVersion, remember } from "../state/edits";
import { say, sayError } from "../state/notices";
import { readRows } from "../state/rows";
import { waitForTask } from "../state/tasks";
import { t } from "../texts";

const IN_BASKET: VqlElement[] = [{ tags: { op: "is", value: "basket" } }];
const PART = 100;

interface PlanRow {
  media_id: string;
  file_name?: string;
  path?: string;
  action?: string;
  reason?: string;
  warning?: string | null;
  [column: string]: unknown;
}

export default datasetPage(Cleanup);

/** The basket, a plan of what to remove, and its application. */
function Cleanup({ dataset: of }: { dataset: DatasetStatus }) {
  const basket = useResource(
    async () => (await readRows(of.id, { vql: IN_BASKET }, ["media_id"], 1)).info,
    [of.id, editVersion.value],
  );
  const copies = useSignal("");
  const issues = useSignal<ReadonlySet<string>>(new Set());
  const plan = useSignal<CleanupPlanInfo | null>(null);
  const n = basket.value?.count ?? 0;
  const id = useId();
  const make = async (): Promise<void> => {
    try {
      const rules = {
        duplicates: copies.value === "" ? null : Number(copies.value),
        issues: [...issues.value],
      };
      if (rules.duplicates === null && rules.issues.length === 0) plan.value = null;
      else plan.value = await post<CleanupPlanInfo>(`/dataset/${of.id}/cleanup/plan`, rules);
    } catch (error) {
      sayError(error);
    }
  };
  const applyPlan = async (): Promise<void> => {
    await applyAll(of, basket.value?.rid, n, plan.peek());
    plan.value = null; // it was of the dataset before
  };
  const apply = (): void => {
    if (of.status_new === "PARTIAL INDEX") say(t.cleanup.partial, "error");
    else if (n > 0 || plan.peek())
      openDialog(() => (
        <Confirm
          title={t.cleanup.applyTitle}
          text={t.cleanup.applyHint}
          submit={t.cleanup.apply}
          onConfirm={() => void applyPlan()}
        />
      ));
  };
  useKeys("cleanup", { apply });
  const reason =
    of.status_new === "PARTIAL INDEX" ? t.cleanup.partial : n === 0 && !plan.value ? t.cleanup.nothing : null;
  return (
    <div class="page">
      <StateBar dataset={of} />
      <h1>{t.navigation.cleanup}</h1>
      <section>
        <p role="status">{t.cleanup.basket(n)}</p>
        {n === 0 ? (
          <p class="hint">{t.cleanup.empty}</p>
        ) : (
          <p class="queue-actions">
            <a
              class="button"
              href={pathOf(
                addressOf(of),
                "pictures",
                null,
                new URLSearchParams({ f: filterText(IN_BASKET)! }).toString(),
              )}
            >
              {t.navigation.pictures}
            </a>
            <Button
              needs="dataset.edit"
              onClick={() => {
                const on = { rid: basket.value?.rid ?? "" };
                void change({ datasetId: of.id, action: "basket_remove", on, words: t.edits.basketRemoved }).catch(
                  () => {},
                );
              }}
            >
              {t.cleanup.emptyIt}
            </Button>
          </p>
        )}
      </section>
      <form
        class="form narrow"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <h2>{t.cleanup.rules}</h2>
        <label for={id}>{t.cleanup.copies}</label>
        <select
          id={id}
          value={copies.value}
          onChange={(event) => {
            copies.value = event.currentTarget.value;
          }}
        >
          <option value="">{t.cleanup.noCopies}</option>
          {["1", "0.99", "0.98", "0.97", "0.96"].map((level) => (
            <option key={level} value={level}>
              {level}
            </option>
          ))}
        </select>
        <fieldset>
          <legend>{t.cleanup.issues}</legend>
          {(stats.value?.issues ?? [])
            .filter((each) => each.issue_type !== "duplicates" && !MAY_BE_IN_ORDER.includes(each.issue_type))
            .map((each) => (
              <label key={each.issue_type} class="check-line">
                <input
                  type="checkbox"
                  checked={issues.value.has(each.issue_type)}
                  onChange={() => {
                    const next = new Set(issues.value);
                    if (!next.delete(each.issue_type)) next.add(each.issue_type);
                    issues.value = next;
                  }}
                />
                {t.issueNames[each.issue_type] ?? each.issue_type} <span class="hint number">{count(each.count)}</span>
              </label>
            ))}
        </fieldset>
        <Button type="submit" onClick={() => {}}>
          {t.cleanup.make}
        </Button>
      </form>
      {plan.value && <Plan dataset={of} plan={plan.value} />}
      <p>
        <Button kind="danger" hint="Enter" onClick={apply} disabledReason={reason}>
          {t.cleanup.apply}
        </Button>
      </p>
    </div>
  );
}

function Plan({ dataset: of, plan }: { dataset: DatasetStatus; plan: CleanupPlanInfo }) {
  const rows = useResource(
    async (signal) =>
      get<{ rows: PlanRow[]; count: number }>(
        `/dataset/${of.id}/cleanup/plan/${plan.plan_id}/rows`,
        { limit: PART },
        signal,
      ),
    [plan.plan_id],
  );
  const columns = t.cleanup.columns;
  return (
    <section aria-labelledby="plan">
      <h2 id="plan">{t.cleanup.rows}</h2>
      <p role="status">{plan.words}</p>
      {rows.value && (
        <table>
          <thead>
            <tr>
              <th scope="col">{columns.file}</th>
              <th scope="col">{columns.action}</th>
              <th scope="col">{columns.reason}</th>
              <th scope="col">{columns.warning}</th>
            </tr>
          </thead>
          <tbody>
            {rows.value.rows.map((row) => (
              <tr key={row.media_id}>
                <td class="path">{row.path ?? row.file_name}</td>
                <td>{row.action}</td>
                <td>{row.reason}</td>
                <td>{row.warning}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {rows.value && rows.value.count > PART && <p class="hint">{t.cleanup.total(rows.value.count)}</p>}
    </section>
  );
}

/** Apply the plan, then remove what is in the basket; both are steps of the journal. */
async function applyAll(
  of: DatasetStatus,
  rid: string | undefined,
  n: number,
  plan: CleanupPlanInfo | null,
): Promise<void> {
  try {
    if (plan) {
      const started = await post<{ task_id: string | null }>(`/dataset/${of.id}/cleanup/apply`, {
        plan_id: plan.plan_id,
      });
      if (started.task_id) await waitForTask(started.task_id);
      await remember(of.id, "cleanup", t.cleanup.applied(plan.summary.removed));
    }
    if (n > 0 && rid) {
      const { info } = await readRows(of.id, { vql: IN_BASKET }, ["media_id"], 1);
      if (info.count > 0)
        await change({ datasetId: of.id, action: "delete", on: { rid: info.rid }, words: t.edits.deleted });
    }
  } catch (error) {
    if (error instanceof ApiError) sayError(error);
    else throw error;
  }
}
