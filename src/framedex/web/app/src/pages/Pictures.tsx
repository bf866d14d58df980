import { useEffect, useRef } from "preact/hooks";
import { get, post } from "../api/http";
import type { DatasetStatus, ResultsInfo, Row, VqlElement } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { number } from "../lib/format";
import { describe } from "../lib/vql";
import { Button } from "../parts/Button";
import { ChangedBar } from "../parts/ChangedBar";
import { currentFilter, FilterBar, setFilter } from "../parts/FilterBar";
import { Grid } from "../parts/Grid";
import { Inspector } from "../parts/Inspector";
import { Prompt } from "../parts/Prompt";
import { useResource } from "../parts/Resource";
import { Scrubber } from "../parts/Scrubber";
import { show } from "../parts/SearchBox";
import { askExport, SelectionBar, useSelectionKeys } from "../parts/SelectionBar";
import { Skeleton } from "../parts/Skeleton";
import { StateBar } from "../parts/StateBar";
import { useIdleKeys } from "../parts/useIdleKeys";
import { navigate, pathOf, query, setQuery } from "../router";
import { addressOf, dataset } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { editVersion } from "../state/edits";
import { say } from "../state/notices";
import { focus, openQuery, queryOf, resultsOf, selection } from "../state/pictures";
import { changeTileSize, fillsTiles, showsBoxes, showsInspector, TILE_SIZES, tileSize } from "../state/preferences";
import type { Results } from "../state/results";
import { taskOfDataset } from "../state/tasks";
import { t } from "../texts";
import { askSaveView } from "./Views";

/** The relevance from which something is a match. */
const MATCH = 0.5;

/** The grid of the images that pass the filter and the search. */
export default function Pictures() {
  const found = dataset.value;
  return found ? <PicturesOf key={found.id} dataset={found} /> : null;
}

function PicturesOf({ dataset: of }: { dataset: DatasetStatus }) {
  const results = resultsOf(of.id);
  const address = query.value;
  const wanted = queryOf(address);
  const text = JSON.stringify(wanted);
  // A creation shows what it has read so far; until then there is nothing, and each change of its state is a new try.
  const isCreation = of.updated_at === null;
  const progress = isCreation ? (taskOfDataset.value?.progress_percentage ?? of.progress) : 0;
  useEffect(() => {
    void openQuery(results, wanted).then(() => goTo(results, address.get("at")));
  }, [text, of.status_new]);
  const read = isCreation ? progress : null; // null once all is there
  const wasCreation = useRef(isCreation);
  wasCreation.current ||= isCreation;
  const looked = useRef(read);
  useEffect(() => {
    if (looked.current !== null && looked.current !== read) void results.reopen();
    looked.current = read;
  }, [read]);
  // Undone and redone steps change rows that are shown.
  const edits = editVersion.value;
  const before = useRef(edits);
  useEffect(() => {
    if (before.current !== edits) void results.reopen(edits);
    before.current = edits;
  }, [edits]);
  const info = results.info.value;
  useKeptFocus(results);
  useSelectionKeys(results);
  usePageKeys(of, results);
  useIdleKeys("grid", whyNone(results), ["larger", "smaller", "boxes", "export"]);
  return (
    <div class="pictures">
      <StateBar dataset={of} />
      <ChangedBar dataset={of} results={results} />
      {wasCreation.current && !isCreation && (
        <div class="bar" role="status">
          {t.pictures.indexed}
          <a class="button main" href={pathOf(addressOf(of))}>
            {t.overview.findings}
          </a>
        </div>
      )}
      <NoMatch results={results} />
      <header class="pictures-head">
        <h1 class="visually-hidden">{t.pictures.title}</h1>
        <FilterBar results={results} />
        <Sorting />
        <Button kind="quiet" needs="view.create" onClick={() => askSaveView(of)}>
          {t.actions.saveView}
        </Button>
        <span class="grow" />
        <span class="count" role="status">
          {info ? t.pictures.count(info.count, info.total, results.entity.value) : ""}
        </span>
        <Sizes />
      </header>
      <div class="pictures-body">
        <Content results={results} dataset={of} />
        {showsInspector.value && <Inspector datasetId={of.id} mediaId={results.row(focus.value)?.media_id} />}
      </div>
      <SelectionBar dataset={of} results={results} />
    </div>
  );
}

