import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { get, post } from "../api/http";
import type { DatasetStatus, DuplicateGroup, DuplicatePage, ResultsInfo, Row } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { number, size } from "../lib/format";
import { Button } from "../parts/Button";
import { Compare } from "../parts/Compare";
import { datasetPage } from "../parts/DatasetPage";
import { PartialBar } from "../parts/PartialBar";
import { Prompt } from "../parts/Prompt";
import { Thumb } from "../parts/Thumb";
import { navigate, pathOf, query, setQuery } from "../router";
import { addressOf } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { type ActionName, change, editVersion, undo } from "../state/edits";
import { sayError } from "../state/notices";
import { Queue } from "../state/queue";
import { rowsOfIds } from "../state/rows";
import { t } from "../texts";

const LEVELS = ["0.96", "0.97", "0.98", "0.985", "0.99", "0.995", "0.999", "1"] as const;
const PART = 50;
/** How many ids results are opened with. */
const MOST_IDS = 10_000;
const MEMBER_COLUMNS = [
  "media_id",
  "image_filename",
  "file_path",
  "width",
  "height",
  "v",
  "labels",
  "file_size_bytes",
  "blur",
  "in_basket",
];

export default datasetPage(Duplicates);

/** The groups of duplicates, one after another, each with a proposal of what to keep. */
function Duplicates({ dataset: of }: { dataset: DatasetStatus }) {
  const level = query.value.get("level") ?? "0.96";
  const isDone = query.value.get("state") === "done";
  const member = query.value.get("of");
  const queue = useMemo(
    () => new Queue(member ? groupsWith(of, level, member) : reader(of, level, isDone)),
    [of.id, level, isDone, member],
  );
  useEffect(() => void queue.load(), [queue, editVersion.value]);
  const group = queue.current;
  return (
    <div class="page queue">
      <PartialBar dataset={of} />
      <header class="page-head">
        <h1>{t.navigation.duplicates}</h1>
        <label class="inline">
          {t.duplicates.level}
          <select value={level} onChange={(event) => setQuery({ level: event.currentTarget.value })}>
            {LEVELS.map((each) => (
              <option key={each} value={each}>
                {each === "1" ? t.duplicates.exact : each}
              </option>
            ))}
          </select>
        </label>
        <label class="inline">
          {t.duplicates.state}
          <select value={isDone ? "done" : "open"} onChange={(event) => setQuery({ state: event.currentTarget.value })}>
            <option value="open">{t.duplicates.open}</option>
            <option value="done">{t.duplicates.done}</option>
          </select>
        </label>
      </header>
      {queue.isLoading.value && queue.items.value.length === 0 && <div class="skeleton" aria-busy="true" />}
      {queue.error.value && (
        <p class="problem" role="alert">
          {queue.error.value.message}
        </p>
      )}
      {group ? (
        <Group key={group.group_id} dataset={of} queue={queue} group={group} />
      ) : (
        !queue.isLoading.value && (
          <p class="empty">{member ? t.duplicates.noneOf : isDone ? t.duplicates.noneDone : t.duplicates.none}</p>
        )
      )}
    </div>
  );
}

/** A group is open while one of its members that are not kept is outside the basket. */
function reader(of: DatasetStatus, level: string, isDone: boolean) {
  return async (offset: number) => {
    const wanted = level === "1" ? { similarity: 1 } : { similarity: level };
    const page = await get<DuplicatePage>(`/dataset/${of.id}/duplicates`, { ...wanted, offset, limit: PART });
    const basket = await basketOf(
      of.id,
      page.groups.flatMap((group) => group.media_ids),
    );
    const isOver = (group: DuplicateGroup): boolean =>
      group.media_ids.filter((id) => basket.has(id)).length >= group.media_ids.length - 1;
    return { items: page.groups.filter((group) => isOver(group) === isDone), hasMore: page.has_more };
  };
}

