import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId } from "preact/hooks";
import { ApiError, get, post } from "../api/http";
import type { CleanupPlanInfo, DatasetStatus, Row, VqlElement } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { count, size } from "../lib/format";
import { filterText } from "../lib/vql";
import { Button } from "../parts/Button";
import { Confirm } from "../parts/Confirm";
import { datasetPage } from "../parts/DatasetPage";
import { MAY_BE_IN_ORDER } from "../parts/faults";
import { useResource } from "../parts/Resource";
import { Skeleton } from "../parts/Skeleton";
import { StateBar } from "../parts/StateBar";
import { THUMB_COLUMNS, Thumb } from "../parts/Thumb";
import { pathOf } from "../router";
import { addressOf, stats } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { change, editVersion, remember } from "../state/edits";
import { say, sayError } from "../state/notices";
import { rowsOfIds } from "../state/rows";
import { waitForTask } from "../state/tasks";
import { t } from "../texts";
import { cleanup as texts } from "../texts/cleanup";

const IN_BASKET: VqlElement[] = [{ tags: { op: "is", value: "basket" } }];
const NEAR = "near";
const FRAMES = "frames";
const FRAME_SIMILARITY = 0.96;
const PART = 60;
const PREVIEWS = 12;
const THUMB_PX = 96;

interface PlanRow {
  media_id: string;
  path: string;
  reason: string;
  issue_type: string | null;
  kept_media_id: string | null;
  size_bytes: number | null;
  warning: string | null;
  protected: "chosen" | "best" | "last" | null;
}

/** Rows of a plan, as many as were asked for, with the images of these and of what stays in their place. */
interface PlanPart {
  rows: PlanRow[];
  images: ReadonlyMap<string, Row>;
  count: number;
}

export default datasetPage(Cleanup);

/** The plan of what the basket and rules remove together, which is looked through and then applied as one step. */
function Cleanup({ dataset: of }: { dataset: DatasetStatus }) {
  const copies = useSignal("");
  const issues = useSignal<ReadonlySet<string>>(new Set());
  const takenOut = useSignal<ReadonlySet<string>>(new Set());
  const isPartial = of.status_new === "PARTIAL INDEX";
  const rules = { ...duplicatesOf(copies.value), issues: [...issues.value] };
  // What is applied is what is shown: a plan counts once it is of these rules, and without what was taken out.
  const wanted = JSON.stringify([of.id, isPartial, rules, editVersion.value]);
  const whole = useResource(async () => {
    if (isPartial) return null;
    const plan = await post<CleanupPlanInfo>(`/dataset/${of.id}/cleanup/plan`, { ...rules, basket: true });
    return { plan, wanted };
  }, [wanted]);
  const first = whole.value?.plan;
  const taken = JSON.stringify([first?.plan_id, ...takenOut.value]);
  const left = useResource(async () => {
    if (!first || takenOut.value.size === 0) return first && { plan: first, taken };
    const path = `/dataset/${of.id}/cleanup/plan/${first.plan_id}/without`;
    return { plan: await post<CleanupPlanInfo>(path, { media_ids: [...takenOut.value] }), taken };
  }, [taken]);
  useEffect(() => {
    takenOut.value = new Set(); // what was taken out was of another plan
  }, [first?.plan_id]);
  const isCurrent = whole.value?.wanted === wanted && left.value?.taken === taken;
  const plan = isCurrent ? left.value?.plan : undefined;
  const n = plan?.summary.removed ?? 0;
  const words = plan ? texts.total(n, size(plan.summary.size_bytes)) : "";
  const apply = (): void => {
    if (isPartial) say(texts.partial, "error");
    else if (!plan) say(t.loading);
    else if (n > 0) askApply(of, plan, words);
    else say(texts.nothing);
  };
  useKeys("cleanup", { apply });
  const reason = isPartial ? texts.partial : plan && n === 0 ? texts.nothing : null;
  const error = whole.error ?? left.error;
  return (
    <div class="page">
      <StateBar dataset={of} />
      <header class="page-head">
        <h1>{t.navigation.cleanup}</h1>
        <p role="status">{plan ? texts.leaves(n) : isPartial ? texts.partial : t.loading}</p>
      </header>
      <div class="cleanup">
        <div>
          {error && (
            <p class="problem" role="alert">
              {error.message}
            </p>
          )}
          {!first && !error && !isPartial && <Skeleton />}
          {first && (
            <Removed
              dataset={of}
              plan={first}
              takenOut={takenOut.value}
              onChange={(next) => {
                takenOut.value = next;
              }}
            />
          )}
          {first && first.summary.protected > 0 && <Protected dataset={of} plan={first} />}
          {plan && n > 0 && plan.summary.warnings > 0 && (
            <p class="bar warning">{texts.warnings(plan.summary.warnings)}</p>
          )}
        </div>
        <aside>
          <Rules
            hasVideos={of.n_videos > 0}
            copies={copies.value}
            issues={issues.value}
            onCopies={(value) => {
              copies.value = value;
            }}
            onIssues={(value) => {
              issues.value = value;
            }}
          />
          <Basket dataset={of} />
        </aside>
      </div>
      <p class="queue-actions plan-actions">
        {n > 0 && <strong class="number">{words}</strong>}
        <Button kind="danger" hint="Enter" onClick={apply} disabledReason={reason}>
          {texts.remove(n)}
        </Button>
        {n > 0 && <span class="hint">{texts.undoable}</span>}
      </p>
    </div>
  );
}

