import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Image } from "#host";
import { get, post } from "../api/http";
import type {
  DatasetStatus,
  LabelCount,
  RankedLabelIssues,
  ResultsInfo,
  Row,
  SuggestedLabel,
  VqlElement,
} from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { count, number, share } from "../lib/format";
import { filterText } from "../lib/vql";
import { AcceptAll, type Proposal } from "../parts/AcceptAll";
import { Button } from "../parts/Button";
import { datasetPage } from "../parts/DatasetPage";
import { canRank, LabelNoise } from "../parts/LabelNoise";
import { Prompt } from "../parts/Prompt";
import { Pending, useResource } from "../parts/Resource";
import { labelNames } from "../parts/SelectionBar";
import { Skeleton } from "../parts/Skeleton";
import { StateBar } from "../parts/StateBar";
import { THUMB_COLUMNS, Thumb } from "../parts/Thumb";
import { thumbnail } from "../parts/thumbnail";
import { useIdleQueueKeys } from "../parts/useIdleKeys";
import { navigate, pathOf, query } from "../router";
import { addressOf } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { type ActionName, change, editVersion, undo } from "../state/edits";
import { Queue } from "../state/queue";
import { readRows } from "../state/rows";
import { t } from "../texts";
import { noise } from "../texts/findings";

const PART = 50;
const NEIGHBOURS = 5;
const MOST_OFFERED = 9;
const RANKED = "ranked";
/** A change of labels makes another ranking, so few parts are read. */
const RANKED_PART = 200;

interface Mislabel {
  media_id: string;
  file_name: string;
  path: string;
  confidence: number;
  suggested_label: string | null;
  /** The expected share of wrong labels up to this one, in the ranking of all. */
  expected_precision?: number;
}

export default datasetPage(Labels);

/** The labels that are probably wrong, one after another, and all labels with their numbers. */
function Labels({ dataset: of }: { dataset: DatasetStatus }) {
  const pair = pairOf(query.value);
  const isRanked = query.value.has(RANKED);
  const queue = useMemo(
    () => new Queue(isRanked ? rankedReader(of) : reader(of, pair), (item: Mislabel) => item.media_id),
    [of.id, JSON.stringify(pair), isRanked],
  );
  useEffect(() => queue.refresh(editVersion.value), [queue, editVersion.value]);
  const all = useResource(
    (signal) => get<{ labels: LabelCount[] }>(`/dataset/${of.id}/labels`, {}, signal),
    [of.id, editVersion.value],
  );
  const item = queue.current;
  useKeys("labels", { undo: () => void undo(of.id) }); // also once the queue is empty
  useIdleQueueKeys("labels", queue, t.labels.none, ["undo"]);
  return (
    <div class="page queue">
      <StateBar dataset={of} />
      <h1>{t.navigation.labels}</h1>
      {all.value && <LabelNoise dataset={of} labels={all.value.labels} />}
      <Pairs dataset={of} chosen={pair} isRanked={isRanked} offersAll={canRank(all.value?.labels ?? [])} />
      {queue.isLoading.value && queue.items.value.length === 0 && <Skeleton />}
      {queue.error.value && (
        <p class="problem" role="alert">
          {queue.error.value.message}
        </p>
      )}
      {item ? (
        <Item key={item.media_id} dataset={of} queue={queue} item={item} />
      ) : (
        !queue.isLoading.value &&
        !queue.error.value && <Nothing dataset={of} labels={all.value?.labels ?? []} isRanked={isRanked} />
      )}
      <section aria-labelledby="all-labels">
        <h2 id="all-labels">{t.labels.all}</h2>
        {all.value ? (
          <ul class="columns">
            {all.value.labels.map((label) => (
              <li key={label.name}>
                <a
                  href={pathOf(
                    addressOf(of),
                    "pictures",
                    null,
                    new URLSearchParams({ f: filterText([{ labels: { op: "is", value: label.name } }])! }).toString(),
                  )}
                >
                  {label.name}
                </a>{" "}
                <span class="number hint">{count(label.count)}</span>
              </li>
            ))}
          </ul>
        ) : (
          <Pending of={all} />
        )}
      </section>
    </div>
  );
}

interface NothingProps {
  dataset: DatasetStatus;
  labels: readonly LabelCount[];
  isRanked: boolean;
}

/** What is said where no label is an issue, with the way to all labels in the order in which they may be wrong. */
function Nothing({ dataset: of, labels, isRanked }: NothingProps) {
  const notes = useResource<{ notes: string[] }>(
    (signal) => get(`/dataset/${of.id}/issues`, { issue: "mislabels", limit: 1 }, signal),
    [of.id],
  );
  if (isRanked) return <p>{noise.noneRanked}</p>;
  return (
    <>
      <p>{t.labels.none}</p>
      {canRank(labels) && (
        <p>
          <Button kind="main" onClick={() => navigate(rankedPage(of))}>
            {noise.showAnyway}
          </Button>
        </p>
      )}
      {notes.value?.notes.map((note) => (
        <p key={note} class="hint">
          {note}
        </p>
      ))}
    </>
  );
}

