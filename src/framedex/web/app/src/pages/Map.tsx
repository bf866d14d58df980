import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { DatasetStatus, Entity, VqlElement } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { filterText } from "../lib/vql";
import { EarlyPoints } from "../map/early";
import type { Point } from "../map/polygon";
import type { Stage } from "../map/Stage";
import { Button } from "../parts/Button";
import { ChangedBar } from "../parts/ChangedBar";
import { datasetPage } from "../parts/DatasetPage";
import { addFilter, currentFilter, FilterBar, setFilter } from "../parts/FilterBar";
import { Grid } from "../parts/Grid";
import { askExport, SelectionBar, useSelectionKeys } from "../parts/SelectionBar";
import { Skeleton } from "../parts/Skeleton";
import { StateBar } from "../parts/StateBar";
import { thumbnail } from "../parts/thumbnail";
import { navigate, pathOf, query, setQuery } from "../router";
import { addressOf } from "../state/datasets";
import { editVersion } from "../state/edits";
import { sayError } from "../state/notices";
import { entityOf, focus, openQuery, queryOf, resultsOf, selection } from "../state/pictures";
import { changeTileSize, fillsTiles, kept } from "../state/preferences";
import type { Results } from "../state/results";
import { t } from "../texts";
import { askSaveView } from "./Views";

const REGION = "map_region";
/** Filters that mean a map, or clusters, of one kind of entity. */
const OF_ONE = [REGION, "cluster"];
const [LEAST_PANE, MOST_PANE, PANE_STEP] = [15, 70, 5];
const TILE_PX = 112;
/** The share of the pane with images, in percent. */
const paneShare = kept<number>("map-pane", 32);

export default datasetPage(MapPage);

/** The map of a dataset, and beside it the images that pass the filter. */
function MapPage({ dataset: of }: { dataset: DatasetStatus }) {
  const results = resultsOf(of.id);
  const wanted = queryOf(query.value);
  const text = JSON.stringify(wanted);
  useEffect(() => void openQuery(results, wanted), [text, of.status_new]);
  const edits = editVersion.value;
  const before = useRef(edits);
  useEffect(() => {
    if (before.current !== edits) void results.reopen(edits);
    before.current = edits;
  }, [edits]);
  const { Loaded, early } = useStage(of);
  useSelectionKeys(results);
  useKeys("grid", {
    larger: () => changeTileSize(1),
    smaller: () => changeTileSize(-1),
    export: () => askExport(of, results),
  });
  useKeys("global", { escape: clearLast });
  const filter = currentFilter();
  const entity = entityOf(query.value);
  const info = results.info.value;
  const open = (mediaId: string): void => {
    const address = new URLSearchParams(query.peek());
    address.set("from", "map");
    navigate(pathOf(addressOf(of), "m", mediaId, address.toString()));
  };
  return (
    <div class="pictures">
      <StateBar dataset={of} />
      <ChangedBar dataset={of} results={results} />
      <header class="pictures-head">
        <h1 class="visually-hidden">{t.navigation.map}</h1>
        <FilterBar results={results} />
        <Button kind="quiet" needs="view.create" onClick={() => askSaveView(of)}>
          {t.actions.saveView}
        </Button>
        <span class="grow" />
        <span class="count" role="status">
          {info ? t.pictures.count(info.count, info.total, results.entity.value) : ""}
        </span>
      </header>
      <div class="map-body" style={{ "--pane": `${paneShare.value}%` }}>
        {Loaded ? (
          <Loaded
            key={entity}
            early={early}
            dataset={of}
            entity={entity}
            onEntity={showEntity}
            results={results}
            regions={filter.flatMap(regionIn)}
            onRegion={filterByRegion}
            onFilter={addFilter}
            onOpen={open}
            thumbnail={thumbnail}
          />
        ) : (
          <Skeleton of="map-stage" />
        )}
        <Splitter />
        <Pane results={results} name={paneName(filter, entity)} onOpen={open} />
      </div>
      <SelectionBar dataset={of} results={results} />
    </div>
  );
}