/** The group of one image, whether or not it was decided. */
function groupsWith(of: DatasetStatus, level: string, mediaId: string) {
  return async () => {
    for (let offset = 0; ; offset += 500) {
      const page = await get<DuplicatePage>(`/dataset/${of.id}/duplicates`, { similarity: level, offset, limit: 500 });
      const items = page.groups.filter((group) => group.media_ids.includes(mediaId));
      if (items.length > 0 || !page.has_more) return { items, hasMore: false };
    }
  };
}

async function basketOf(datasetId: string, ids: readonly string[]): Promise<Set<string>> {
  const rows = await rowsOfIds(datasetId, ids, ["media_id", "in_basket"]);
  return new Set(rows.filter((row) => row.in_basket).map((row) => row.media_id));
}

interface GroupProps {
  dataset: DatasetStatus;
  queue: Queue<DuplicateGroup>;
  group: DuplicateGroup;
}

function Group({ dataset: of, queue, group }: GroupProps) {
  const members = useSignal<Row[]>([]);
  const focus = useSignal(0);
  const keep = useSignal(group.keep);
  const compared = useSignal<"flicker" | "difference" | null>(null);
  useEffect(() => {
    void rowsOfIds(of.id, group.media_ids, MEMBER_COLUMNS).then((rows) => {
      members.value = rows;
    });
  }, [group]);
  const chosen = (): string => group.media_ids[focus.peek()] ?? group.keep;
  const decide = async (action: ActionName, ids: string[], words: (n: number) => string): Promise<void> => {
    const putBack = queue.remove(group);
    try {
      await change({ datasetId: of.id, action, on: { ids }, words });
    } catch {
      putBack();
    }
  };
  const accept = (): void => {
    const rest = group.media_ids.filter((id) => id !== keep.peek());
    void decide("basket_add", rest, t.edits.basketAdded);
  };
  const step = (by: number): void => {
    const n = group.media_ids.length;
    focus.value = (focus.peek() + by + n) % n;
  };
  useKeys("duplicates", {
    next: () => queue.move(1),
    previous: () => queue.move(-1),
    "member.next": () => step(1),
    "member.previous": () => step(-1),
    accept,
    "accept.all": () => askAcceptAll(of, queue),
    keep: () => {
      keep.value = chosen();
    },
    "keep.all": () => void decide("not_duplicates", group.media_ids, t.edits.notDuplicates),
    "not.two": () =>
      chosen() !== keep.peek() && void decide("not_duplicates", [chosen(), keep.peek()], t.edits.notDuplicates),
    flicker: () => {
      compared.value = compared.peek() === "flicker" ? null : "flicker";
    },
    difference: () => {
      compared.value = compared.peek() === "difference" ? null : "difference";
    },
    open: () => navigate(pathOf(addressOf(of), "m", chosen())),
    undo: () => void undo(of.id),
  });
  const labels = new Set(members.value.map((row) => (row.labels ?? []).join(", ")));
  return (
    <section aria-label={t.duplicates.group(queue.index.value + 1, queue.items.value.length, queue.hasMore.value)}>
      <p role="status">
        {t.duplicates.group(queue.index.value + 1, queue.items.value.length, queue.hasMore.value)} ·{" "}
        {t.duplicates.facts(group.media_ids.length, number(group.similarity, 4), number(group.confidence, 2))}
      </p>
      <p>★ {group.keep_reason}</p>
      {labels.size > 1 && <p class="bar warning">{t.duplicates.labelsDiffer}</p>}
      <ul class="members">
        {members.value.map((row, index) => (
          <li key={row.media_id}>
            <Member
              datasetId={of.id}
              row={row}
              others={members.value}
              reason={group.reasons?.[index] ?? ""}
              isKept={row.media_id === keep.value}
              isFocused={index === focus.value}
              onFocus={() => {
                focus.value = index;
              }}
            />
          </li>
        ))}
      </ul>
      {compared.value && (
        <Compare
          datasetId={of.id}
          first={members.value.find((row) => row.media_id === keep.value)}
          second={members.value[focus.value]}
          mode={compared.value}
        />
      )}
      <div class="queue-actions">
        <Button kind="main" hint="Enter" onClick={accept}>
          {t.duplicates.accept}
        </Button>
        <Button
          hint="K"
          onClick={() => {
            keep.value = chosen();
          }}
        >
          {t.duplicates.keepThis}
        </Button>
        <Button hint="A" onClick={() => void decide("not_duplicates", group.media_ids, t.edits.notDuplicates)}>
          {t.duplicates.keepAll}
        </Button>
        <Button
          hint="V"
          pressed={compared.value === "flicker"}
          onClick={() => {
            compared.value = compared.peek() === "flicker" ? null : "flicker";
          }}
        >
          {t.duplicates.flicker}
        </Button>
        <Button
          hint="Shift V"
          pressed={compared.value === "difference"}
          onClick={() => {
            compared.value = compared.peek() === "difference" ? null : "difference";
          }}
        >
          {t.duplicates.difference}
        </Button>
        <Button hint="Shift Enter" onClick={() => askAcceptAll(of, queue)}>
          {t.duplicates.acceptAll}
        </Button>
      </div>
    </section>
  );
}