/** Present labels, and the one that is suggested instead. */
interface Pair {
  labels: readonly string[];
  suggested: string;
}

function pairOf(address: URLSearchParams): Pair | null {
  const suggested = address.get("suggested");
  return suggested === null ? null : { labels: address.getAll("label"), suggested };
}

const pairQuery = (pair: Pair): string =>
  new URLSearchParams([...pair.labels.map((each) => ["label", each]), ["suggested", pair.suggested]]).toString();

/** The labels that are probably wrong, or those of a pair; without those that somebody tagged as ambiguous. */
function reader(of: DatasetStatus, pair: Pair | null) {
  return async (offset: number) => {
    const rid = pair ? (await readPair(of, pair)).rid : await readUndecided(of);
    const wanted = { issue: "mislabels", offset, limit: PART, rid };
    const page = await get<{ rows: Mislabel[]; has_more: boolean }>(`/dataset/${of.id}/issues`, wanted);
    return { items: page.rows, hasMore: page.has_more };
  };
}

/** All labels, in the order in which they may be wrong. */
function rankedReader(of: DatasetStatus) {
  return async (offset: number) => {
    const wanted = { offset, limit: RANKED_PART, without_tag: t.labels.tag };
    const page = await get<RankedLabelIssues>(`/dataset/${of.id}/labels/issues`, wanted);
    const items = page.rows.map((row) => ({
      ...row,
      file_name: row.path.slice(row.path.lastIndexOf("/") + 1),
      confidence: row.probability,
    }));
    return { items, hasMore: offset + items.length < page.total };
  };
}

const rankedPage = (of: DatasetStatus): string => `${pathOf(addressOf(of), "labels")}?${RANKED}=`;

function readPair(of: DatasetStatus, pair: Pair, confidence = 0, signal?: AbortSignal): Promise<ResultsInfo> {
  const wanted = { label: pair.labels, suggested_label: pair.suggested, confidence, without_tag: t.labels.tag };
  return get<ResultsInfo>(`/dataset/${of.id}/labels/suggestion`, wanted, signal);
}

/** Return the id of the results that are not tagged as ambiguous; null where nothing is. */
async function readUndecided(of: DatasetStatus): Promise<string | null> {
  const known = await get<{ name: string }[]>(`/dataset/${of.id}/tags`);
  if (!known.some((tag) => tag.name === t.labels.tag)) return null;
  const vql: VqlElement[] = [
    { issues: { op: "issue", value: "mislabels" } },
    { not: { tags: { op: "is", value: t.labels.tag } } },
  ];
  return (await post<ResultsInfo>(`/dataset/${of.id}/results`, { vql })).rid;
}

interface PairsProps {
  dataset: DatasetStatus;
  chosen: Pair | null;
  isRanked: boolean;
  offersAll: boolean;
}

/** How often which label is suggested instead of which; each leads to its own queue. */
function Pairs({ dataset: of, chosen, isRanked, offersAll }: PairsProps) {
  const found = useResource<{ pairs: SuggestedLabel[] }>(
    (signal) => get(`/dataset/${of.id}/labels/suggestions`, { without_tag: t.labels.tag }, signal),
    [of.id, editVersion.value],
  );
  const page = pathOf(addressOf(of), "labels");
  if (!found.value?.pairs.length && !chosen && !isRanked && !offersAll) return null;
  const present = isRanked ? RANKED : chosen && pairQuery(chosen);
  return (
    <nav aria-label={t.labels.pairs} class="tabs">
      <a href={page} aria-current={present === null ? "page" : undefined}>
        {t.labels.allPairs}
      </a>
      {found.value?.pairs.map((each) => {
        const address = pairQuery({ labels: each.labels, suggested: each.suggested_label });
        return (
          <a key={address} href={`${page}?${address}`} aria-current={present === address ? "page" : undefined}>
            {t.labels.pair(each.labels.join(", "), each.suggested_label)}{" "}
            <span class="number">{count(each.count)}</span>
          </a>
        );
      })}
      {(offersAll || isRanked) && (
        <a href={rankedPage(of)} aria-current={isRanked ? "page" : undefined}>
          {noise.ranked}
        </a>
      )}
    </nav>
  );
}

/** Ask for a confidence, say what would be done, and give the suggested label to all images of a pair. */
function askAcceptAll(of: DatasetStatus, pair: Pair): void {
  const labels = pair.labels.join(", ");
  const read = async (confidence: number, signal: AbortSignal): Promise<Proposal> => {
    const info = await readPair(of, pair, confidence, signal);
    return { ...info, words: t.labels.proposal(info.count, labels, pair.suggested) };
  };
  const accept = ({ rid, generation }: Proposal): void => {
    const words = t.edits.labelled(pair.suggested);
    const args = { labels: [pair.suggested] };
    void change({ datasetId: of.id, action: "set_labels", on: { rid }, args, words, generation }).catch(() => {});
  };
  openDialog(() => (
    <AcceptAll
      title={t.labels.acceptAllTitle(labels, pair.suggested)}
      datasetId={of.id}
      initial="0.9"
      read={read}
      submit={t.labels.acceptAllDo}
      onAccept={accept}
    />
  ));
}