/** Return the rule for duplicates of a choice: none, a similarity, near images, or frames of one video, too. */
function duplicatesOf(choice: string): { duplicates: number | string | null; within_videos?: boolean } {
  if (choice === FRAMES) return { duplicates: FRAME_SIMILARITY, within_videos: true };
  return { duplicates: choice === "" ? null : choice === NEAR ? NEAR : Number(choice) };
}

interface RulesProps {
  hasVideos: boolean;
  copies: string;
  issues: ReadonlySet<string>;
  onCopies: (value: string) => void;
  onIssues: (value: ReadonlySet<string>) => void;
}

/** The rules that add to the plan. */
function Rules({ hasVideos, copies, issues, onCopies, onIssues }: RulesProps) {
  const id = useId();
  return (
    <form class="form narrow" onSubmit={(event) => event.preventDefault()}>
      <h2>{texts.rules}</h2>
      <label for={id}>{texts.copies}</label>
      <select id={id} value={copies} onChange={(event) => onCopies(event.currentTarget.value)}>
        <option value="">{texts.noCopies}</option>
        {["1", "0.99", "0.98", "0.97", "0.96"].map((level) => (
          <option key={level} value={level}>
            {level}
          </option>
        ))}
        <option value={NEAR}>{texts.near}</option>
        {hasVideos && <option value={FRAMES}>{texts.frames}</option>}
      </select>
      <fieldset>
        <legend>{texts.issues}</legend>
        {(stats.value?.issues ?? [])
          .filter((each) => each.issue_type !== "duplicates" && !MAY_BE_IN_ORDER.includes(each.issue_type))
          .map((each) => (
            <label key={each.issue_type} class="check-line">
              <input
                type="checkbox"
                checked={issues.has(each.issue_type)}
                onChange={() => {
                  const next = new Set(issues);
                  if (!next.delete(each.issue_type)) next.add(each.issue_type);
                  onIssues(next);
                }}
              />
              {t.issueNames[each.issue_type] ?? each.issue_type} <span class="hint number">{count(each.count)}</span>
            </label>
          ))}
      </fieldset>
      <p class="hint">{texts.stays}</p>
    </form>
  );
}

/** What was put aside by hand. */
function Basket({ dataset: of }: { dataset: DatasetStatus }) {
  const basket = useResource(
    async () => post<{ count: number; rid: string }>(`/dataset/${of.id}/results`, { vql: IN_BASKET }),
    [of.id, editVersion.value],
  );
  const n = basket.value?.count ?? 0;
  const query = new URLSearchParams({ f: filterText(IN_BASKET)! }).toString();
  const empty = (): void => {
    const on = { rid: basket.value?.rid ?? "" };
    void change({ datasetId: of.id, action: "basket_remove", on, words: t.edits.basketRemoved }).catch(() => {});
  };
  return (
    <section>
      <h2>{texts.basketTitle}</h2>
      <p>{texts.basket(n)}</p>
      {n === 0 ? (
        <p class="hint">{texts.empty}</p>
      ) : (
        <p class="queue-actions">
          <a class="button" href={pathOf(addressOf(of), "pictures", null, query)}>
            {t.navigation.pictures}
          </a>
          <Button needs="dataset.edit" onClick={empty}>
            {texts.emptyIt}
          </Button>
        </p>
      )}
    </section>
  );
}