/** Why there is no image that a key could act on; null if there are images. */
function whyNone(results: Results): string | null {
  const info = results.info.value;
  if (results.error.value) return results.error.value.message;
  if (!info) return t.pictures.stillLoading;
  return info.count === 0 ? t.pictures.none : null;
}

/** Says that nothing matches a search, above the ranking of what is closest to it. */
function NoMatch({ results }: { results: Results }) {
  const info = results.info.value;
  const isRanked = info !== null && info.count > 0 && Boolean(results.query.search) && !results.query.region;
  const best = useResource<number | null>(
    async (signal) => {
      if (!isRanked) return null;
      const path = `/dataset/${results.datasetId}/results/${info.rid}/rows`;
      const { rows } = await get<{ rows: Row[] }>(path, { limit: 1, columns: ["relevance", "copy"] }, signal);
      return rows[0]?.copy ? 1 : Number(rows[0]?.relevance ?? 1);
    },
    [isRanked ? info.rid : null],
  );
  if (!isRanked || best.value === null || best.value >= MATCH) return null;
  return (
    <div class="bar warning" role="status">
      {t.pictures.noMatch(number(best.value, 2))}
    </div>
  );
}

async function goTo(results: Results, mediaId: string | null): Promise<void> {
  const position = mediaId ? await results.position(mediaId).catch(() => null) : null;
  if (position !== null) focus.value = position;
}

/** Keep the focus on its image where others have changed its position. */
function useKeptFocus(results: Results): void {
  const info = results.info.value;
  const last = useRef({ query: "", rid: "", mediaId: "" });
  const present = results.row(focus.value)?.media_id;
  useEffect(() => {
    const query = JSON.stringify(results.query);
    const { mediaId } = last.current;
    const isMoved = info && last.current.rid !== "" && last.current.rid !== info.rid && last.current.query === query;
    last.current = { query, rid: info?.rid ?? "", mediaId };
    if (!isMoved || !mediaId) return;
    void results.placeOf(mediaId).then((place) => {
      if (place !== null) focus.value = place;
    });
  }, [info?.rid]);
  useEffect(() => {
    if (present && results.isCurrent(focus.peek())) last.current.mediaId = present;
  }, [present, info?.rid]);
}

function usePageKeys(of: DatasetStatus, results: Results): void {
  const jump = (): void =>
    openDialog(() => (
      <Prompt
        title={t.pictures.jump(results.count)}
        label={t.pictures.title}
        type="number"
        max={results.count}
        submit={t.pictures.jumpDo}
        onSubmit={(value) => {
          focus.value = Math.min(Math.max(1, Number(value) || 1), results.count) - 1;
        }}
      />
    ));
  const withRow = (act: (row: Row) => void) => (): void => {
    const row = results.row(focus.peek());
    if (row) act(row);
    else say(t.pictures.stillLoading);
  };
  useKeys("grid", {
    jump,
    larger: () => changeTileSize(1),
    smaller: () => changeTileSize(-1),
    boxes: () => {
      showsBoxes.value = !showsBoxes.peek();
    },
    export: () => askExport(of, results),
    similar: withRow((row) => show({ like: row.media_id })),
    cluster: withRow((row) => navigate(pathOf(addressOf(of), "clusters", null, `of=${row.media_id}`))),
    copies: withRow((row) => navigate(pathOf(addressOf(of), "duplicates", null, `of=${row.media_id}`))),
  });
  useKeys("global", {
    inspector: () => {
      showsInspector.value = !showsInspector.value;
    },
    escape: clearLast,
  });
}

/** Clear the selection, else the search, else the last filter. */
function clearLast(): void {
  const address = query.peek();
  if (!selection.isEmpty.peek()) selection.clear();
  else if (address.has("q") || address.has("like")) setQuery({ q: null, like: null, region: null, by: null });
  else setFilter(currentFilter().slice(0, -1));
}