interface MemberProps {
  datasetId: string;
  row: Row;
  others: readonly Row[];
  reason: string;
  isKept: boolean;
  isFocused: boolean;
  onFocus: () => void;
}

function Member({ datasetId, row, others, reason, isKept, isFocused, onFocus }: MemberProps) {
  const differs = (name: string): string =>
    new Set(others.map((each) => String(each[name]))).size > 1 ? "differs" : "";
  return (
    <button type="button" class={`member ${isFocused ? "focused" : ""}`} aria-pressed={isFocused} onClick={onFocus}>
      <Thumb datasetId={datasetId} row={row} size={256} alt={row.image_filename} />
      <strong>{isKept ? `★ ${t.duplicates.kept}` : t.duplicates.removed}</strong>
      <span>{reason}</span>
      <span class={differs("width")}>
        {row.width} × {row.height}
      </span>
      <span class={differs("file_size_bytes")}>
        {typeof row.file_size_bytes === "number" && size(row.file_size_bytes)}
      </span>
      <span class={`path ${differs("file_path")}`}>{row.file_path}</span>
      <span class={differs("labels")}>{(row.labels ?? []).join(", ")}</span>
    </button>
  );
}

/** Ask for a confidence, say what would be done, and put the copies of all groups of at least it into the basket. */
function askAcceptAll(of: DatasetStatus, queue: Queue<DuplicateGroup>): void {
  openDialog(() => (
    <Prompt
      title={t.duplicates.acceptAllTitle}
      label={t.duplicates.confidence}
      initial="0.99"
      submit={t.duplicates.acceptAll}
      onSubmit={(text) => void acceptAll(of, queue, Number(text))}
    />
  ));
}

async function acceptAll(of: DatasetStatus, queue: Queue<DuplicateGroup>, confidence: number): Promise<void> {
  try {
    const ids = await removedOf(of, query.peek().get("level") ?? "0.96", confidence);
    for (let start = 0; start < ids.length; start += MOST_IDS) {
      const info = await post<ResultsInfo>(`/dataset/${of.id}/results`, { ids: ids.slice(start, start + MOST_IDS) });
      await change({ datasetId: of.id, action: "basket_add", on: { rid: info.rid }, words: t.edits.basketAdded });
    }
    await queue.load();
  } catch (error) {
    sayError(error);
  }
}

/** Return the copies that the proposals of groups with at least a confidence remove. */
async function removedOf(of: DatasetStatus, similarity: string, confidence: number): Promise<string[]> {
  const ids: string[] = [];
  for (let offset = 0; ; offset += 500) {
    const page = await get<DuplicatePage>(`/dataset/${of.id}/duplicates`, { similarity, offset, limit: 500 });
    for (const group of page.groups) {
      if (group.confidence >= confidence) ids.push(...group.media_ids.filter((id) => id !== group.keep));
    }
    if (!page.has_more) return ids;
  }
}
