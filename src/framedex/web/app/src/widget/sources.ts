/** Images and other files of the service as object URLs: loaded once, kept while they are shown and somewhat longer. */
import type { Kernel } from "./kernel";

const MOST_AT_ONCE = 24;
const MOST_KEPT = 600;
const MOST_KEPT_BYTES = 96 * 2 ** 20;
/** The largest file that is loaded as a whole. */
export const MOST_BYTES = 128 * 2 ** 20;
/** A source that no element can show, so that elements say so. */
const BROKEN = "data:,";

interface Source {
  url: string | null;
  bytes: number;
  listeners: Set<(url: string) => void>;
  loading: AbortController | null;
}

export class Sources {
  private readonly all = new Map<string, Source>();
  private readonly queue = new Set<string>();
  private running = 0;
  private bytes = 0;

  constructor(
    private readonly kernel: Kernel,
    closing: AbortSignal,
  ) {
    closing.addEventListener("abort", () => {
      for (const address of [...this.all.keys()]) this.drop(address);
    });
  }

  /** Return the object URL of an address, if it is there. */
  ready(address: string): string | null {
    return this.all.get(address)?.url ?? null;
  }

  /** Call a function with the object URL of an address once it is there, until the returned function is called. */
  use(address: string, call: (url: string) => void): () => void {
    const source = this.all.get(address) ?? { url: null, bytes: 0, listeners: new Set(), loading: null };
    this.all.delete(address);
    this.all.set(address, source); // the last one is the one that was used last
    source.listeners.add(call);
    if (source.url !== null) call(source.url);
    else if (!source.loading) this.queue.add(address);
    this.start();
    return () => {
      source.listeners.delete(call);
      if (source.listeners.size === 0 && source.url === null) this.drop(address);
      this.trim();
    };
  }

  private start(): void {
    for (const address of this.queue) {
      if (this.running >= MOST_AT_ONCE) return;
      this.queue.delete(address);
      void this.load(address);
    }
  }

  private async load(address: string): Promise<void> {
    const source = this.all.get(address);
    if (!source) return;
    source.loading = new AbortController();
    this.running++;
    try {
      const response = await this.kernel.request(address, { signal: source.loading.signal }, MOST_BYTES);
      const blob = response.ok ? await response.blob() : null;
      if (this.all.get(address) !== source) return;
      source.url = blob ? URL.createObjectURL(blob) : BROKEN;
      source.bytes = blob?.size ?? 0;
      this.bytes += source.bytes;
    } catch {
      if (this.all.get(address) === source) source.url = BROKEN;
    } finally {
      source.loading = null;
      this.running--;
      this.start();
    }
    if (source.url === null) return;
    for (const call of [...source.listeners]) call(source.url);
    if (source.url === BROKEN) this.all.delete(address); // the next one who asks tries again
    this.trim();
  }

  private trim(): void {
    for (const [address, source] of this.all) {
      if (this.all.size <= MOST_KEPT && this.bytes <= MOST_KEPT_BYTES) return;
      if (source.listeners.size === 0 && source.url !== null) this.drop(address);
    }
  }

  private drop(address: string): void {
    const source = this.all.get(address);
    if (!source) return;
    this.all.delete(address);
    this.queue.delete(address);
    source.loading?.abort();
    this.bytes -= source.bytes;
    if (source.url && source.url !== BROKEN) URL.revokeObjectURL(source.url);
  }
}