interface ItemProps {
  dataset: DatasetStatus;
  queue: Queue<Mislabel>;
  item: Mislabel;
}

function Item({ dataset: of, queue, item }: ItemProps) {
  const row = useSignal<Row | undefined>(undefined);
  const generation = useSignal<string | undefined>(undefined);
  const nearest = useSignal<Row[]>([]);
  useEffect(() => {
    const columns = [...THUMB_COLUMNS, "labels"];
    void readRows(of.id, { ids: [item.media_id] }, columns).then(({ rows, info }) => {
      row.value = rows[0];
      generation.value = info.generation;
    });
    const search = { similar: item.media_id, limit: NEIGHBOURS + 1 };
    void readRows(of.id, { search }, columns, NEIGHBOURS + 1).then(({ rows }) => {
      nearest.value = rows.filter((each) => each.media_id !== item.media_id).slice(0, NEIGHBOURS);
    });
  }, [item]);
  const offered = [...new Set([item.suggested_label, ...nearest.value.flatMap((each) => each.labels ?? [])])]
    .filter((name) => name !== null)
    .slice(0, MOST_OFFERED);
  const decide = (action: ActionName, args: Record<string, unknown>, words: (n: number) => string): Promise<void> => {
    const on = { ids: [item.media_id] };
    const decision = { datasetId: of.id, action, on, args, words, generation: generation.peek() };
    return queue.take(item, () => change(decision), item.expected_precision !== undefined);
  };
  const give = (label: string): void => void decide("set_labels", { labels: [label] }, t.edits.labelled(label));
  const accept = (): void => {
    if (item.suggested_label) give(item.suggested_label);
  };
  const right = (): void => void decide("label_is_right", {}, t.edits.labelIsRight);
  const ambiguous = (): void => void decide("tag", { tag: t.labels.tag }, t.edits.tagged(t.labels.tag));
  const other = (): void =>
    openDialog(() => (
      <Prompt
        title={t.labels.otherTitle}
        label={t.actions.labelName}
        offers={labelNames(of.id)}
        submit={t.actions.label}
        onSubmit={(text) => text && give(text)}
      />
    ));
  const acceptAll = (): void => {
    if (item.suggested_label) askAcceptAll(of, { labels: row.peek()?.labels ?? [], suggested: item.suggested_label });
  };
  useKeys("labels", {
    "accept.all": acceptAll,
    next: () => queue.move(1),
    previous: () => queue.move(-1),
    accept,
    right,
    ambiguous,
    other,
    choose: (pressed) => {
      const label = offered[Number(pressed) - 1];
      if (label) give(label);
    },
    open: () => navigate(pathOf(addressOf(of), "m", item.media_id)),
  });
  const place = t.labels.image(queue.index.value + 1, queue.items.value.length, queue.hasMore.value);
  return (
    <section aria-label={place} class="review">
      <p role="status">{place}</p>
      <div class="review-body">
        {row.value && (
          <Image class="review-image" src={thumbnail(of.id, item.media_id, row.value.v, 512)} alt={item.file_name} />
        )}
        <div>
          <dl class="details">
            <dt>{t.inspector.file}</dt>
            <dd class="path">{item.path}</dd>
            <dt>{t.labels.present}</dt>
            <dd>{(row.value?.labels ?? []).join(", ")}</dd>
            <dt>{t.labels.suggested}</dt>
            <dd>
              <strong>{item.suggested_label}</strong>
            </dd>
            <dt>{item.expected_precision === undefined ? t.labels.confidence : noise.probability}</dt>
            <dd>{number(item.confidence, 2)}</dd>
            {item.expected_precision !== undefined && (
              <>
                <dt>{noise.expectedSoFar}</dt>
                <dd>{share(item.expected_precision)}</dd>
              </>
            )}
          </dl>
          <h2>{t.labels.evidence}</h2>
          <ul class="evidence">
            {nearest.value.map((each) => (
              <li key={each.media_id}>
                <Thumb datasetId={of.id} row={each} size={96} alt={each.image_filename} />
                {(each.labels ?? []).join(", ")}
              </li>
            ))}
          </ul>
        </div>
      </div>
      <div class="queue-actions">
        <Button kind="main" hint="Enter" onClick={accept}>
          {t.labels.accept}
        </Button>
        <Button hint="Backspace" onClick={right}>
          {t.labels.right}
        </Button>
        {offered.slice(1).map((label, index) => (
          <Button key={label} hint={String(index + 2)} onClick={() => give(label)}>
            {label}
          </Button>
        ))}
        <Button hint="L" onClick={other}>
          {t.labels.other}
        </Button>
        <Button hint="M" onClick={ambiguous}>
          {t.labels.ambiguous}
        </Button>
        <Button hint="Shift Enter" onClick={acceptAll}>
          {t.labels.acceptAll}
        </Button>
      </div>
    </section>
  );
}
