import { get, post } from "../api/http";
import type { DatasetStatus, IssueSummary, ResultsInfo, Row, VqlElement } from "../api/types";
import { count } from "../lib/format";
import { filterText } from "../lib/vql";
import { Button } from "../parts/Button";
import { LeftOut } from "../parts/LeftOut";
import { Pending, useResource } from "../parts/Resource";
import { openSharing } from "../parts/Sharing";
import { Skeleton } from "../parts/Skeleton";
import { Sources } from "../parts/Sources";
import { StateBar } from "../parts/StateBar";
import { THUMB_COLUMNS, Thumb } from "../parts/Thumb";
import { pathOf } from "../router";
import { addressOf, dataset, stats } from "../state/datasets";
import { whyNot } from "../state/permissions";
import { authIsOff } from "../state/session";
import { t } from "../texts";
import { sources as texts } from "../texts/sources";

const PREVIEWS = 6;
const MOST_LABELS = 20;
/** Issue types by how much they matter; those that are not named come last. */
const GRAVITY = [
  "corrupted",
  "unreadable",
  "not_supported",
  "over_limit",
  "duplicates",
  "mislabels",
  "blur",
  "dark",
  "bright",
  "low_information",
  "outliers",
  "label_outlier",
];

/** What was found in a dataset, the gravest first. */
export default function Overview() {
  const found = dataset.value;
  if (!found) return null;
  const counts = stats.value;
  return (
    <div class="page">
      <header class="page-head">
        <h1>{found.display_name}</h1>
        <p>{t.home.counts(found.n_images, found.n_videos)}</p>
        {!authIsOff.value && whyNot("dataset.share") === null && (
          <Button hint="Shift S" onClick={() => openSharing(found)}>
            {t.sharing.open}
          </Button>
        )}
      </header>
      <StateBar dataset={found} />
      {found.description && <p>{found.description}</p>}
      <section aria-labelledby="findings">
        <h2 id="findings">{t.overview.findings}</h2>
        {found.updated_at === null ? (
          <p class="hint">{t.overview.notYet}</p>
        ) : counts ? (
          <Findings dataset={found} issues={counts.issues} />
        ) : (
          <Skeleton />
        )}
      </section>
      {found.updated_at !== null && (
        <section aria-labelledby="sources">
          <h2 id="sources">{texts.title}</h2>
          <Sources dataset={found} />
        </section>
      )}
      {found.updated_at !== null && <LeftOut dataset={found} />}
      <section aria-labelledby="labels">
        <h2 id="labels">{t.overview.labels}</h2>
        {counts && <Labels dataset={found} labels={counts.labels} />}
      </section>
    </div>
  );
}

function order(issue: IssueSummary): number {
  const index = GRAVITY.indexOf(issue.issue_type);
  return index < 0 ? GRAVITY.length : index;
}

function Findings({ dataset: of, issues }: { dataset: DatasetStatus; issues: IssueSummary[] }) {
  const present = issues.filter((each) => each.count > 0).sort((a, b) => order(a) - order(b));
  const notes = issues.filter((each) => each.note);
  return (
    <>
      {present.length === 0 && <p class="hint">{t.overview.nothing}</p>}
      <ul class="findings">
        {present.map((issue) => (
          <li key={issue.issue_type}>
            <Finding dataset={of} issue={issue} />
          </li>
        ))}
      </ul>
      {notes.length > 0 && (
        <>
          <h3>{t.overview.notes}</h3>
          <ul class="notes">
            {notes.map((each) => (
              <li key={each.issue_type}>
                {t.issueNames[each.issue_type] ?? each.issue_type}: {each.note}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

/** The page where an issue is reviewed. */
export function reviewPath(name: string, issueType: string): string {
  if (issueType === "duplicates") return pathOf(name, "duplicates");
  if (issueType === "mislabels") return pathOf(name, "labels");
  return pathOf(name, "issues", issueType);
}

function Finding({ dataset: of, issue }: { dataset: DatasetStatus; issue: IssueSummary }) {
  const vql: VqlElement[] = [{ issues: { op: "issue", value: issue.issue_type } }];
  const rows = useResource(
    async (signal) => {
      const info = await post<ResultsInfo>(`/dataset/${of.id}/results`, { vql });
      const query = { limit: PREVIEWS, columns: THUMB_COLUMNS };
      return (await get<{ rows: Row[] }>(`/dataset/${of.id}/results/${info.rid}/rows`, query, signal)).rows;
    },
    [of.id, issue.count],
  );
  return (
    <article class="finding">
      <h3>
        <span class="finding-count">{count(issue.count)}</span> {t.issueNames[issue.issue_type] ?? issue.issue_type}
      </h3>
      <div class="finding-images" aria-hidden="true">
        {rows.value
          ? rows.value.map((row) => <Thumb key={row.media_id} datasetId={of.id} row={row} size={96} />)
          : rows.error && <Pending of={rows} />}
      </div>
      <p class="hint">{t.issueReasons[issue.issue_type] ?? issue.meaning}</p>
      <p class="finding-links">
        <a class="button main" href={reviewPath(addressOf(of), issue.issue_type)}>
          {t.overview.review}
        </a>
        <a
          class="button"
          href={pathOf(addressOf(of), "pictures", null, new URLSearchParams({ f: filterText(vql)! }).toString())}
        >
          {t.navigation.pictures}
        </a>
      </p>
    </article>
  );
}

function Labels({ dataset: of, labels }: { dataset: DatasetStatus; labels: { name: string; count: number }[] }) {
  if (labels.length === 0) return <p class="hint">{t.overview.noLabels}</p>;
  const most = Math.max(...labels.map((each) => each.count));
  const name = addressOf(of);
  return (
    <>
      <ul class="bars">
        {labels.slice(0, MOST_LABELS).map((label) => {
          const f = filterText([{ labels: { op: "is", value: label.name } }])!;
          return (
            <li key={label.name}>
              <a href={pathOf(name, "pictures", null, new URLSearchParams({ f }).toString())}>
                <span class="bar-name">{label.name}</span>
                <meter min={0} max={most} value={label.count} aria-hidden="true" />
                <span class="number">{count(label.count)}</span>
              </a>
            </li>
          );
        })}
      </ul>
      {labels.length > MOST_LABELS && (
        <a href={pathOf(name, "labels")}>{t.overview.more(labels.length - MOST_LABELS)}</a>
      )}
    </>
  );
}
