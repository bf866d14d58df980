import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { loadAhead } from "#host";
import { call, get } from "../api/http";
import type { DatasetStatus, DuplicateGroup, DuplicatePage, ProposedCopies, Row } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { number, size } from "../lib/format";
import { Lru } from "../lib/lru";
import { AcceptAll, type Proposal } from "../parts/AcceptAll";
import { Button } from "../parts/Button";
import { Compare } from "../parts/Compare";
import { datasetPage } from "../parts/DatasetPage";
import { FactsTable } from "../parts/FactsTable";
import { wordsOfRow } from "../parts/faults";
import { Skeleton } from "../parts/Skeleton";
import { StateBar } from "../parts/StateBar";
import { THUMB_COLUMNS, Thumb } from "../parts/Thumb";
import { thumbnail } from "../parts/thumbnail";
import { useIdleQueueKeys } from "../parts/useIdleKeys";
import { navigate, pathOf, query, setQuery } from "../router";
import { addressOf } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { type ActionName, change, editVersion, undo } from "../state/edits";
import { say, sayError } from "../state/notices";
import { Queue } from "../state/queue";
import { rowsOfIds } from "../state/rows";
import { t } from "../texts";
import { frames } from "../texts/findings";

const NEAR = "near";
/** Frames of one video that are alike, beside copies. */
const FRAMES = "frames";
const LEVELS = ["0.96", "0.97", "0.98", "0.985", "0.99", "0.995", "0.999", "1", NEAR, FRAMES] as const;
const LEVEL_NAMES: Readonly<Record<string, string>> = {
  "1": t.duplicates.exact,
  [NEAR]: t.duplicates.near,
  [FRAMES]: frames.level,
};
const PART = 50;
/** How many members of a group are shown. */
const MOST_SHOWN = 60;
/** How many of the next groups are read before their turn. */
const AHEAD = 3;
/** How many thumbnails of a group are asked for before its turn: about those that are in view first. */
const THUMBS_AHEAD = 8;
const MEMBER_PX = 256;
const MEMBER_COLUMNS = [
  ...THUMB_COLUMNS,
  "file_path",
  "width",
  "height",
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
    () => new Queue(member ? groupsWith(of, level, member) : reader(of, level, isDone), (group) => group.group_id),
    [of.id, level, isDone, member],
  );
  useEffect(() => queue.refresh(editVersion.value), [queue, editVersion.value]);
  const group = queue.current;
  useKeys("duplicates", { undo: () => void undo(of.id) }); // also once the queue is empty
  const nothing = member ? t.duplicates.noneOf : isDone ? t.duplicates.noneDone : t.duplicates.none;
  useIdleQueueKeys("duplicates", queue, nothing, ["undo"]);
  return (
    <div class="page queue">
      <StateBar dataset={of} />
      <header class="page-head">
        <h1>{t.navigation.duplicates}</h1>
        <label class="inline">
          {t.duplicates.level}
          <select value={level} onChange={(event) => setQuery({ level: event.currentTarget.value })}>
            {LEVELS.filter((each) => each !== FRAMES || of.n_videos > 0).map((each) => (
              <option key={each} value={each}>
                {LEVEL_NAMES[each] ?? each}
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
      {queue.isLoading.value && queue.items.value.length === 0 && <Skeleton />}
      {queue.error.value && (
        <p class="problem" role="alert">
          {queue.error.value.message}
        </p>
      )}
      {group ? (
        <Group key={group.group_id} dataset={of} queue={queue} group={group} />
      ) : (
        !queue.isLoading.value && <p class="empty">{nothing}</p>
      )}
    </div>
  );
}

/** Return the request for the groups of a level, for those of near images, or for those with frames of one video. */
const groupsAt = (level: string): Record<string, string | boolean> =>
  level === NEAR ? { near: true } : level === FRAMES ? { within_videos: true } : { similarity: level };

/** Return why the groups of a level are not accepted all at once; null if they can be. */
const oneByOneReason = (level: string | null): string | null =>
  level === NEAR ? t.duplicates.nearOneByOne : level === FRAMES ? frames.byPlan : null;

function reader(of: DatasetStatus, level: string, isDone: boolean) {
  return async (offset: number) => {
    const wanted = { ...groupsAt(level), is_open: !isDone, offset, limit: PART };
    const page = await get<DuplicatePage>(`/dataset/${of.id}/duplicates`, wanted);
    return { items: page.groups, hasMore: page.has_more };
  };
}

/** The group of one image, whether or not it was decided. */
function groupsWith(of: DatasetStatus, level: string, mediaId: string) {
  return async () => {
    const page = await get<DuplicatePage>(`/dataset/${of.id}/duplicates`, { ...groupsAt(level), of: mediaId });
    return { items: page.groups, hasMore: false };
  };
}

/** The members of groups, which are read before their turn comes. */
const read = new Lru<string, Promise<Row[]>>(2 * AHEAD);

/** Return the members of a group that are shown; their first thumbnails are asked for. */
function membersOf(of: DatasetStatus, group: DuplicateGroup): Promise<Row[]> {
  const key = `${of.id} ${group.group_id} ${group.media_ids.join(" ")}`;
  const known = read.get(key);
  if (known) return known;
  const rows = rowsOfIds(of.id, shownMembers(group), MEMBER_COLUMNS).then((found) => {
    for (const row of found.slice(0, THUMBS_AHEAD)) {
      if (wordsOfRow(row) !== null) continue;
      loadAhead(thumbnail(of.id, row.media_id, row.v, MEMBER_PX));
    }
    return found;
  });
  read.set(key, rows);
  rows.catch(() => read.delete(key));
  return rows;
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
  const shown = shownMembers(group);
  useEffect(() => {
    void membersOf(of, group).then((rows) => {
      members.value = rows;
      for (const next of queue.items.peek().slice(queue.index.peek() + 1, queue.index.peek() + 1 + AHEAD)) {
        void membersOf(of, next);
      }
    }, sayError);
  }, [group]);
  const chosen = (): string => shown[focus.peek()] ?? group.keep;
  const decide = (
    action: ActionName,
    ids: string[],
    words: (n: number) => string,
    args: Record<string, unknown> = {},
  ): Promise<void> =>
    queue.take(
      group,
      () => change({ datasetId: of.id, action, on: { ids }, args, words }),
      action === "basket_add" || ids.length === group.media_ids.length,
    );
  const accept = (): void => {
    const rest = group.media_ids.filter((id) => id !== keep.peek());
    // The step also marks what is kept, so its number is one more.
    void decide("basket_add", rest, () => t.edits.basketAdded(rest.length), { keep: keep.peek() });
  };
  const oneByOne = oneByOneReason(query.value.get("level"));
  const acceptAll = (): void => {
    // Which of several images of a scene stays is a matter of taste.
    if (oneByOne) say(oneByOne);
    else askAcceptAll(of, queue);
  };
  const step = (by: number): void => {
    const n = shown.length;
    focus.value = (focus.peek() + by + n) % n;
  };
  useKeys("duplicates", {
    next: () => queue.move(1),
    previous: () => queue.move(-1),
    "member.next": () => step(1),
    "member.previous": () => step(-1),
    accept,
    "accept.all": acceptAll,
    keep: () => {
      keep.value = chosen();
    },
    "keep.all": () => void decide("not_duplicates", group.media_ids, t.edits.notDuplicates),
    "not.two": () => {
      if (chosen() === keep.peek()) say(t.duplicates.chooseOther);
      else void decide("not_duplicates", [chosen(), keep.peek()], t.edits.notDuplicates);
    },
    flicker: () => {
      compared.value = compared.peek() === "flicker" ? null : "flicker";
    },
    difference: () => {
      compared.value = compared.peek() === "difference" ? null : "difference";
    },
    open: () => navigate(pathOf(addressOf(of), "m", chosen())),
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
              reason={group.reasons?.[group.media_ids.indexOf(row.media_id)] ?? ""}
              isKept={row.media_id === keep.value}
              isFocused={index === focus.value}
              onFocus={() => {
                focus.value = index;
              }}
            />
          </li>
        ))}
      </ul>
      {shown.length < group.media_ids.length && <p>{t.duplicates.notShown(group.media_ids.length - shown.length)}</p>}
      <FactsTable group={group} shown={shown} keep={keep.value} />
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
        <Button hint="Shift Enter" onClick={acceptAll} disabledReason={oneByOne}>
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
  const differs = (name: string): boolean => new Set(others.map((each) => String(each[name]))).size > 1;
  const labels = (row.labels ?? []).join(", ");
  const facts: [string, string][] = [
    ...(row.width !== null && row.height !== null ? [["width", `${row.width} × ${row.height}`]] : []),
    ...(typeof row.file_size_bytes === "number" ? [["file_size_bytes", size(row.file_size_bytes)]] : []),
    ["file_path", row.file_path],
    ...(labels ? [["labels", labels]] : []),
  ] as [string, string][];
  return (
    <button type="button" class={`member ${isFocused ? "focused" : ""}`} aria-pressed={isFocused} onClick={onFocus}>
      <Thumb datasetId={datasetId} row={row} size={MEMBER_PX} alt={row.image_filename} />
      <strong>{isKept ? `★ ${t.duplicates.kept}` : t.duplicates.removed}</strong>
      {reason && <span>{reason}</span>}
      <span class="facts">
        {facts.map(([name, words], index) => {
          const text = `${index > 0 ? "\n" : ""}${words}`;
          return differs(name) ? <b key={name}>{text}</b> : text;
        })}
      </span>
    </button>
  );
}

/** Show what accepting the proposals of all groups of at least a confidence would do, and do it as one step. */
function askAcceptAll(of: DatasetStatus, queue: Queue<DuplicateGroup>): void {
  const similarity = Number(query.peek().get("level") ?? "0.96");
  const read = async (confidence: number, signal: AbortSignal, unsure: boolean): Promise<Proposal> => {
    const json = { similarity, confidence, unsure };
    const found = await call<ProposedCopies>("POST", `/dataset/${of.id}/duplicates/copies`, { json, signal });
    const words = found.count
      ? t.duplicates.acceptAllText(found.groups, found.count, size(found.size_bytes))
      : t.duplicates.noneToAccept;
    return { ...found, words: found.unsure ? words + t.duplicates.unsure(found.unsure) : words };
  };
  openDialog(() => (
    <AcceptAll
      title={t.duplicates.acceptAllTitle}
      datasetId={of.id}
      initial="0.99"
      option={t.duplicates.alsoUnsure}
      read={read}
      submit={t.duplicates.putIntoBasket}
      onAccept={({ rid }) => void acceptResults(of, queue, rid)}
    />
  ));
}

/** The members of a group that are shown: of a large one the first, and always the one to keep. */
function shownMembers(group: DuplicateGroup): string[] {
  const first = group.media_ids.slice(0, MOST_SHOWN);
  return first.includes(group.keep) ? first : [group.keep, ...first.slice(0, -1)];
}

async function acceptResults(of: DatasetStatus, queue: Queue<DuplicateGroup>, rid: string): Promise<void> {
  try {
    await change({ datasetId: of.id, action: "basket_add", on: { rid }, words: t.edits.basketAdded });
  } catch {
    return; // it was told
  }
  await queue.load();
}
