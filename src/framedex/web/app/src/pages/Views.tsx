import { call, get } from "../api/http";
import type { DatasetStatus, VqlElement } from "../api/types";
import { ago, count } from "../lib/format";
import { describe, filterText } from "../lib/vql";
import { Button } from "../parts/Button";
import { datasetPage } from "../parts/DatasetPage";
import { currentFilter } from "../parts/FilterBar";
import { Prompt } from "../parts/Prompt";
import { Pending, useResource } from "../parts/Resource";
import { pathOf, query } from "../router";
import { addressOf } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { say, sayError } from "../state/notices";
import { heads } from "../state/tasks";
import { t } from "../texts";

interface SavedView {
  id: string;
  name: string;
  created_at: string;
  created_by: { email: string | null; name: string | null };
  filters: { entity_type: string; threshold: string | null; caption: string | null; vql: VqlElement[] | null };
  stats: { n_images: number; n_objects: number; n_video_frames: number };
  alerting_enabled: boolean;
  total_results: number;
  last_results: string | null;
}
interface TrendPoint {
  timestamp: string;
  count: number;
  cumulative: number;
}

export default datasetPage(Views);

/** The saved views of a dataset, with what additions brought to each. */
function Views({ dataset: of }: { dataset: DatasetStatus }) {
  const list = useResource<{ views: SavedView[] }>(
    (signal) => get(`/dataset/${of.id}/views`, {}, signal),
    [of.id, heads.value.get(of.id)],
  );
  return (
    <div class="page">
      <h1>{t.navigation.views}</h1>
      {!list.value ? (
        <Pending of={list} />
      ) : list.value.views.length === 0 ? (
        <p class="empty">{t.views.none}</p>
      ) : (
        <ul class="rows">
          {list.value.views.map((view) => (
            <li key={view.id}>
              <OneView dataset={of} view={view} onChange={list.reload} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function OneView({ dataset: of, view, onChange }: { dataset: DatasetStatus; view: SavedView; onChange: () => void }) {
  const trend = useResource<{ points: TrendPoint[] }>(
    (signal) => get(`/dataset/${of.id}/views/${view.id}/trend`, {}, signal),
    [view.id, view.last_results],
  );
  const path = `/dataset/${of.id}/views/${view.id}`;
  const act = async (work: Promise<unknown>): Promise<void> => {
    try {
      await work;
      onChange();
    } catch (error) {
      sayError(error);
    }
  };
  const { vql, caption } = view.filters;
  const address = new URLSearchParams();
  if (vql?.length) address.set("f", filterText(vql)!);
  if (caption) address.set("q", caption);
  const n = view.stats.n_images;
  return (
    <>
      <a href={pathOf(addressOf(of), "pictures", null, address.toString())}>
        <strong>{view.name}</strong>
      </a>
      <span class="hint">{[...(vql ?? []).map(describe), ...(caption ? [`“${caption}”`] : [])].join(", ")}</span>
      {n >= 0 && <span class="number">{t.home.counts(n, 0)}</span>}
      {trend.value && <Sparkline points={trend.value.points} />}
      {view.last_results && <span class="hint">{t.views.last(ago(view.last_results))}</span>}
      <span class="grow" />
      <Button
        needs="view.alerting"
        pressed={view.alerting_enabled}
        onClick={() =>
          void act(call("POST", `${path}/alerting`, { json: { request: { enabled: !view.alerting_enabled } } }))
        }
      >
        {t.views.alerts}
      </Button>
      <Button needs="view.delete" kind="quiet" onClick={() => void act(call("DELETE", path))}>
        {t.views.remove}
      </Button>
    </>
  );
}

/** How many results each addition brought, as a line. */
function Sparkline({ points }: { points: readonly TrendPoint[] }) {
  if (points.length === 0) return null;
  const most = Math.max(1, ...points.map((point) => point.cumulative));
  const path = points.map(
    (point, index) => `${(100 * index) / Math.max(1, points.length - 1)},${24 - (22 * point.cumulative) / most}`,
  );
  return (
    <svg
      class="sparkline"
      viewBox="0 0 100 24"
      role="img"
      aria-label={t.views.trend(count(points.length), count(points.at(-1)!.cumulative))}
    >
      <polyline points={path.join(" ")} />
    </svg>
  );
}

/** Ask for a name, and save the filter and the words of the present page as a view. */
export function askSaveView(of: DatasetStatus): void {
  const vql = currentFilter();
  const caption = query.peek().get("q");
  const save = async (name: string): Promise<void> => {
    const form = new FormData();
    form.set("name", name);
    const wanted = { entity_type: "IMAGES", vql: vql.length ? filterText(vql) : null, caption };
    try {
      await call("POST", `/dataset/${of.id}/views`, { form, query: wanted });
      say(t.views.saved(name));
    } catch (error) {
      sayError(error);
    }
  };
  openDialog(() => (
    <Prompt
      title={t.actions.saveView}
      label={t.views.name}
      submit={t.actions.saveView}
      onSubmit={(name) => void save(name)}
    />
  ));
}
