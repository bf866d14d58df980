import { get, post } from "../api/http";
import type { DatasetStatus, ResultsInfo, Row } from "../api/types";
import { ago } from "../lib/format";
import { type Resource, useResource } from "../parts/Resource";
import { THUMB_COLUMNS, Thumb } from "../parts/Thumb";
import { pathOf } from "../router";
import { addressOf, datasets } from "../state/datasets";
import { mayCreate } from "../state/session";
import { t } from "../texts";

/** All datasets that the user may view. */
export default function Home() {
  const found = datasets.value;
  return (
    <div class="page">
      <header class="page-head">
        <h1>{t.home.title}</h1>
        {mayCreate.value && (
          <a class="button main" href="/import">
            {t.home.create}
          </a>
        )}
      </header>
      {found?.length === 0 && (
        <div class="empty">
          <p>{t.home.empty}</p>
          <p>{t.home.emptyHint}</p>
          <code>{t.home.emptyCommand}</code>
        </div>
      )}
      <ul class="cards" aria-busy={found === null}>
        {found?.map((each) => (
          <li key={each.id}>
            <Card dataset={each} />
          </li>
        ))}
      </ul>
    </div>
  );
}

const PREVIEWS = 4;

function Card({ dataset }: { dataset: DatasetStatus }) {
  const previews = usePreviews(dataset);
  return (
    <a class="card" href={pathOf(addressOf(dataset))}>
      <span class="card-images" aria-hidden="true">
        {Array.from({ length: PREVIEWS }, (_, index) => {
          const row = previews.value?.[index];
          return <span key={index}>{row && <Thumb datasetId={dataset.id} row={row} size={128} />}</span>;
        })}
      </span>
      <strong>{dataset.display_name}</strong>
      <span>{t.home.counts(dataset.n_images, dataset.n_videos)}</span>
      <span class={`status ${dataset.status_new.toLowerCase().replaceAll(" ", "-")}`}>
        {t.statuses[dataset.status_new] ?? dataset.status_new}
        {dataset.status_new === "INDEXING" && ` ${dataset.progress} %`}
      </span>
      {dataset.fatal_error_msg && <span class="problem">{dataset.fatal_error_msg}</span>}
      <span class="hint">{t.home.created(ago(dataset.created_at))}</span>
    </a>
  );
}

function usePreviews(dataset: DatasetStatus): Resource<Row[]> {
  return useResource(
    async (signal) => {
      if (dataset.n_images === 0 || dataset.updated_at === null) return [];
      const info = await post<ResultsInfo>(`/dataset/${dataset.id}/results`, {});
      const query = { limit: PREVIEWS, columns: THUMB_COLUMNS };
      const page = await get<{ rows: Row[] }>(`/dataset/${dataset.id}/results/${info.rid}/rows`, query, signal);
      return page.rows;
    },
    [dataset.id, dataset.updated_at],
  );
}
