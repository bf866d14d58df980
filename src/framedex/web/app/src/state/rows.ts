/** Rows of a few media, or of a query, read once. */
import { get, post } from "../api/http";
import type { ResultQuery, ResultsInfo, Row } from "../api/types";

const MOST = 500;

/** Return rows of a query with some columns, up to a number of them, and how many there are in all. */
export async function readRows(
  datasetId: string,
  query: ResultQuery,
  columns: readonly string[],
  limit = MOST,
  signal?: AbortSignal,
): Promise<{ rows: Row[]; info: ResultsInfo }> {
  const info = await post<ResultsInfo>(`/dataset/${datasetId}/results`, query);
  const path = `/dataset/${datasetId}/results/${info.rid}/rows`;
  const rows: Row[] = [];
  for (let offset = 0; offset < Math.min(info.count, limit); offset += MOST) {
    const part = { offset, limit: Math.min(MOST, limit - offset), columns };
    rows.push(...(await get<{ rows: Row[] }>(path, part, signal)).rows);
  }
  return { rows, info };
}

/** Return the rows of some media, in their order. */
export async function rowsOfIds(datasetId: string, ids: readonly string[], columns: readonly string[]): Promise<Row[]> {
  if (ids.length === 0) return [];
  const { rows } = await readRows(datasetId, { ids: [...ids] }, columns, ids.length);
  const byId = new Map(rows.map((row) => [row.media_id, row]));
  return ids.map((id) => byId.get(id)).filter((row) => row !== undefined);
}