function Content({ results, dataset: of }: { results: Results; dataset: DatasetStatus }) {
  const info = results.info.value;
  if (results.error.value?.status === 409 && ["INDEXING", "DRAFT"].includes(of.status_new))
    return <Starting results={results} dataset={of} />;
  if (results.error.value) {
    return (
      <div class="empty problem" role="alert">
        <p>{results.error.value.message}</p>
        <Button onClick={() => void results.reopen()}>↻</Button>
      </div>
    );
  }
  if (!info) return <Skeleton of="grid-scroller" />;
  if (info.count === 0) return <Nothing dataset={of} notes={info.notes} />;
  const open = (row: Row): void => {
    const name = addressOf(of);
    navigate(pathOf(name, "m", row.media_id, query.peek().toString()));
  };
  return (
    <div class="grid-and-scrubber">
      <Grid
        results={results}
        selection={selection}
        focus={focus}
        size={tileSize.value}
        fills={fillsTiles.value}
        name={t.pictures.grid}
        onOpen={open}
      />
      <Scrubber results={results} onJump={(position) => (focus.value = position)} />
    </div>
  );
}

/** How often a page without images asks for the first ones. */
const FIRST_MS = 250;

/** Waits for the first images of a dataset that is being created, or for its index if a search needs that. */
function Starting({ results, dataset: of }: { results: Results; dataset: DatasetStatus }) {
  const isSearch = Boolean(results.query.search);
  useEffect(() => {
    if (isSearch || of.status_new !== "INDEXING") return;
    const timer = setInterval(() => {
      if (!results.isLoading.peek() && !document.hidden) void results.reopen();
    }, FIRST_MS);
    return () => clearInterval(timer);
  }, [results, isSearch, of.status_new]);
  return (
    <div class="empty" role="status">
      <p>{isSearch ? t.pictures.noSearchYet : t.pictures.starting}</p>
      <progress max={100} value={of.progress} aria-label={t.statuses.INDEXING} />
    </div>
  );
}

/** Why there is nothing, as names that do not exist, and what there would be without each part of the filter. */
function Nothing({ dataset: of, notes }: { dataset: DatasetStatus; notes: readonly string[] }) {
  const filter = currentFilter();
  const isSearch = query.value.has("q") || query.value.has("like");
  const counts = useResource(() => countsWithout(of, filter), [JSON.stringify(filter), query.value.get("q"), of.id]);
  if (!filter.length && !isSearch) {
    return (
      <div class="empty">
        <p>{t.pictures.empty}</p>
        <code>{t.pictures.emptyCommand(of.display_name)}</code>
      </div>
    );
  }
  return (
    <div class="empty">
      <p>{isSearch ? t.pictures.nothingMatches : t.pictures.none}</p>
      {notes.map((note) => (
        <p key={note}>{note}</p>
      ))}
      {filter.map((element, index) => (
        <Button key={JSON.stringify(element)} onClick={() => setFilter(filter.filter((_, other) => other !== index))}>
          {t.pictures.without(describe(element), counts.value?.[index] ?? null)}
        </Button>
      ))}
      <span class="hint">{t.pictures.ofAll(t.home.counts(of.n_images, of.n_videos))}</span>
    </div>
  );
}

/** How many images there would be without each part of the filter. */
async function countsWithout(of: DatasetStatus, filter: readonly VqlElement[]): Promise<number[]> {
  const { sort: _, ...wanted } = queryOf(query.peek());
  const counts: number[] = [];
  for (const left of filter.keys()) {
    const vql = filter.filter((_element, index) => index !== left);
    counts.push((await post<ResultsInfo>(`/dataset/${of.id}/results`, { ...wanted, vql })).count);
  }
  return counts;
}

function Sorting() {
  return (
    <label class="inline">
      {t.pictures.sort}
      <select
        value={query.value.get("sort") ?? ""}
        onChange={(event) => setQuery({ sort: event.currentTarget.value || null })}
      >
        {Object.entries(t.pictures.sorts).map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

function Sizes() {
  return (
    <label class="inline">
      <span class="visually-hidden">{t.pictures.size}</span>
      <input
        type="range"
        min={0}
        max={TILE_SIZES.length - 1}
        value={TILE_SIZES.findIndex((each) => each >= tileSize.value)}
        onInput={(event) => {
          tileSize.value = TILE_SIZES[Number(event.currentTarget.value)] ?? 192;
        }}
      />
    </label>
  );
}
