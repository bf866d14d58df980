import { useEffect, useRef } from "preact/hooks";
import { root } from "#host";
import { call, get, post } from "../api/http";
import type { DatasetStatus, ResultsInfo, SavedView, TrendPoint } from "../api/types";
import { useKeys } from "../keys/dispatcher";
import { ago, count, date } from "../lib/format";
import { balanced } from "../lib/search";
import { describe, filterText } from "../lib/vql";
import { Button } from "../parts/Button";
import { Confirm } from "../parts/Confirm";
import { datasetPage } from "../parts/DatasetPage";
import { openExport } from "../parts/ExportDialog";
import { currentFilter } from "../parts/FilterBar";
import { Prompt } from "../parts/Prompt";
import { Pending, useResource } from "../parts/Resource";
import { Sparkline } from "../parts/Sparkline";
import { navigate, pathOf, query } from "../router";
import { addressOf } from "../state/datasets";
import { openDialog } from "../state/dialogs";
import { say, sayError } from "../state/notices";
import { unread } from "../state/notifications";
import { entityOf, queryOf } from "../state/pictures";
import { profile } from "../state/session";
import { heads } from "../state/tasks";
import { t } from "../texts";

const MOST_POINTS = 50;

export default datasetPage(Views);

/** Return the query of the images page that shows what a view finds, or what it finds in one batch. */
function addressOfView({ filters }: SavedView, batch?: number): URLSearchParams {
  const vql = batch === undefined ? filters.vql : [...filters.vql, { batch: { op: "is", value: batch } }];
  const address = new URLSearchParams();
  if (vql.length) address.set("f", filterText(vql)!);
  if (filters.caption) address.set("q", filters.caption);
  if (filters.entity_type === "OBJECTS") address.set("entity", "OBJECTS");
  return address;
}

/** The saved views of a dataset, with what additions brought to each. */
function Views({ dataset: of }: { dataset: DatasetStatus }) {
  const list = useResource<{ views: SavedView[] }>(
    (signal) => get(`/dataset/${of.id}/views`, {}, signal),
    [of.id, heads.value.get(of.id), unread.value], // what additions brought is counted after their commits
  );
  const rows = useRef<HTMLUListElement>(null);
  const views = list.value?.views ?? [];
  const links = (): HTMLAnchorElement[] => [...(rows.current?.querySelectorAll<HTMLAnchorElement>("a.view") ?? [])];
  const focused = (): number => links().findIndex((link) => link.closest("li")?.contains(root.activeElement));
  const move = (by: number): void => {
    const all = links();
    all[Math.min(Math.max(0, focused() + by), all.length - 1)]?.focus();
  };
  const exportFocused = (): void => {
    const view = views[focused()];
    if (view) void exportView(of, view);
    else say(views.length ? t.views.chooseOne : t.views.none);
  };
  useKeys("views", { next: () => move(1), previous: () => move(-1), export: exportFocused });
  return (
    <div class="page">
      <h1>{t.navigation.views}</h1>
      <p class="hint">{t.views.alertsHint}</p>
      {!list.value ? (
        <Pending of={list} />
      ) : list.value.views.length === 0 ? (
        <p class="empty">{t.views.none}</p>
      ) : (
        <ul class="rows" ref={rows}>
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

const imagesPath = (of: DatasetStatus, view: SavedView, batch?: number): string =>
  pathOf(addressOf(of), "pictures", null, addressOfView(view, batch).toString());

/** Open the dialog that exports what a view finds. */
async function exportView(of: DatasetStatus, view: SavedView): Promise<void> {
  try {
    const wanted = queryOf(addressOfView(view));
    openExport(of, wanted, (await post<ResultsInfo>(`/dataset/${of.id}/results`, wanted)).count);
  } catch (error) {
    sayError(error);
  }
}

function OneView({ dataset: of, view, onChange }: { dataset: DatasetStatus; view: SavedView; onChange: () => void }) {
  const trend = useResource<{ points: TrendPoint[] }>(
    (signal) => get(`/dataset/${of.id}/views/${view.id}/trend`, {}, signal),
    [view.id, view.last_results],
  );
  // What it finds now: the numbers of the view are those of its last evaluation.
  const found = useResource<ResultsInfo>(
    (signal) => call("POST", `/dataset/${of.id}/results`, { json: queryOf(addressOfView(view)), signal }),
    [view.id, heads.value.get(of.id)],
  );
  const path = `/dataset/${of.id}/views/${view.id}`;
  const link = useRef<HTMLAnchorElement>(null);
  const isWanted = query.value.get("view") === view.id;
  const batch = isWanted ? query.value.get("batch") : null;
  useEffect(() => {
    if (isWanted) link.current?.focus();
  }, [isWanted]);
  // A notification leads to the results that it is about.
  useEffect(() => {
    const point = batch ? trend.value?.points.find((each) => each.batch_id === batch) : undefined;
    if (point) navigate(imagesPath(of, view, point.batch), { replace: true });
    else if (batch && trend.value) say(t.views.noBatch);
  }, [batch, trend.value]);
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
  const isOwn = view.created_by.user_id === profile.value?.user_id;
  return (
    <>
      <a ref={link} class="view" href={imagesPath(of, view)}>
        <strong>{view.name}</strong>
      </a>
      <span class="hint">{[...vql.map(describe), ...(caption ? [`“${caption}”`] : [])].join(", ")}</span>
      {found.value && (
        <span class="number">{t.pictures.count(found.value.count, null, entityOf(addressOfView(view)))}</span>
      )}
      {trend.value && <Trend points={trend.value.points} pathOfBatch={(number) => imagesPath(of, view, number)} />}
      {view.last_results && <span class="hint">{t.views.last(ago(view.last_results))}</span>}
      <span class="hint">{t.views.by(view.created_by.name ?? view.created_by.email ?? "")}</span>
      {view.evaluation_error && <p class="problem">{view.evaluation_error}</p>}
      <span class="grow" />
      <Button hint="E" onClick={() => void exportView(of, view)}>
        {t.actions.export}
      </Button>
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
function Trend({ points, pathOfBatch }: { points: readonly TrendPoint[]; pathOfBatch: (batch: number) => string }) {
  if (points.length === 0) return null;
  return (
    <details class="trend">
      <summary>
        {points.length > 1 && <Sparkline values={points.map((point) => point.cumulative)} />}
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
              <td class="number">
                {point.count > 0 ? <a href={pathOfBatch(point.batch)}>{count(point.count)}</a> : count(point.count)}
              </td>
              <td class="number">{count(point.cumulative)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
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
