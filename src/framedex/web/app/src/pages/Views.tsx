import { useEffect, useRef } from "preact/hooks";
import { call, get } from "../api/http";
import type { DatasetStatus, SavedView, TrendPoint } from "../api/types";
import { ago, count, date } from "../lib/format";
import { balanced } from "../lib/search";
import { describe, filterText } from "../lib/vql";
import { Button } from "../parts/Button";
import { Confirm } from "../parts/Confirm";
import { datasetPage } from "../parts/DatasetPage";
import { currentFilter } from "../parts/FilterBar";
import { Prompt } from "../parts/Prompt";
import { Pending, useResource } from "../parts/Resource";
import { pathOf, query } from "../router";
import { addressOf } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { say, sayError } from "../state/notices";
import { profile } from "../state/session";
import { heads } from "../state/tasks";
import { t } from "../texts";

const MOST_POINTS = 50;

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
      <p class="hint">{t.views.alertsHint}</p>
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
  const link = useRef<HTMLAnchorElement>(null);
  const isWanted = query.value.get("view") === view.id;
  useEffect(() => {
    if (isWanted) link.current?.focus();
  }, [isWanted]);
  const act = async (work: () => Promise<unknown>, words: string): Promise<void> => {
    try {
      await work();
      say(words);
      onChange();
    } catch (error) {
      sayError(error);
    }
  };
  const alert = (enabled: boolean): Promise<void> =>
    act(
      () => call("POST", `${path}/alerting`, { json: { request: { enabled } } }),
      enabled ? t.views.alertsOn(view.name) : t.views.alertsOff(view.name),
    );
  const remove = (): void =>
    openDialog(() => (
      <Confirm
        title={t.views.removeTitle(view.name)}
        text={t.views.removeHint}
        submit={t.views.remove}
        onConfirm={() => void act(() => call("DELETE", path), t.views.removed(view.name))}
      />
    ));
  const { vql, caption } = view.filters;
  const address = new URLSearchParams();
  if (vql.length) address.set("f", filterText(vql)!);
  if (caption) address.set("q", caption);
  const n = view.stats.n_images;
  const isOwn = view.created_by.user_id === profile.value?.user_id;
  return (
    <>
      <a ref={link} href={pathOf(addressOf(of), "pictures", null, address.toString())}>
        <strong>{view.name}</strong>
      </a>
      <span class="hint">{[...vql.map(describe), ...(caption ? [`“${caption}”`] : [])].join(", ")}</span>
      {n >= 0 && <span class="number">{t.home.counts(n, 0)}</span>}
      {trend.value && <Trend points={trend.value.points} />}
      {view.last_results && <span class="hint">{t.views.last(ago(view.last_results))}</span>}
      <span class="hint">{t.views.by(view.created_by.name ?? view.created_by.email ?? "")}</span>
      {view.evaluation_error && <p class="problem">{view.evaluation_error}</p>}
      <span class="grow" />
      <Button needs="view.alerting" pressed={view.alerting_enabled} onClick={() => void alert(!view.alerting_enabled)}>
        {t.views.alerts}
      </Button>
      <Button {...(isOwn ? {} : { needs: "view.delete" })} kind="quiet" onClick={remove}>
        {t.views.remove}
      </Button>
    </>
  );
}

/** The trend of a view as a line, which opens into a table. */
function Trend({ points }: { points: readonly TrendPoint[] }) {
  if (points.length === 0) return null;
  return (
    <details class="trend">
      <summary>
        {points.length > 1 && <Sparkline points={points} />}
        <span class="hint">{t.views.trend(points.length, points.at(-1)!.cumulative)}</span>
      </summary>
      <table>
        <thead>
          <tr>
            <th scope="col">{t.views.columns.when}</th>
            <th scope="col">{t.views.columns.count}</th>
            <th scope="col">{t.views.columns.all}</th>
          </tr>
        </thead>
        <tbody>
          {points.slice(-MOST_POINTS).map((point) => (
            <tr key={point.batch_id}>
              <th scope="row">{date(point.timestamp)}</th>
              <td class="number">{count(point.count)}</td>
              <td class="number">{count(point.cumulative)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

/** How many results each addition brought, as a line. */
function Sparkline({ points }: { points: readonly TrendPoint[] }) {
  const most = Math.max(1, ...points.map((point) => point.cumulative));
  const path = points.map(
    (point, index) => `${(100 * index) / Math.max(1, points.length - 1)},${24 - (22 * point.cumulative) / most}`,
  );
  return (
    <svg class="sparkline" viewBox="0 0 100 24" aria-hidden="true">
      <polyline points={path.join(" ")} />
    </svg>
  );
}

/** Ask for a name, and save the filter and the words of the present page as a view. */
export function askSaveView(of: DatasetStatus): void {
  const vql = currentFilter();
  const caption = balanced(query.peek().get("q") ?? "") || null;
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
