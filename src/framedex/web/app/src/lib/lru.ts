/** A map with a limited number of entries; the one that was not used for longest goes first. */
export class Lru<K, V> {
  private readonly entries = new Map<K, V>();

  constructor(private readonly most: number) {}

  get(key: K): V | undefined {
    const value = this.entries.get(key);
    if (value !== undefined) {
      this.entries.delete(key);
      this.entries.set(key, value);
    }
    return value;
  }

  set(key: K, value: V): void {
    this.entries.delete(key);
    this.entries.set(key, value);
    if (this.entries.size > this.most) {
      const [oldest] = this.entries.keys();
      this.entries.delete(oldest as K);
    }
  }

  values(): IterableIterator<V> {
    return this.entries.values();
  }

  delete(key: K): void {
    this.entries.delete(key);
  }

  clear(): void {
    this.entries.clear();
  }
}
