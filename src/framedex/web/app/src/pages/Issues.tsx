import { useSignal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import { get, post } from "../api/http";
import type { DatasetStatus, IssueSummary, ValueHistogram } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { count, number } from "../lib/format";
import { Button } from "../parts/Button";
import { datasetPage } from "../parts/DatasetPage";
import { FAULT_COLUMNS, ISSUES_OF_FILES } from "../parts/faults";
import { Histogram } from "../parts/Histogram";
import { useResource } from "../parts/Resource";
import { Skeleton } from "../parts/Skeleton";
import { StateBar } from "../parts/StateBar";
import { THUMB_COLUMNS, Thumb, type ThumbRow } from "../parts/Thumb";
import { useIdleQueueKeys } from "../parts/useIdleKeys";
import { navigate, pathOf, route } from "../router";
import { addressOf, loadStats, stats } from "../state/datasets";
import { type ActionName, change, editVersion, undo } from "../state/edits";
import { sayError } from "../state/notices";
import { Queue } from "../state/queue";
import { readRows } from "../state/rows";
import { shows } from "../state/screen";
import { t } from "../texts";

const PART = 60;
/** How long a limit rests before the images beyond it are counted. */
const WAIT_MS = 150;

interface Finding extends ThumbRow {
  value: number;
}

export default datasetPage(Issues);

/** The images with an issue, the worst first, and the limit from which they have it. */
function Issues({ dataset: of }: { dataset: DatasetStatus }) {
  const types = (stats.value?.issues ?? []).filter((each) => !["duplicates", "mislabels"].includes(each.issue_type));
  const chosen = route.value.rest ?? types.find((each) => each.count > 0)?.issue_type ?? types[0]?.issue_type;
  const name = addressOf(of);
  return (
    <div class="page queue">
      <StateBar dataset={of} />
      <h1>{t.navigation.issues}</h1>
      <nav aria-label={t.issues.types} class="tabs">
        {types.map((each) => (
          <a
            key={each.issue_type}
            href={pathOf(name, "issues", each.issue_type)}
            aria-current={each.issue_type === chosen ? "page" : undefined}
          >
            {t.issueNames[each.issue_type] ?? each.issue_type} <span class="number">{count(each.count)}</span>
          </a>
        ))}
      </nav>
      {chosen && <OneType key={chosen} dataset={of} type={chosen} />}
    </div>
  );
}

function OneType({ dataset: of, type }: { dataset: DatasetStatus; type: string }) {
  const queue = useMemo(() => new Queue(reader(of, type), (item) => item.media_id), [of.id, type]);
  useEffect(() => queue.refresh(editVersion.value), [queue, editVersion.value]);
  const okTag = t.issues.okTag(type);
  const decide = async (
    action: ActionName,
    args: Record<string, unknown>,
    words: (n: number) => string,
  ): Promise<void> => {
    const item = queue.current;
    if (!item) return;
    const on = { ids: [item.media_id] };
    await queue.take(item, () => change({ datasetId: of.id, action, on, args, words }), true);
  };
  const accept = (): void => void decide("basket_add", {}, t.edits.basketAdded);
  const reject = (): void => void decide("tag", { tag: okTag }, t.edits.tagged(okTag));
  const limit = useRef<HTMLInputElement>(null);
  useKeys("issues", {
    next: () => queue.move(1),
    previous: () => queue.move(-1),
    accept,
    reject,
    limit: () => limit.current?.focus(),
    open: () => queue.current && navigate(pathOf(addressOf(of), "m", queue.current.media_id)),
    undo: () => void undo(of.id),
  });
  useIdleQueueKeys("issues", queue, t.issues.none, ["undo", "limit"]);
  const summary = stats.value?.issues.find((each) => each.issue_type === type);
  return (
    <>
      <p class="hint">{summary && (summary.note ?? explanation(summary))}</p>
      {summary && summary.threshold !== null && (
        <Limit dataset={of} type={type} input={limit} onChange={() => void queue.load()} />
      )}
      {queue.isLoading.value && queue.items.value.length === 0 && <Skeleton />}
      {queue.error.value && (
        <p class="problem" role="alert">
          {queue.error.value.message}
        </p>
      )}
      {queue.items.value.length === 0 && !queue.isLoading.value && <p>{t.issues.none}</p>}
      <ul class="worst">
        {queue.items.value.map((item, index) => (
          <li key={item.media_id}>
            <button
              type="button"
              class={`member ${index === queue.index.value ? "focused" : ""}`}
              aria-pressed={index === queue.index.value}
              onClick={() => {
                queue.index.value = index;
              }}
            >
              <Thumb datasetId={of.id} row={item} size={144} alt={item.image_filename} />
              <span>{number(item.value)}</span>
            </button>
          </li>
        ))}
      </ul>
      <div class="queue-actions">
        <Button kind="main" hint="Enter" onClick={accept}>
          {t.issues.accept}
        </Button>
        <Button hint="Backspace" onClick={reject}>
          {t.issues.reject}
        </Button>
      </div>
    </>
  );
}

/** Images with the issue that are neither in the basket nor tagged as right. */
function reader(of: DatasetStatus, type: string) {
  return async (offset: number) => {
    const vql = [{ issues: { op: "issue", value: type } }, { not: { tags: { op: "is", value: "basket" } } }] as Record<
      string,
      unknown
    >[];
    const known = await get<{ name: string }[]>(`/dataset/${of.id}/tags`);
    const ok = t.issues.okTag(type);
    if (known.some((tag) => tag.name === ok)) vql.push({ not: { tags: { op: "is", value: ok } } });
    const hasValues = !ISSUES_OF_FILES.includes(type);
    const above = stats.peek()?.issues.find((each) => each.issue_type === type);
    const columns = [...THUMB_COLUMNS, ...(hasValues ? [type] : [])];
    const sort = hasValues ? { column: type, descending: await isAbove(of, above?.issue_type ?? type) } : null;
    shows({ vql, ...(sort ? { sort } : {}) });
    const { rows, info } = await readRows(of.id, { vql, sort }, columns, offset + PART);
    const items: Finding[] = rows.slice(offset).map((row) => ({
      media_id: row.media_id,
      image_filename: row.image_filename,
      v: row.v,
      ...Object.fromEntries(FAULT_COLUMNS.map((name) => [name, row[name] === true])),
      value: hasValues ? Number(row[type] ?? 0) : 1,
    }));
    return { items, hasMore: info.count > offset + PART };
  };
}

async function isAbove(of: DatasetStatus, type: string): Promise<boolean> {
  const limits = await get<{ issue_type: string; above: boolean }[]>(`/dataset/${of.id}/limits`);
  return limits.find((each) => each.issue_type === type)?.above ?? true;
}

interface LimitProps {
  dataset: DatasetStatus;
  type: string;
  input: { current: HTMLInputElement | null };
  onChange: () => void;
}

/** The histogram of an issue's values, and its limit, which is moved with the pointer or the arrows. */
function Limit({ dataset: of, type, input, onChange }: LimitProps) {
  const value = useSignal<number | null>(null);
  const id = useId();
  const found = useResource(
    async (signal) => {
      const page = await get<{ histograms: ValueHistogram[] }>(
        `/dataset/${of.id}/quality`,
        { column: type, bins: 60 },
        signal,
      );
      return page.histograms[0] ?? null;
    },
    [of.id, type, editVersion.value],
  );
  const histogram = found.value;
  const moved = value.value;
  const beyond = useResource(
    async (signal) => {
      if (moved === null || !histogram) return null;
      await new Promise((done) => setTimeout(done, WAIT_MS)); // the pointer may go on
      if (signal.aborted) return null;
      const vql = [{ quality: { of: type, op: histogram.above ? "gt" : "lt", value: moved } }];
      return (await post<{ count: number }>(`/dataset/${of.id}/results`, { vql })).count;
    },
    [of.id, type, moved, editVersion.value],
  ).value;
  if (!histogram) return null;
  const limit = moved ?? histogram.limit;
  const n = moved === null ? stats.value?.issues.find((each) => each.issue_type === type)?.count : beyond;
  const [first, last] = [histogram.edges[0] ?? 0, histogram.edges.at(-1) ?? 1];
  const set = async (body: unknown): Promise<void> => {
    try {
      await post(`/dataset/${of.id}/limits`, body);
      value.value = null;
      editVersion.value++;
      await loadStats(of.id);
      onChange();
    } catch (error) {
      sayError(error);
    }
  };
  return (
    <section class="limit" aria-label={t.issues.limit}>
      <Histogram histogram={histogram} limit={limit} />
      <label for={id}>{t.issues.limitOf(t.issueNames[type] ?? type)}</label>
      <input
        id={id}
        ref={input}
        type="range"
        min={first}
        max={last}
        step={(last - first) / 200 || 0.01}
        value={limit ?? first}
        onInput={(event) => {
          value.value = Number(event.currentTarget.value);
        }}
      />
      <output for={id}>{limit === null ? "" : number(limit)}</output>
      <span class="hint">{limit !== null && n != null && t.issues.chosen(n)}</span>
      <Button
        needs="dataset.edit"
        onClick={() => void set({ limits: { [type]: limit } })}
        disabledReason={value.value === null ? t.issues.limit : null}
      >
        {t.issues.apply}
      </Button>
      <Button needs="dataset.edit" kind="quiet" onClick={() => void set({ reset: [type] })}>
        {t.issues.reset}
      </Button>
    </section>
  );
}

/** Return what an issue is, and what its value says. */
function explanation({ issue_type, meaning }: IssueSummary): string {
  return [t.issueReasons[issue_type], t.issues.means(meaning)].filter(Boolean).join(" ");
}
