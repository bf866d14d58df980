/** A queue of findings to decide on: loaded in parts, one after another, with what was decided here left out. */
import { signal } from "@preact/signals";
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

  constructor(private readonly read: (offset: number) => Promise<Part<T>>) {}

  /** The item that is decided on now. */
  get current(): T | undefined {
    return this.items.value[this.index.value];
  }

  /** Read the queue from its beginning; the place in it stays. */
  async load(): Promise<void> {
    await this.fill(0);
    this.index.value = Math.min(this.index.peek(), Math.max(0, this.items.peek().length - 1));
  }

  private async fill(offset: number): Promise<void> {
    this.isLoading.value = true;
    try {
      const part = await this.read(offset);
      this.items.value = offset === 0 ? part.items : [...this.items.peek(), ...part.items];
      this.hasMore.value = part.hasMore;
      this.error.value = null;
    } catch (error) {
      this.error.value = error instanceof ApiError ? error : new ApiError(0, String(error));
    } finally {
      this.isLoading.value = false;
    }
  }

  /** Go some items on, reading more where the end is near. */
  move(by: number): void {
    const last = Math.max(0, this.items.peek().length - 1);
    this.index.value = Math.min(Math.max(0, this.index.peek() + by), last);
    if (this.hasMore.peek() && !this.isLoading.peek() && this.index.peek() > last - 10)
      void this.fill(this.items.peek().length);
  }

  /** Take an item out at once; return a function that puts it back in its place. */
  remove(item: T): () => void {
    const place = this.items.peek().indexOf(item);
    if (place < 0) return () => {};
    this.items.value = this.items.peek().filter((each) => each !== item);
    if (this.index.peek() >= this.items.peek().length) this.index.value = Math.max(0, this.items.peek().length - 1);
    this.move(0);
    return () => {
      const next = [...this.items.peek()];
      next.splice(place, 0, item);
      this.items.value = next;
      this.index.value = place;
    };
  }
}