/** Read rows of a plan by parts, with the images that they show. */
function usePlanPart(of: DatasetStatus, plan: CleanupPlanInfo, part: string, shown: number) {
  return useResource<PlanPart>(
    async (signal) => {
      const path = `/dataset/${of.id}/cleanup/plan/${plan.plan_id}/rows`;
      const rows: PlanRow[] = [];
      let all = 0;
      do {
        const wanted = { part, offset: rows.length, limit: Math.min(500, shown - rows.length) };
        const page = await get<{ rows: PlanRow[]; count: number }>(path, wanted, signal);
        rows.push(...page.rows);
        all = page.count;
      } while (rows.length < Math.min(shown, all));
      const ids = new Set(rows.flatMap((row) => [row.media_id, row.kept_media_id ?? row.media_id]));
      const images = await rowsOfIds(of.id, [...ids], THUMB_COLUMNS);
      return { rows, images: new Map(images.map((each) => [each.media_id, each])), count: all };
    },
    [plan.plan_id, part, shown],
  );
}

interface RemovedProps {
  dataset: DatasetStatus;
  plan: CleanupPlanInfo;
  takenOut: ReadonlySet<string>;
  onChange: (takenOut: ReadonlySet<string>) => void;
}

/** All that goes, by reason, each beside what stays in its place; a row can be taken out of the plan. */
function Removed({ dataset: of, plan, takenOut, onChange }: RemovedProps) {
  const shown = useSignal(PART);
  const part = usePlanPart(of, plan, "removed", shown.value);
  const found = part.value;
  if (part.error) {
    return (
      <p class="problem" role="alert">
        {part.error.message}
      </p>
    );
  }
  if (!found) return <Skeleton />;
  if (found.count === 0) return <p class="empty">{texts.nothing}</p>;
  const toggle = (id: string): void => {
    const next = new Set(takenOut);
    if (!next.delete(id)) next.add(id);
    onChange(next);
  };
  const reasons = [...new Set(found.rows.map((row) => row.issue_type ?? ""))];
  return (
    <>
      {reasons.map((reason) => (
        <section key={reason} aria-label={reasonName(reason)}>
          <h2>
            {reasonName(reason)}{" "}
            <small class="hint number">
              {texts.total(plan.summary.counts[reason] ?? 0, size(plan.summary.sizes?.[reason] ?? 0))}
            </small>
          </h2>
          <ul class="plan">
            {found.rows
              .filter((row) => row.issue_type === reason)
              .map((row) => (
                <Line
                  key={row.media_id}
                  datasetId={of.id}
                  row={row}
                  images={found.images}
                  isTakenOut={takenOut.has(row.media_id)}
                >
                  <Button
                    label={texts.toggle(row.path, takenOut.has(row.media_id))}
                    onClick={() => toggle(row.media_id)}
                  >
                    {takenOut.has(row.media_id) ? texts.putBack : texts.keepRow}
                  </Button>
                </Line>
              ))}
          </ul>
        </section>
      ))}
      {found.rows.length < found.count && (
        <Button
          onClick={() => {
            shown.value += 4 * PART;
          }}
        >
          {texts.more(found.count - found.rows.length)}
        </Button>
      )}
    </>
  );
}

const reasonName = (reason: string): string =>
  reason === "basket" ? texts.basketTitle : reason === NEAR ? texts.nearTitle : (t.issueNames[reason] ?? reason);

