/** The selected rows of results: single ones, or all of them. */
import { computed, signal } from "@preact/signals";

export class Selection {
  private readonly ids = signal<ReadonlySet<string>>(new Set());
  /** Whether all results are selected, whatever their number. */
  readonly isAll = signal(false);
  readonly isEmpty = computed(() => !this.isAll.value && this.ids.value.size === 0);

  has(mediaId: string): boolean {
    return this.isAll.value || this.ids.value.has(mediaId);
  }

  /** The number of selected rows, given the number of results. */
  count(all: number): number {
    return this.isAll.value ? all : this.ids.value.size;
  }

  get list(): string[] {
    return [...this.ids.value];
  }

  toggle(mediaId: string): void {
    this.isAll.value = false;
    const next = new Set(this.ids.value);
    if (!next.delete(mediaId)) next.add(mediaId);
    this.ids.value = next;
  }

  add(mediaIds: Iterable<string>): void {
    this.ids.value = new Set([...this.ids.value, ...mediaIds]);
  }

  only(mediaIds: Iterable<string>): void {
    this.isAll.value = false;
    this.ids.value = new Set(mediaIds);
  }

  all(): void {
    this.ids.value = new Set();
    this.isAll.value = true;
  }

  clear(): void {
    this.isAll.value = false;
    this.ids.value = new Set();
  }
}
