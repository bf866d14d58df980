/** The map on a page: its canvas with what lies over it, and what is said where there is none. */
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { call } from "../api/http";
import type { DatasetStatus, Entity, Field, Snapshot, Task } from "../api/types";
import { Button } from "../parts/Button";
import { ISSUES_OF_FILES } from "../parts/faults";
import { Skeleton } from "../parts/Skeleton";
import { pathOf, query, setQuery } from "../router";
import { addressOf, stats } from "../state/datasets";
import { sayError } from "../state/notices";
import { whyNot } from "../state/permissions";
import type { Results } from "../state/results";
import { abortTask, heads, tasks } from "../state/tasks";
import { t } from "../texts";
import type { EarlyPoints } from "./early";
import { Legend } from "./Legend";
import { MapModel, SINCE } from "./model";
import type { Point } from "./polygon";
import { Surface } from "./Surface";

const LEVELS = [4, 3, 2, 1, 0] as const;

export interface StageProps {
  dataset: DatasetStatus;
  /** The points, if they were asked for before. */
  early: EarlyPoints | null;
  results: Results;
  entity: Entity;
  onEntity: (entity: Entity) => void;
  /** The regions of the filter, in the coordinates of the map. */
  regions: readonly (readonly Point[])[];
  onRegion: (corners: readonly Point[]) => void;
  onFilter: (element: Record<string, unknown>) => void;
  onOpen: (mediaId: string) => void;
  thumbnail: (datasetId: string, mediaId: string, version: string | null, pixels: number) => string;
}

export function Stage(props: StageProps) {
  // The canvas itself finds out: another context for that would take as long as the first points.
  const isDrawable = useSignal(typeof WebGL2RenderingContext !== "undefined");
  const onNoGraphics = (): void => {
    isDrawable.value = false;
  };
  if (!isDrawable.value) return <NoGraphics dataset={props.dataset} />;
  return <MapOf {...props} onNoGraphics={onNoGraphics} />;
}

function NoGraphics({ dataset: of }: { dataset: DatasetStatus }) {
  return (
    <div class="empty map-empty" role="status">
      <p>{t.map.noGraphics}</p>
      <a href={pathOf(addressOf(of), "clusters")}>{t.map.clusters}</a>
    </div>
  );
}

function MapOf(props: StageProps & { onNoGraphics: () => void }) {
  const { dataset: of, results, entity } = props;
  const model = useMemo(() => new MapModel(of.id, entity), [of.id, entity]);
  useEffect(() => () => model.close(), [model]);
  const isIndexed = of.updated_at !== null;
  useEffect(() => {
    if (isIndexed) void model.start(props.early?.take(of.id, entity));
    else model.state.value = { kind: "unindexed", reason: t.map.unindexed };
  }, [model, isIndexed]);
  useRefresh(model, of);
  const column = useColumn(of, entity);
  useEffect(() => void model.colour(column), [model, column]);
  const info = results.info.value;
  const isFiltered = Boolean(results.query.vql?.length || results.query.search);
  const isOfMap = results.entity.value === entity;
  useEffect(() => {
    if (info && isOfMap) void model.filter(isFiltered ? info.rid : null).catch(sayError);
  }, [model, info?.rid, isFiltered, isOfMap]);
  const state = model.state.value;
  const points = model.points.value;
  return (
    <section class="map-stage" aria-label={t.navigation.map}>
      <Choices dataset={of} column={column} entity={entity} onEntity={props.onEntity} />
      {model.isStale.value && (
        <div class="bar" role="status">
          {t.map.stale}
          <Button onClick={() => void model.make()}>{t.map.again}</Button>
        </div>
      )}
      {state.kind === "making" && points && <Making task={state.task} />}
      {points?.count ? (
        <Surface {...props} model={model} points={points} column={column}>
          <Legend entity={entity} model={model} column={column} onFilter={props.onFilter} />
        </Surface>
      ) : (
        <Nothing model={model} dataset={of} entity={entity} />
      )}
      {points && points.total > points.count && state.kind === "ready" && (
        <p class="map-note hint" title={t.map.notPlacedWhy}>
          {t.map.notPlaced(points.total - points.count, entity)}. {t.map.notPlacedWhy}
        </p>
      )}
    </section>
  );
}

/** Look at the map again once the dataset has changed, or somebody else has made a map. */
function useRefresh(model: MapModel, of: DatasetStatus): void {
  const generation = heads.value.get(of.id) ?? of.updated_at;
  const first = useMemo(() => ({ generation }), [model]);
  useEffect(() => {
    if (generation === first.generation || of.updated_at === null) return;
    const timer = setTimeout(() => void model.refresh(), 300);
    return () => clearTimeout(timer);
  }, [model, generation]);
  const made = [...tasks.value.values()].filter((task) => isMapOf(task, of)).map((task) => task.task_id);
  const latest = made.join(" ");
  const known = useMemo(() => ({ latest }), [model]);
  useEffect(() => {
    if (latest !== known.latest) void model.refresh(true);
  }, [model, latest]);
}

/** Return whether a task has made a map of a dataset. */
const isMapOf = (task: Task, of: DatasetStatus): boolean =>
  task.task_type === "MAP" && task.dataset_id === of.id && task.status === "COMPLETED";