/** What stays although it might go: a person chose it, or it would be the last copy. */
function Protected({ dataset: of, plan }: { dataset: DatasetStatus; plan: CleanupPlanInfo }) {
  const shown = useSignal(PART);
  const found = usePlanPart(of, plan, "protected", shown.value).value;
  if (!found) return null;
  const release = (ids: readonly string[]): void =>
    void change({ datasetId: of.id, action: "unkeep", on: { ids }, words: t.edits.released }).catch(() => {});
  const marked = found.rows.filter((row) => row.protected !== "best").map((row) => row.media_id);
  return (
    <section aria-label={texts.protected}>
      <h2>
        {texts.protected} <small class="hint number">{count(found.count)}</small>{" "}
        {marked.length > 1 && (
          <Button kind="quiet" needs="dataset.edit" onClick={() => release(marked)}>
            {texts.releaseAll(marked.length)}
          </Button>
        )}
      </h2>
      <ul class="plan">
        {found.rows.map((row) => (
          <Line key={row.media_id} datasetId={of.id} row={{ ...row, kept_media_id: null }} images={found.images}>
            {row.protected !== "best" && (
              <Button needs="dataset.edit" label={texts.releaseOf(row.path)} onClick={() => release([row.media_id])}>
                {texts.release}
              </Button>
            )}
          </Line>
        ))}
      </ul>
      {found.rows.length < found.count && (
        <Button
          onClick={() => {
            shown.value += 4 * PART;
          }}
        >
          {texts.more(found.count - found.rows.length)}
        </Button>
      )}
    </section>
  );
}

interface LineProps {
  datasetId: string;
  row: PlanRow;
  images: ReadonlyMap<string, Row>;
  isTakenOut?: boolean;
  children: ComponentChildren;
}

/** A row of the plan: the image, why it goes or stays, and what stays in its place. */
function Line({ datasetId, row, images, isTakenOut = false, children }: LineProps) {
  const image = images.get(row.media_id);
  const kept = row.kept_media_id === null ? undefined : images.get(row.kept_media_id);
  return (
    <li class={isTakenOut ? "taken-out" : ""}>
      {image && <Thumb datasetId={datasetId} row={image} size={THUMB_PX} alt={image.image_filename} />}
      <div>
        <strong class="path">{row.path}</strong>{" "}
        <span class="hint number">{row.size_bytes === null ? "" : size(row.size_bytes)}</span>
        <br />
        <span class="hint">{isTakenOut ? texts.keptByYou : row.reason}</span>
        {row.warning && !isTakenOut && <span class="warning-words"> ⚠ {row.warning}</span>}
      </div>
      {kept && (
        <div class="stays">
          <span aria-hidden="true">→</span>
          <Thumb datasetId={datasetId} row={kept} size={THUMB_PX} alt={texts.staysFor(kept.image_filename)} />
        </div>
      )}
      <div class="do">{children}</div>
    </li>
  );
}

/** Ask with the number, the size and the first images of the plan, then apply it. */
function askApply(of: DatasetStatus, plan: CleanupPlanInfo, words: string): void {
  openDialog(() => (
    <Confirm
      title={texts.applyTitle(words)}
      text={texts.applyHint}
      submit={texts.remove(plan.summary.removed)}
      onConfirm={() => void applyPlan(of, plan)}
    >
      <Previews dataset={of} plan={plan} />
    </Confirm>
  ));
}

function Previews({ dataset: of, plan }: { dataset: DatasetStatus; plan: CleanupPlanInfo }) {
  const found = usePlanPart(of, plan, "removed", PREVIEWS).value;
  return (
    <>
      <ul class="previews">
        {(found?.rows ?? []).map(({ media_id }) => {
          const row = found?.images.get(media_id);
          return (
            row && (
              <li key={media_id}>
                <Thumb datasetId={of.id} row={row} size={THUMB_PX} alt={row.image_filename} />
              </li>
            )
          );
        })}
      </ul>
      {plan.summary.removed > PREVIEWS && <p class="hint">{texts.andMore(plan.summary.removed - PREVIEWS)}</p>}
    </>
  );
}

async function applyPlan(of: DatasetStatus, plan: CleanupPlanInfo): Promise<void> {
  try {
    const started = await post<{ task_id: string | null }>(`/dataset/${of.id}/cleanup/apply`, {
      plan_id: plan.plan_id,
    });
    if (started.task_id) await waitForTask(started.task_id);
    await remember(of.id, "cleanup", texts.applied(plan.summary.removed));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 409 || error.status === 410) {
      say(texts.outdated, "error");
      editVersion.value++; // the plan is made anew, and shown
    } else sayError(error);
  }
}
