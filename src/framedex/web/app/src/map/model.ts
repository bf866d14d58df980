/** The map of a dataset as a page knows it: its points, their colours, what a filter keeps, names and rows. */
import { signal } from "@preact/signals";
import { ApiError, get, post, send } from "../api/http";
import type { Entity, ResultsInfo, Row, Task } from "../api/types";
import { Lru } from "../lib/lru";
import { say, sayError } from "../state/notices";
import { loadTasks, waitForTask } from "../state/tasks";
import { t } from "../texts";
import { askPoints } from "./early";
import { type Place, PointIndex } from "./index";
import { type Colours, type Points, parseColours, readPoints } from "./points";

/** What is there to look at, or why there is nothing. */
export type State =
  | { kind: "loading" }
  | { kind: "making"; task: string }
  | { kind: "unindexed" | "ended" | "failed"; reason: string }
  | { kind: "empty" }
  | { kind: "ready" };

export interface ClusterName {
  cluster_id: string;
  name: string | null;
  size: number;
  x: number;
  y: number;
}

/** The beginning of a choice of colours that shows what happened between two states: `since:<before>:<after>`. */
export const SINCE = "since:";

/** Return the query of a choice of colours: a column, or two states. */
function colouring(choice: string): Record<string, string> {
  if (!choice.startsWith(SINCE)) return { column: choice };
  const [before = "", after = ""] = choice.slice(SINCE.length).split(":");
  return after ? { before, after } : { before };
}

/** Return the first part of a name of several labels with their shares. */
export const shortName = (name: string): string => name.split(", ")[0]!;

const MOST_ROWS = 4_000;
const ROW_COLUMNS = ["media_id", "image_filename", "v", "labels", "caption"] as const;

export class MapModel {
  readonly state = signal<State>({ kind: "loading" });
  /** The points, as soon as their number is known, and how many of them have come. */
  readonly points = signal<Points | null>(null);
  readonly loaded = signal(0);
  readonly colours = signal<Colours | null>(null);
  readonly kept = signal<Uint8Array | null>(null);
  /** The names of clusters by level. */
  readonly names = signal<ReadonlyMap<number, readonly ClusterName[]>>(new Map());
  /** Whether the dataset was indexed since the map was made. */
  readonly isStale = signal(false);
  /** Changes with each index of points. */
  readonly indexed = signal(0);
  private index: PointIndex | null = null;
  private etag = "";
  /** The map that this page has had made, has begun with, or has said that somebody else made. */
  private known = "";
  private column: string | null = null;
  private colouring = 0;
  private masking = 0;
  private mask: ArrayBuffer | null = null;
  private rows: RowsByPosition;
  private isClosed = false;

  constructor(
    private readonly datasetId: string,
    private readonly entity: Entity,
  ) {
    this.rows = new RowsByPosition(datasetId, entity);
  }

  private get path(): string {
    return `/dataset/${this.datasetId}`;
  }

  /** The parameter of requests about another kind than images. */
  private get kind(): Record<string, string> {
    return this.entity === "IMAGES" ? {} : { entity_type: this.entity };
  }

  close(): void {
    this.isClosed = true;
    this.index?.close();
  }

  /** Read the map, from an answer that was asked for before if there is one; have it made if there is none. */
  async start(early: Promise<Response> | null = null): Promise<void> {
    try {
      if (!(await this.read(early))) await this.make();
      this.known = this.etag;
    } catch (error) {
      this.fail(error);
    }
  }

