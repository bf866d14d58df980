/**
 * Results of a query: their rows by position, read in pages as they are needed.
 *
 * Results belong to one generation of the dataset. After a change by this page they are opened again in the generation
 * that it made, and their rows stay until the new ones have come; changes by others are shown when the user asks for it.
 */
import { signal } from "@preact/signals";
import { ApiError, get, post } from "../api/http";
import type { Entity, ResultQuery, ResultsInfo, Row } from "../api/types";
import { Lru } from "../lib/lru";

export const PAGE_ROWS = 200;
const MOST_PAGES = 40;
const MOST_LOST = 4;
/** The columns of a row that the grid shows. */
export const COLUMNS = [
  "media_id", "image_filename", "width", "height", "v", "labels", "tags", "caption", "issues", "frame_timestamp",
  "in_basket",
] as const; // biome-ignore format: a list of words
/** The column of results of a search by an image that says which rows are copies of it. */
const COPY = "copy";

interface Page {
  rid: string;
  rows: Row[];
}

interface Patch {
  ids: ReadonlySet<string> | "all";
  change: (row: Row) => Row;
}

/** A change that is shown before the server has confirmed it. */
export interface Preview {
  /** Keep it: the server has confirmed it. */
  settle: () => void;
  takeBack: () => void;
}

export class Results {
  readonly info = signal<ResultsInfo | null>(null);
  /** What the present results are of. */
  readonly entity = signal<Entity>("IMAGES");
  readonly error = signal<ApiError | null>(null);
  readonly isLoading = signal(false);
  /** Changes whenever rows have come or changed. */
  readonly version = signal(0);
  query: ResultQuery = {};
  /** The query of the present rows, as text. */
  private shown = "";
  /** Whether the present rows are those of a search by an image. */
  private haveCopies = false;
  /** Rows by page; those of the results before stay until the present ones have come. */
  private pages = new Lru<number, Page>(MOST_PAGES);
  private requested = new Map<number, Promise<void>>();
  private places = new Map<string, number>();
  private patches = new Set<Patch>();
  private attempt = 0;
  /** How often the server has forgotten the results without having answered in between. */
  private lost = 0;
  private opening: { edit: number; done: Promise<void> } | null = null;

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
    const isNew = JSON.stringify(query) !== this.shown;
    this.query = query;
    const attempt = ++this.attempt;
    this.isLoading.value = true;
    try {
      const info = await post<ResultsInfo>(this.path, query);
      if (attempt !== this.attempt) return;
      if (isNew) this.forget();
      if (info.rid !== this.info.value?.rid) this.requested.clear();
      this.shown = JSON.stringify(query);
      this.haveCopies = Boolean(query.search?.similar);
      this.entity.value = query.entity_type ?? "IMAGES";
      this.info.value = info;
      this.error.value = null;
    } catch (error) {
      if (attempt !== this.attempt) return;
      if (!(error instanceof ApiError)) throw error;
      // Without a server what is there stays; a bar says so.
      if (error.status === 0 && this.info.value && !isNew) return;
      this.error.value = error;
      this.info.value = null;
    } finally {
      if (attempt === this.attempt) this.isLoading.value = false;
    }
  }

  /** Open the same query in the present generation; once only for each number of an edit. */
  reopen(edit = -1): Promise<void> {
    if (this.opening && edit >= 0 && this.opening.edit === edit) return this.opening.done;
    const done = this.open(this.query);
    this.opening = { edit, done };
    return done;
  }

  private forget(): void {
    this.pages.clear();
    this.places.clear();
    this.version.value++;
  }

  /** Return the row at a position, or undefined until it has come. */
  row(position: number): Row | undefined {
    this.version.value; // whoever reads a row is told when it comes
    const page = Math.floor(position / PAGE_ROWS);
    const stored = this.pages.get(page);
    if (stored?.rid !== this.info.peek()?.rid) void this.fetch(page);
    const row = stored?.rows[position % PAGE_ROWS];
    return row && this.patched(row);
  }

  private patched(row: Row): Row {
    let found = row;
    for (const { ids, change } of this.patches) {
      if (ids === "all" || ids.has(row.media_id)) found = { ...change(found), pending: true };
    }
    return found;
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
    if (!info || page * PAGE_ROWS >= info.count || this.pages.get(page)?.rid === info.rid) return Promise.resolve();
    const known = this.requested.get(page);
    if (known) return known;
    const reading = this.read(page, info).finally(() => {
      if (this.requested.get(page) === reading) this.requested.delete(page);
    });
    this.requested.set(page, reading);
    return reading;
  }

  private async read(page: number, info: ResultsInfo): Promise<void> {
    try {
      const columns = this.haveCopies ? [...this.columns, COPY] : this.columns;
      const query = { offset: page * PAGE_ROWS, limit: PAGE_ROWS, columns };
      const answer = await get<{ rows: Row[] }>(`${this.path}/${info.rid}/rows`, query);
      if (this.info.value?.rid !== info.rid) return;
      this.lost = 0;
      this.pages.set(page, { rid: info.rid, rows: answer.rows });
      answer.rows.forEach((row, index) => {
        this.places.set(row.media_id, page * PAGE_ROWS + index);
      });
      this.version.value++;
    } catch (error) {
      if (this.info.value?.rid !== info.rid) return;
      if (error instanceof ApiError && error.status === 410 && ++this.lost < MOST_LOST) {
        // The server has forgotten the results; opened again they may have the same id.
        this.requested.delete(page);
        await this.reopen();
        this.version.value++;
      } else this.error.value = error instanceof ApiError ? error : null;
    }
  }

  /** Return whether the row at a position is one of the present results, and not of those before. */
  isCurrent(position: number): boolean {
    return this.pages.get(Math.floor(position / PAGE_ROWS))?.rid === this.info.peek()?.rid;
  }

  /** Return the position of a media item in the present results, as the server knows it; null if it is not there. */
  async placeOf(mediaId: string): Promise<number | null> {
    const rid = this.info.peek()?.rid;
    const found = await this.ask(mediaId).catch(() => null);
    return this.info.peek()?.rid === rid ? found : null;
  }

  /** Return the position of a media item, or null if it is not among the results. */
  async position(mediaId: string): Promise<number | null> {
    const known = this.places.get(mediaId);
    return known ?? this.ask(mediaId);
  }

  /** Ask the server for the position of a media item; null if it is not among the results. */
  private async ask(mediaId: string): Promise<number | null> {
    const info = this.info.peek();
    if (!info || info.count === 0) return null;
    const wanted = { media: mediaId, required: false };
    return (await get<{ position: number | null }>(`${this.path}/${info.rid}/position`, wanted)).position;
  }

  /** Show a change of some rows, or of all, before the server has confirmed it. */
  preview(mediaIds: readonly string[] | "all", change: (row: Row) => Row): Preview {
    const patch: Patch = { ids: mediaIds === "all" ? "all" : new Set(mediaIds), change };
    const end = (): void => {
      this.patches.delete(patch);
      this.version.value++;
    };
    this.patches.add(patch);
    this.version.value++;
    return {
      takeBack: end,
      settle: () => {
        for (const { rows } of this.pages.values()) {
          rows.forEach((row, index) => {
            if (patch.ids === "all" || patch.ids.has(row.media_id)) rows[index] = change(row);
          });
        }
        end();
      },
    };
  }
}
