/**
 * Results of a query: their rows by position, read in pages as they are needed.
 *
 * Results belong to one generation of the dataset. After a change by this page they are opened again in the generation
 * that it made; changes by others are shown when the user asks for it.
 */
import { signal } from "@preact/signals";
import { ApiError, get, post } from "../api/http";
import type { ResultQuery, ResultsInfo, Row } from "../api/types";
import { Lru } from "../lib/lru";

export const PAGE_ROWS = 200;
const MOST_PAGES = 40;
/** The columns of a row that the grid shows. */
export const COLUMNS = [
  "media_id", "file_path", "image_filename", "width", "height", "v", "labels", "tags", "caption", "media_type", "issues",
  "frame_timestamp", "in_basket", "duplicate_group_id",
] as const; // biome-ignore format: a list of words

export class Results {
  readonly info = signal<ResultsInfo | null>(null);
  readonly error = signal<ApiError | null>(null);
  readonly isLoading = signal(false);
  /** Changes whenever rows have come or changed. */
  readonly version = signal(0);
  query: ResultQuery = {};
  private pages = new Lru<number, Row[]>(MOST_PAGES);
  private requested = new Map<number, Promise<void>>();
  private places = new Map<string, number>();
  private attempt = 0;

  constructor(
    readonly datasetId: string,
    private readonly columns: readonly string[] = COLUMNS,
  ) {}

  get count(): number {
    return this.info.value?.count ?? 0;
  }

  private get path(): string {
    return `/dataset/${this.datasetId}/results`;
  }

  /** Open the results of a query. */
  async open(query: ResultQuery): Promise<void> {
    this.query = query;
    const attempt = ++this.attempt;
    this.isLoading.value = true;
    try {
      const info = await post<ResultsInfo>(this.path, query);
      if (attempt !== this.attempt) return;
      if (info.rid !== this.info.value?.rid) this.forget();
      this.info.value = info;
      this.error.value = null;
    } catch (error) {
      if (attempt !== this.attempt) return;
      if (!(error instanceof ApiError)) throw error;
      this.error.value = error;
      this.info.value = null;
    } finally {
      if (attempt === this.attempt) this.isLoading.value = false;
    }
  }

  /** Open the same query in the present generation. */
  reopen(): Promise<void> {
    return this.open(this.query);
  }

  private forget(): void {
    this.pages.clear();
    this.requested.clear();
    this.places.clear();
    this.version.value++;
  }

  /** Return the row at a position, or undefined until it has come. */
  row(position: number): Row | undefined {
    this.version.value; // whoever reads a row is told when it comes
    const page = Math.floor(position / PAGE_ROWS);
    const rows = this.pages.get(page);
    if (!rows) void this.fetch(page);
    return rows?.[position % PAGE_ROWS];
  }

  /** Return the rows from a position to another one, that included, once they have come. */
  async rows(from: number, to: number): Promise<Row[]> {
    const pages: Promise<void>[] = [];
    for (let page = Math.floor(from / PAGE_ROWS); page <= Math.floor(to / PAGE_ROWS); page++)
      pages.push(this.fetch(page));
    await Promise.all(pages);
    const found: Row[] = [];
    for (let position = from; position <= to; position++) {
      const row = this.row(position);
      if (row) found.push(row);
    }
    return found;
  }

  /** Return the row of a media item among the pages that are there. */
  find(mediaId: string): Row | undefined {
    const position = this.places.get(mediaId);
    return position === undefined ? undefined : this.row(position);
  }

  private fetch(page: number): Promise<void> {
    const info = this.info.peek();
    if (!info || page * PAGE_ROWS >= info.count || this.pages.get(page)) return Promise.resolve();
    const known = this.requested.get(page);
    if (known) return known;
    const reading = this.read(page, info).finally(() => this.requested.delete(page));
    this.requested.set(page, reading);
    return reading;
  }

  private async read(page: number, info: ResultsInfo): Promise<void> {
    try {
      const query = { offset: page * PAGE_ROWS, limit: PAGE_ROWS, columns: this.columns };
      const answer = await get<{ rows: Row[] }>(`${this.path}/${info.rid}/rows`, query);
      if (this.info.value?.rid !== info.rid) return;
      this.pages.set(page, answer.rows);
      answer.rows.forEach((row, index) => {
        this.places.set(row.media_id, page * PAGE_ROWS + index);
      });
      this.version.value++;
    } catch (error) {
      if (error instanceof ApiError && error.status === 410 && this.info.value?.rid === info.rid) await this.reopen();
      else if (this.info.value?.rid === info.rid) this.error.value = error instanceof ApiError ? error : null;
    }
  }

  /** Return the position of a media item, or null if it is not among the results. */
  async position(mediaId: string): Promise<number | null> {
    const known = this.places.get(mediaId);
    if (known !== undefined) return known;
    try {
      const found = await get<{ position: number }>(`${this.path}/${this.info.value?.rid}/position`, {
        media: mediaId,
      });
      return found.position;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return null;
      throw error;
    }
  }

  /** Change rows that are there at once, before the server has confirmed it; return a function that takes it back. */
  patch(mediaIds: Iterable<string>, change: (row: Row) => Row): () => void {
    const before = new Map<string, Row>();
    const replace = (next: (row: Row) => Row, only: (id: string) => boolean): void => {
      for (const rows of this.pages.values()) {
        rows.forEach((row, index) => {
          if (only(row.media_id)) rows[index] = next(row);
        });
      }
      this.version.value++;
    };
    const wanted = new Set(mediaIds);
    replace(
      (row) => {
        before.set(row.media_id, row);
        return { ...change(row), pending: true };
      },
      (id) => wanted.has(id),
    );
    return () =>
      replace(
        (row) => before.get(row.media_id) ?? row,
        (id) => before.has(id),
      );
  }
}
