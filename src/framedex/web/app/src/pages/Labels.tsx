import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get } from "../api/http";
import type { DatasetStatus, Row } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { count, number } from "../lib/format";
import { filterText } from "../lib/vql";
import { Button } from "../parts/Button";
import { datasetPage } from "../parts/DatasetPage";
import { Prompt } from "../parts/Prompt";
import { Pending, useResource } from "../parts/Resource";
import { labelNames } from "../parts/SelectionBar";
import { Thumb } from "../parts/Thumb";
import { thumbnail } from "../parts/thumbnail";
import { navigate, pathOf } from "../router";
import { addressOf } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { type ActionName, change, editVersion, undo } from "../state/edits";
import { Queue } from "../state/queue";
import { readRows } from "../state/rows";
import { t } from "../texts";

const PART = 50;
const NEIGHBOURS = 5;
const MOST_OFFERED = 9;

interface Mislabel {
  media_id: string;
  file_name: string;
  path: string;
  value: number;
  confidence: number;
  suggested_label: string | null;
}

export default datasetPage(Labels);

/** The labels that are probably wrong, one after another, and all labels with their numbers. */
function Labels({ dataset: of }: { dataset: DatasetStatus }) {
  const queue = useMemo(() => new Queue(reader(of), (item) => item.media_id), [of.id]);
  useEffect(() => void queue.load(), [queue, editVersion.value]);
  const all = useResource(
    (signal) => get<{ labels: { name: string; count: number }[] }>(`/dataset/${of.id}/labels`, {}, signal),
    [of.id, editVersion.value],
  );
  const item = queue.current;
  return (
    <div class="page queue">
      <h1>{t.navigation.labels}</h1>
      {queue.isLoading.value && queue.items.value.length === 0 && <div class="skeleton" aria-busy="true" />}
      {queue.error.value && (
        <p class="problem" role="alert">
          {queue.error.value.message}
        </p>
      )}
      {item ? (
        <Item key={item.media_id} dataset={of} queue={queue} item={item} />
      ) : (
        !queue.isLoading.value && <p>{t.labels.none}</p>
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

function reader(of: DatasetStatus) {
  return async (offset: number) => {
    const query = { issue: "mislabels", offset, limit: PART };
    const page = await get<{ rows: Mislabel[]; has_more: boolean }>(`/dataset/${of.id}/issues`, query);
    return { items: page.rows, hasMore: page.has_more };
  };
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
    const columns = ["media_id", "image_filename", "v", "width", "labels"];
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
    return queue.take(item, () => change({ datasetId: of.id, action, on, args, words, generation: generation.peek() }));
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
  useKeys("labels", {
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
    undo: () => void undo(of.id),
  });
  const place = t.labels.image(queue.index.value + 1, queue.items.value.length, queue.hasMore.value);
  return (
    <section aria-label={place} class="review">
      <p role="status">{place}</p>
      <div class="review-body">
        {row.value && (
          <img class="review-image" src={thumbnail(of.id, item.media_id, row.value.v, 512)} alt={item.file_name} />
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
            <dt>{t.labels.confidence}</dt>
            <dd>{number(item.confidence, 2)}</dd>
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
      </div>
    </section>
  );
}
