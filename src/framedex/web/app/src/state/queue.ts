/** A queue of findings to decide on: loaded in parts, one after another, with what was decided here left out. */
import { batch, signal } from "@preact/signals";
import { ApiError } from "../api/http";

export interface Part<T> {
  items: T[];
  hasMore: boolean;
}

export class Queue<T> {
  readonly items = signal<readonly T[]>([]);
  readonly index = signal(0);
  readonly hasMore = signal(false);
  readonly isLoading = signal(true);
  readonly error = signal<ApiError | null>(null);
  /** Items whose decision the server has not confirmed; what is read meanwhile may still have them. */
  private readonly taken = new Set<string>();
  /** The item that was decided on last: once it is open again, after an undo, it is shown. */
  private last: string | null = null;
  private turn = 0;
  /** The number of changes of the page that the queue knows of. */
  private known: number | null = null;

  /**
   * @param read reads a part of the queue.
   * @param idOf names an item: one that moved while the next part was read is not shown twice.
   */
  constructor(
    private readonly read: (offset: number) => Promise<Part<T>>,
    private readonly idOf: (item: T) => string,
  ) {}

  /** The item that is decided on now. */
  get current(): T | undefined {
    return this.items.value[this.index.value];
  }

  /** Read the queue again if the dataset was changed, unless only by decisions after which it is as it would be read. */
  refresh(version: number): void {
    if (this.known !== null && version <= this.known) return;
    this.known = version;
    void this.load();
  }

  /** Read the queue from its beginning; the item that is shown stays, unless the last decision was undone. */
  async load(): Promise<void> {
    await this.fill(0);
  }

  private async fill(from: number): Promise<void> {
    const turn = ++this.turn;
    this.isLoading.value = true;
    try {
      let offset = from;
      let items = from === 0 ? [] : this.items.peek();
      let part: Part<T>;
      do {
        part = await this.read(offset);
        if (turn !== this.turn) return; // a later reading knows more
        const left = new Set([...items.map(this.idOf), ...this.taken]);
        items = [...items, ...part.items.filter((item) => !left.has(this.idOf(item)))];
        offset += part.items.length;
      } while (part.hasMore && part.items.length > 0 && items.length <= this.index.peek());
      batch(() => {
        this.index.value = this.placeIn(items);
        this.items.value = items;
        this.hasMore.value = part.hasMore;
        this.error.value = null;
      });
    } catch (error) {
      if (turn === this.turn) this.error.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    } finally {
      if (turn === this.turn) this.isLoading.value = false;
    }
  }

  /** Return the place to show in items that were read: that of what was shown, or of what is open again. */
  private placeIn(items: readonly T[]): number {
    const places = new Map(items.map((item, place) => [this.idOf(item), place]));
    const again = this.last === null ? undefined : places.get(this.last);
    if (again !== undefined) this.last = null;
    const shown = this.current && places.get(this.idOf(this.current));
    return again ?? shown ?? Math.min(this.index.peek(), Math.max(0, items.length - 1));
  }

  /** Go some items on, reading more where the end is near. */
  move(by: number): void {
    const last = Math.max(0, this.items.peek().length - 1);
    this.index.value = Math.min(Math.max(0, this.index.peek() + by), last);
    if (this.hasMore.peek() && !this.isLoading.peek() && this.index.peek() > last - 10)
      void this.fill(this.items.peek().length);
  }

  /**
   * Take an item out at once, and put it back in its place if the decision on it fails.
   *
   * @param decide makes one change.
   * @param leavesOthers whether other items stay as they are, so that the queue need not be read again.
   */
  async take(item: T, decide: () => Promise<unknown>, leavesOthers = false): Promise<void> {
    const id = this.idOf(item);
    const place = this.items.peek().findIndex((each) => this.idOf(each) === id);
    if (place < 0) return;
    this.taken.add(id);
    this.items.value = this.items.peek().filter((each) => this.idOf(each) !== id);
    if (this.index.peek() >= this.items.peek().length) this.index.value = Math.max(0, this.items.peek().length - 1);
    this.move(0);
    try {
      await decide();
      this.last = id;
      if (leavesOthers && this.known !== null) this.known++;
    } catch {
      const next = [...this.items.peek()];
      next.splice(place, 0, item);
      this.items.value = next;
      this.index.value = place;
    } finally {
      this.taken.delete(id);
    }
  }
}