  /** Have the map of the present index made, and read it. */
  async make(): Promise<void> {
    try {
      const task = await post<Task>(`${this.path}/map`, undefined, this.kind);
      this.state.value = { kind: "making", task: task.task_id };
      await loadTasks();
      await waitForTask(task.task_id);
      if (this.isClosed) return;
      this.isStale.value = false;
      await this.read();
      this.known = this.etag;
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * Look whether the map has changed: places of rows after edits, or all after an index.
   *
   * @param isMade whether a map was made since, maybe by somebody else, which the page then says.
   */
  async refresh(isMade = false): Promise<void> {
    if (this.state.peek().kind === "making") return;
    try {
      const isThere = await this.read(); // maybe what a refresh after an edit has read before
      if (isMade && isThere) {
        if (this.known !== "" && this.etag !== this.known) say(t.map.madeElsewhere);
        this.known = this.etag;
      }
      this.isStale.value = !isThere && this.points.peek() !== null;
      if (!isThere && this.points.peek() === null && !isMade) await this.make();
    } catch (error) {
      this.fail(error);
    }
  }

  private fail(error: unknown): void {
    if (this.isClosed) return;
    const reason = error instanceof Error ? error.message : String(error);
    const status = error instanceof ApiError ? error.status : 0;
    const wasMaking = this.state.peek().kind === "making";
    if (this.points.peek() && !wasMaking) return; // what is there stays
    this.state.value = { kind: wasMaking ? "ended" : status === 409 ? "unindexed" : "failed", reason };
  }

  /** Read the points; return false if there is no map of the present index. */
  private async read(early: Promise<Response> | null = null): Promise<boolean> {
    const response = await (early ?? askPoints(this.datasetId, this.entity));
    if (response.status === 204 || this.isClosed) return this.isClosed;
    const etag = response.headers.get("ETag") ?? "";
    const isSame = etag !== "" && etag === this.etag;
    if (isSame || !response.body) void response.body?.cancel();
    else {
      this.rows = new RowsByPosition(this.datasetId, this.entity);
      this.names.value = new Map();
      const points = await readPoints(response.body, (found, loaded) => {
        if (this.isClosed) return;
        if (this.points.peek() !== found) {
          this.kept.value = null;
          this.colours.value = null;
          this.points.value = found;
        }
        this.loaded.value = loaded;
        this.state.value = { kind: "ready" };
      });
      if (this.isClosed) return true;
      this.etag = etag;
      await this.take(points);
    }
    this.state.value = { kind: this.points.peek()?.count ? "ready" : "empty" };
    void this.colour(this.column, true);
    return true;
  }

  private async take(points: Points): Promise<void> {
    this.points.value = points;
    this.index ??= new PointIndex();
    const { places, positions } = points;
    await this.index.ask("points", { places, positions });
    this.indexed.value++;
    if (this.mask) await this.keep(this.mask);
  }

  /** Colour the points by a column; null for one colour. */
  async colour(column: string | null, again = false): Promise<void> {
    if (column === this.column && !again) return;
    this.column = column;
    const turn = ++this.colouring;
    const points = this.points.peek();
    if (!column || !points?.count) {
      this.colours.value = null;
      return;
    }
    try {
      const response = await send("GET", `${this.path}/map/colours`, {
        query: { ...colouring(column), ...this.kind },
      });
      const found = parseColours(await response.arrayBuffer());
      if (turn === this.colouring) this.colours.value = found.codes.length === points.count ? found : null;
    } catch (error) {
      if (turn !== this.colouring) return;
      this.colours.value = null;
      sayError(error);
    }
  }

  /** Show which points some results keep; null for all. */
  async filter(rid: string | null): Promise<void> {
    const turn = ++this.masking;
    const mask = rid === null ? null : await (await send("GET", `${this.path}/results/${rid}/mask`)).arrayBuffer();
    if (turn !== this.masking) return;
    this.mask = mask;
    if (this.index) await this.keep(mask);
  }

  private async keep(mask: ArrayBuffer | null): Promise<void> {
    const turn = this.masking;
    const kept = (await this.index?.ask("mask", { bits: mask })) ?? null;
    if (turn !== this.masking) return;
    this.kept.value = kept;
    this.indexed.value++;
  }

  /** Read the names of clusters of a level, once. */
  async readNames(level: number): Promise<void> {
    if (this.names.peek().has(level)) return;
    this.names.value = new Map(this.names.peek()).set(level, []);
    const { labels } = await get<{ labels: ClusterName[] }>(`${this.path}/map/labels`, {
      level,
      ...this.kind,
    });
    this.names.value = new Map(this.names.peek()).set(level, labels);
  }

  async nearest(x: number, y: number, reach: number): Promise<Place | null> {
    return (await this.index?.ask("nearest", { x, y, reach })) ?? null;
  }

  /** Return a place for each cell of a part of the map; none where there are too many points. */
  async tiles(asked: Parameters<PointIndex["ask"]>[1] & { cell: number }): Promise<Place[]> {
    return (await this.index?.ask("tiles", asked as never)) ?? [];
  }

  /** Return rows by their positions among all. */
  rowsAt(positions: readonly number[]): Promise<Map<number, Row>> {
    return this.rows.at(positions);
  }
}

/** Rows of all media by position, read as they are needed. */
class RowsByPosition {
  private readonly known = new Lru<number, Row>(MOST_ROWS);
  private rid: Promise<string> | null = null;

  constructor(
    private readonly datasetId: string,
    private readonly entity: Entity,
  ) {}

  async at(positions: readonly number[]): Promise<Map<number, Row>> {
    const missing = positions.filter((each) => !this.known.get(each));
    if (missing.length) {
      try {
        await this.read(missing);
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 410) throw error;
        this.rid = null;
        await this.read(missing);
      }
    }
    const found = positions.map((each) => [each, this.known.get(each)] as const);
    return new Map(found.filter((pair): pair is [number, Row] => pair[1] !== undefined));
  }

  private async read(positions: readonly number[]): Promise<void> {
    this.rid ??= post<ResultsInfo>(`/dataset/${this.datasetId}/results`, { entity_type: this.entity }).then(
      (info) => info.rid,
    );
    const path = `/dataset/${this.datasetId}/results/${await this.rid}/rows`;
    const { rows } = await get<{ rows: Row[] }>(path, { at: positions.map(String), columns: ROW_COLUMNS });
    rows.forEach((row, index) => {
      this.known.set(positions[index]!, row);
    });
  }
}