/** Return the column by which points are coloured; by default the labels, else the coarsest clusters. */
function useColumn(of: DatasetStatus, entity: Entity): string | null {
  const chosen = query.value.get("colour");
  if (chosen === "none") return null;
  if (chosen) return chosen;
  if (entity === "OBJECTS") return "labels";
  if (stats.value === null) return null;
  return stats.value.labels.length > 0 && of.updated_at !== null ? "labels" : "cluster_4";
}

type ChoiceProps = Pick<StageProps, "dataset" | "entity" | "onEntity"> & { column: string | null };

function Choices({ dataset: of, column, entity, onEntity }: ChoiceProps) {
  const fields = useSignal<string[]>([]);
  useEffect(() => {
    call<Field[]>("GET", `/dataset/${of.id}/fields`)
      .then((found) => {
        fields.value = found.filter((each) => each.field_type !== "datetime").map((each) => each.field_name);
      })
      .catch(() => {});
  }, [of.id]);
  const snapshots = useSignal<Snapshot[]>([]);
  useEffect(() => {
    call<Snapshot[]>("GET", `/dataset/${of.id}/snapshot`)
      .then((found) => {
        snapshots.value = found;
      })
      .catch(() => {});
  }, [of.id]);
  const issues = (stats.value?.issues ?? []).map((each) => each.issue_type).filter((e) => !ISSUES_OF_FILES.includes(e));
  const isOfImages = entity === "IMAGES"; // objects have no tags, fields and states of their own
  const others = ["labels", "uniqueness_score", ...(isOfImages ? ["in_basket"] : ["confidence", "source"])];
  const ownFields = isOfImages ? fields.value : [];
  const known = [...LEVELS.map((level) => `cluster_${level}`), ...others, ...issues, ...ownFields];
  const found = isOfImages ? snapshots.value : [];
  const states = found.map((each) => [SINCE + each.snapshot_id, t.map.since(each.snapshot_name)] as const);
  const isOther = column !== null && !known.includes(column) && !states.some(([value]) => value === column);
  return (
    <div class="map-choices">
      {(of.n_objects > 0 || !isOfImages) && (
        <label class="inline">
          {t.map.entity}
          <select value={entity} onChange={(event) => onEntity(event.currentTarget.value as Entity)}>
            {(["IMAGES", "OBJECTS"] as const).map((each) => (
              <option key={each} value={each}>
                {t.map.entities[each]}
              </option>
            ))}
          </select>
        </label>
      )}
      <label class="inline">
        {t.map.colour}
        <select
          value={column ?? "none"}
          onChange={(event) => setQuery({ colour: event.currentTarget.value }, { replace: true })}
        >
          <option value="none">{t.map.noColour}</option>
          {LEVELS.map((level) => (
            <option key={level} value={`cluster_${level}`}>
              {t.map.levelColour(level)}
            </option>
          ))}
          {others.map((name) => (
            <option key={name} value={name}>
              {t.map.columns[name]}
            </option>
          ))}
          {issues.map((name) => (
            <option key={name} value={name}>
              {t.map.issueValue(t.issueNames[name] ?? name)}
            </option>
          ))}
          {ownFields.map((name) => (
            <option key={`field ${name}`} value={name}>
              {name}
            </option>
          ))}
          {states.map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
          {isOther && (
            <option value={column}>{column.startsWith(SINCE) ? t.map.since(t.map.anotherState) : column}</option>
          )}
        </select>
      </label>
      <label class="inline">
        {t.map.names}
        <select
          value={query.value.get("level") ?? ""}
          onChange={(event) => setQuery({ level: event.currentTarget.value || null }, { replace: true })}
        >
          <option value="">{t.map.namesAuto}</option>
          {LEVELS.map((level) => (
            <option key={level} value={String(level)}>
              {t.map.namesLevel(level)}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Making({ task: id }: { task: string }) {
  const task = tasks.value.get(id);
  return (
    <div class="bar" role="status">
      {t.map.making}
      <progress max={100} value={task?.progress_percentage ?? 0} aria-label={t.tasks.types.MAP ?? ""} />
      <Button disabledReason={whyNot("task.abort")} onClick={() => void abortTask(id).catch(sayError)}>
        {t.map.abort}
      </Button>
    </div>
  );
}

/** What is said where there are no points. */
function Nothing({ model, dataset: of, entity }: { model: MapModel; dataset: DatasetStatus; entity: Entity }) {
  const state = model.state.value;
  switch (state.kind) {
    case "making":
      return (
        <div class="map-empty">
          <Making task={state.task} />
          <div class="map-blank skeleton" aria-hidden="true" />
        </div>
      );
    case "unindexed":
      return (
        <div class="empty map-empty" role="status">
          <p>{t.map.unindexed}</p>
        </div>
      );
    case "ended":
    case "failed":
      return (
        <div class="empty map-empty problem" role="alert">
          <p>{state.kind === "ended" ? t.map.ended(state.reason) : t.map.failed(state.reason)}</p>
          <Button onClick={() => void (state.kind === "ended" ? model.make() : model.start())}>
            {state.kind === "ended" ? t.map.make : t.map.retry}
          </Button>
          <a href={pathOf(addressOf(of), "clusters")}>{t.map.clusters}</a>
        </div>
      );
    case "empty":
      return (
        <div class="empty map-empty" role="status">
          <p>{t.map.empty[entity]}</p>
        </div>
      );
    default:
      return <Skeleton of="map-blank" />;
  }
}
