import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api/http";
import type { ComparisonCounts, ComparisonRows, DatasetStatus, Snapshot } from "../api/types";
import { count, date } from "../lib/format";
import { pathOf, query, setQuery } from "../router";
import { addressOf } from "../state/datasets";
import { t } from "../texts";
import { Pager } from "./Pager";
import { Pending, useResource } from "./Resource";
import { Thumb } from "./Thumb";

const PRESENT = "head";
const PAGE = 50;
type Change = ComparisonRows["rows"][number]["change"];

/** What differs between two states: snapshots, or the present one. The address names them. */
export function Changes({ dataset: of, snapshots, version }: Props) {
  const before = query.value.get("a") ?? "";
  const after = query.value.get("b") ?? PRESENT;
  const choose = (changes: Record<string, string | null>): void =>
    setQuery({ ...changes, change: null }, { replace: true });
  return (
    <>
      <p class="compare-states">
        <label>
          {t.changes.before}{" "}
          <select value={before} onChange={(event) => choose({ a: event.currentTarget.value || null })}>
            <option value="">{t.changes.choose}</option>
            <States snapshots={snapshots} />
          </select>
        </label>
        <label>
          {t.changes.after}{" "}
          <select value={after} onChange={(event) => choose({ b: event.currentTarget.value })}>
            <option value={PRESENT}>{t.changes.present}</option>
            <States snapshots={snapshots} />
          </select>
        </label>
      </p>
      {before && <Counts dataset={of} before={before} after={after} version={version} />}
    </>
  );
}

interface Props {
  dataset: DatasetStatus;
  snapshots: readonly Snapshot[];
  /** Changes with the present state. */
  version: string;
}

function States({ snapshots }: { snapshots: readonly Snapshot[] }) {
  return (
    <>
      {snapshots.map((each) => (
        <option key={each.snapshot_id} value={each.snapshot_id}>
          {each.snapshot_name} · {date(each.created_at)}
        </option>
      ))}
    </>
  );
}

/** The number of images with each change; one of them is shown in full. */
function Counts({ dataset: of, before, after, version }: Between & { dataset: DatasetStatus; version: string }) {
  const found = useResource<ComparisonCounts>(
    (signal) => get(`/dataset/${of.id}/compare`, { before, after }, signal),
    [of.id, before, after, version],
  );
  if (!found.value) return <Pending of={found} />;
  const counts = Object.entries(found.value.counts).filter(([, n]) => n > 0) as [Change, number][];
  if (counts.length === 0) return <p role="status">{t.changes.none}</p>;
  const wanted = query.value.get("change");
  const change = counts.find(([name]) => name === wanted)?.[0] ?? counts[0]![0];
  return (
    <>
      <ul class="kinds" aria-label={t.changes.kinds}>
        {counts.map(([name, n]) => (
          <li key={name}>
            <button
              type="button"
              class="button"
              aria-pressed={name === change}
              onClick={() => setQuery({ change: name }, { replace: true })}
            >
              {t.changes.names[name]} <span class="number">{count(n)}</span>
            </button>
          </li>
        ))}
      </ul>
      <p>
        <a href={pathOf(addressOf(of), "map", null, `colour=since:${before}${after === PRESENT ? "" : `:${after}`}`)}>
          {t.changes.onMap}
        </a>
      </p>
      <Rows key={`${before} ${after} ${change}`} dataset={of} before={before} after={after} change={change} />
    </>
  );
}

interface Between {
  before: string;
  after: string;
}

/** The images with a change, with what was before and after. */
function Rows({ dataset: of, before, after, change }: Between & { dataset: DatasetStatus; change: Change }) {
  const offset = useSignal(0);
  useEffect(() => {
    offset.value = 0;
  }, [change]);
  const page = useResource<ComparisonRows>(
    (signal) =>
      get(`/dataset/${of.id}/compare/rows`, { before, after, change, offset: offset.value, limit: PAGE }, signal),
    [of.id, before, after, change, offset.value],
  );
  if (!page.value) return <Pending of={page} />;
  const { rows, total } = page.value;
  const hasValues = rows.some((row) => row.before !== null || row.after !== null);
  const columns = t.changes.columns;
  return (
    <>
      <div class="table-box" role="region" tabIndex={0} aria-label={t.changes.names[change]}>
        <table class="changes">
          <caption>{t.changes.caption(t.changes.names[change], total)}</caption>
          <thead>
            <tr>
              <td />
              <th scope="col">{columns.image}</th>
              {hasValues && <th scope="col">{columns.before}</th>}
              {hasValues && <th scope="col">{columns.after}</th>}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.media_id}>
                <td>{change !== "removed" && <Thumb datasetId={of.id} row={{ ...row, v: null }} size={64} />}</td>
                <th scope="row">
                  {change === "removed" ? (
                    row.image_filename
                  ) : (
                    <a href={pathOf(addressOf(of), "m", row.media_id)}>{row.image_filename}</a>
                  )}
                </th>
                {hasValues && <td>{words(change, row.before)}</td>}
                {hasValues && <td>{words(change, row.after)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Pager offset={offset} size={PAGE} shown={rows.length} total={total} />
    </>
  );
}

function words(change: Change, values: readonly string[] | null): string {
  const isOfIssues = change === "newly_flagged" || change === "resolved";
  return (values ?? []).map((each) => (isOfIssues ? (t.issueNames[each] ?? each) : each)).join(", ");
}