/** Return the part of the page that draws, once its file has come, and the points, which are asked for meanwhile. */
function useStage(of: DatasetStatus): { Loaded: typeof Stage | null; early: EarlyPoints | null } {
  const loaded = useSignal<{ Stage: typeof Stage } | null>(null);
  const early = useRef<EarlyPoints | null>(null);
  useLayoutEffect(() => {
    if (of.updated_at !== null) early.current = new EarlyPoints(of.id, entityOf(query.peek()));
    import("../map/Stage").then((found) => {
      loaded.value = found;
    }, sayError);
    return () => early.current?.close();
  }, []);
  return { Loaded: loaded.value?.Stage ?? null, early: early.current };
}

/** Return the corners of the region of an element of the filter, as a list of one; none of others. */
function regionIn(element: VqlElement): Point[][] {
  const test = element[REGION] as { value?: unknown } | undefined;
  return Array.isArray(test?.value) ? [test.value as Point[]] : [];
}

/** Put a region into the filter, in the place of the one before. */
function filterByRegion(corners: readonly Point[]): void {
  const others = currentFilter().filter((element) => !(REGION in element));
  setFilter([...others, { [REGION]: { op: "inside", value: corners } }]);
}

/** Clear the selection, else the region, else the search, else the last filter. */
function clearLast(): void {
  const filter = currentFilter();
  const region = filter.findLastIndex((element) => REGION in element);
  const address = query.peek();
  if (!selection.isEmpty.peek()) selection.clear();
  else if (region >= 0) setFilter(filter.filter((_, index) => index !== region));
  else if (address.has("q") || address.has("like")) setQuery({ q: null, like: null, region: null, by: null });
  else setFilter(filter.slice(0, -1));
}

/** Show images or objects: each has a map, clusters and colours of its own. */
function showEntity(entity: Entity): void {
  const colour = query.peek().get("colour");
  setQuery({
    entity: entity === "OBJECTS" ? entity : null,
    f: filterText(currentFilter().filter((element) => !OF_ONE.some((key) => key in element))),
    colour: colour === "none" ? colour : null,
    at: null,
    x: null,
    y: null,
    z: null,
  });
}

function paneName(filter: readonly VqlElement[], entity: Entity): string {
  if (filter.some((element) => REGION in element)) return t.map.pane[entity];
  return (filter.length ? t.map.paneFiltered : t.map.paneAll)[entity];
}

/** The line between map and images, which the pointer drags and arrows move. */
function Splitter() {
  const isDragged = useRef(false);
  const setShare = (share: number): void => {
    paneShare.value = Math.round(Math.min(Math.max(share, LEAST_PANE), MOST_PANE));
  };
  return (
    <div
      class="map-splitter"
      role="separator"
      aria-orientation="vertical"
      aria-label={t.map.splitter}
      aria-valuenow={paneShare.value}
      aria-valuemin={LEAST_PANE}
      aria-valuemax={MOST_PANE}
      tabIndex={0}
      onKeyDown={(event) => {
        const step = { ArrowLeft: PANE_STEP, ArrowRight: -PANE_STEP }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        setShare(paneShare.peek() + step);
      }}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        isDragged.current = true;
      }}
      onPointerMove={(event) => {
        const body = event.currentTarget.parentElement?.getBoundingClientRect();
        if (isDragged.current && body) setShare((100 * (body.right - event.clientX)) / body.width);
      }}
      onPointerUp={() => {
        isDragged.current = false;
      }}
    />
  );
}

function Pane({ results, name, onOpen }: { results: Results; name: string; onOpen: (mediaId: string) => void }) {
  const info = results.info.value;
  return (
    <section class="map-pane" aria-label={name}>
      {results.error.value ? (
        <div class="empty problem" role="alert">
          <p>{results.error.value.message}</p>
        </div>
      ) : info?.count === 0 ? (
        <p class="empty">{t.pictures.none}</p>
      ) : info ? (
        <Grid
          results={results}
          selection={selection}
          focus={focus}
          size={TILE_PX}
          fills={fillsTiles.value}
          name={name}
          onOpen={(row) => onOpen(row.media_id)}
        />
      ) : (
        <Skeleton of="grid-scroller" />
      )}
    </section>
  );
}
