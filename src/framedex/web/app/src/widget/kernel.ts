/**
 * The kernel of a notebook as a server: requests and their answers are custom messages of the widget's model.
 *
 * A message is a list of items: what is asked in the same moment goes together, and so do answers. An answer of several
 * parts, as a stream of events has, comes as several items.
 */

/** The model of a widget, as anywidget passes it. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, call: (...values: never[]) => void): void;
  off(event: string, call: (...values: never[]) => void): void;
  send(content: unknown, callbacks?: unknown, buffers?: ArrayBuffer[]): void;
}

/** Whether the kernel answers: at once, after the running cell, or not at all. */
export type KernelState = "ready" | "busy" | "gone";

interface Question {
  do: "request" | "part" | "abort" | "assets" | "alive" | "close";
  id: string;
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  has_body?: boolean;
  /** Whether more of the body follows. */
  more?: boolean;
  /** The largest answer; of a larger one only the head comes. */
  most_bytes?: number;
}
interface Item {
  id: string;
  /** The kernel has taken the request, and works on it. */
  taken?: boolean;
  status?: number;
  headers?: [string, string][];
  has_body?: boolean;
  end?: boolean;
}
interface Answer {
  view: string;
  items: Item[];
}
interface Waiting {
  since: number;
  isTaken: boolean;
  take: (item: Item, body: Uint8Array<ArrayBuffer> | null) => void;
  fail: (reason: Error) => void;
}

/** An answer, complete. */
export interface Reply {
  status: number;
  headers: [string, string][];
  body: Uint8Array<ArrayBuffer>;
}

/** Servers of notebooks refuse messages of more than 10 MiB, and end the connection (tornado 6). */
const PART_BYTES = 4 * 2 ** 20;
const BUSY_MS = 3_000;
const GONE_MS = 20_000;
const LOOK_MS = 1_000;
const ALIVE_MS = 10_000;

export class Kernel {
  state: KernelState = "ready";
  /** Called when the state has changed. */
  readonly listeners = new Set<(state: KernelState) => void>();
  private readonly view = token();
  private readonly waiting = new Map<string, Waiting>();
  private outbox: { items: Question[]; buffers: ArrayBuffer[] } | null = null;
  private last = 0;
  private heard = Date.now();
  private asked = 0;
  private isClosed = false; // nothing may follow the last message, which has the kernel forget the view
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly model: Model,
    readonly closing: AbortSignal,
  ) {
    const take = (content: Answer, buffers: readonly DataView<ArrayBuffer>[]): void => this.receive(content, buffers);
    // The end of the connection; only Jupyter's own managers of widgets say it.
    const live = (): void => this.probe();
    model.on("msg:custom", take as never);
    model.on("comm_live_update", live);
    this.timer = setInterval(() => this.look(), LOOK_MS);
    closing.addEventListener("abort", () => {
      this.ask({ do: "close", id: "" });
      this.flush();
      this.isClosed = true;
      clearInterval(this.timer);
      model.off("msg:custom", take as never);
      model.off("comm_live_update", live);
      this.failAll("closed");
    });
  }

  /** Ask for the built files of the app, compressed. */
  assets(): Promise<Reply> {
    return this.collect({ do: "assets", id: this.nextId() }, null);
  }

  /** Wait until the kernel answers again. */
  ready(): Promise<void> {
    return new Promise((resolve) => {
      const call = (state: KernelState): void => {
        if (state !== "ready") return;
        this.listeners.delete(call);
        resolve();
      };
      this.listeners.add(call);
    });
  }

  /** Send a request, and return the whole answer. */
  request(path: string, init: RequestInit, mostBytes = Number.POSITIVE_INFINITY): Promise<Response> {
    return this.send(path, init, mostBytes);
  }

  /** Send a request whose answer comes in parts until it ends, or the returned function is called. */
  stream(path: string, part: (bytes: Uint8Array) => void, end: (reason: Error | null) => void): () => void {
    const id = this.nextId();
    this.wait(id, {
      take: (item, body) => {
        if (item.status !== undefined && item.status >= 400) return end(new Error(String(item.status)));
        if (body) part(body);
        if (item.end) end(null);
      },
      fail: end,
    });
    this.ask({ do: "request", id, method: "GET", path, headers: { Accept: "text/event-stream" } });
    return () => this.abort(id);
  }

  private async send(path: string, init: RequestInit, mostBytes: number): Promise<Response> {
    const headers = { ...(init.headers as Record<string, string> | undefined) };
    let body: ArrayBuffer | null = null;
    if (init.body != null) {
      // The browser knows how forms are sent.
      const whole = new Response(init.body);
      const type = whole.headers.get("content-type");
      if (type && !headers["Content-Type"]) headers["Content-Type"] = type;
      body = await whole.arrayBuffer();
    }
    const question: Question = { do: "request", id: this.nextId(), method: init.method ?? "GET", path, headers };
    if (Number.isFinite(mostBytes)) question.most_bytes = mostBytes;
    const reply = await this.collect(question, body, init.signal, mostBytes);
    const isEmpty = reply.status === 204 || reply.status === 304;
    return new Response(isEmpty ? null : reply.body, { status: reply.status, headers: reply.headers });
  }

  private collect(
    question: Question,
    body: ArrayBuffer | null,
    signal?: AbortSignal | null,
    mostBytes = Number.POSITIVE_INFINITY,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(new DOMException("aborted", "AbortError"));
      let head: Item | null = null;
      const parts: Uint8Array<ArrayBuffer>[] = [];
      const fail = (reason: Error): void => {
        signal?.removeEventListener("abort", stop);
        this.abort(question.id);
        reject(reason);
      };
      const stop = (): void => fail(new DOMException("aborted", "AbortError"));
      this.wait(question.id, {
        take: (item, part) => {
          head ??= item;
          const size = Number(head.headers?.find(([name]) => name === "content-length")?.[1] ?? 0);
          if (size > mostBytes) return fail(new RangeError(String(size)));
          if (part) parts.push(part);
          if (!item.end) return;
          signal?.removeEventListener("abort", stop);
          resolve({ status: head.status ?? 500, headers: head.headers ?? [], body: joined(parts) });
        },
        fail,
      });
      signal?.addEventListener("abort", stop);
      this.ask(question, body);
    });
  }

  private nextId(): string {
    return `${this.view}-${++this.last}`;
  }

  private wait(id: string, { take, fail }: Pick<Waiting, "take" | "fail">): void {
    if (this.closing.aborted) fail(new Error("closed"));
    else this.waiting.set(id, { since: Date.now(), isTaken: false, take, fail });
  }

  private abort(id: string): void {
    if (this.waiting.delete(id)) this.ask({ do: "abort", id });
  }

  /** Put a question into the message that is sent at the end of the present moment. */
  private ask(question: Question, body: ArrayBuffer | null = null): void {
    if (this.isClosed) return;
    if (!this.outbox) {
      this.outbox = { items: [], buffers: [] };
      queueMicrotask(() => this.flush());
    }
    const most = body?.byteLength ?? 0;
    for (let at = 0; at === 0 || at < most; at += PART_BYTES) {
      const part = body?.slice(at, at + PART_BYTES) ?? null;
      if (part && this.outbox?.buffers.length && bytesIn(this.outbox.buffers) + part.byteLength > PART_BYTES)
        this.flush();
      this.outbox ??= { items: [], buffers: [] };
      const head: Question = at === 0 ? question : { do: "part", id: question.id };
      this.outbox.items.push({ ...head, has_body: part !== null, more: at + PART_BYTES < most });
      if (part) this.outbox.buffers.push(part);
    }
  }

  private flush(): void {
    if (!this.outbox) return;
    const { items, buffers } = this.outbox;
    this.outbox = null;
    try {
      this.model.send({ view: this.view, items }, undefined, buffers);
      this.asked = Date.now();
    } catch {
      this.show("gone"); // the manager of widgets knows that there is no kernel
    }
  }

  private receive(content: Answer, buffers: readonly DataView<ArrayBuffer>[]): void {
    if (content?.view !== this.view || !Array.isArray(content.items)) return;
    this.heard = Date.now();
    let next = 0;
    for (const item of content.items) {
      const part = item.has_body ? bytesOf(buffers[next++]!) : null;
      const waiting = this.waiting.get(item.id);
      if (!waiting) continue;
      waiting.isTaken = true;
      if (item.taken) continue;
      if (item.end) this.waiting.delete(item.id);
      waiting.take(item, part);
    }
    this.look();
  }

  /** Find out whether the kernel still answers. */
  private probe(): void {
    const id = this.nextId();
    this.wait(id, { take: () => {}, fail: () => {} });
    this.ask({ do: "alive", id });
  }

  private look(): void {
    const now = Date.now();
    const oldest = Math.min(...[...this.waiting.values()].filter((each) => !each.isTaken).map((each) => each.since));
    const silence = now - oldest; // negative where nothing waits
    if (silence > GONE_MS && now - this.heard > GONE_MS) this.show("gone");
    else this.show(silence > BUSY_MS ? "busy" : "ready");
    if (now - this.asked > ALIVE_MS && this.waiting.size < 1_000) this.probe();
  }

  private show(state: KernelState): void {
    if (state === "gone") this.failAll("The kernel does not answer");
    if (state === this.state) return;
    this.state = state;
    for (const call of [...this.listeners]) call(state);
  }

  private failAll(reason: string): void {
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const each of all) each.fail(new TypeError(reason));
  }
}

const bytesIn = (buffers: readonly ArrayBuffer[]): number => buffers.reduce((sum, each) => sum + each.byteLength, 0);

/** Return a text that no other view has; pages without https have no `randomUUID`. */
function token(): string {
  return [...crypto.getRandomValues(new Uint32Array(3))].map((each) => each.toString(36)).join("");
}

const bytesOf = (view: DataView<ArrayBuffer>): Uint8Array<ArrayBuffer> =>
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

function joined(parts: readonly Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
  if (parts.length === 1) return parts[0]!;
  const whole = new Uint8Array(parts.reduce((sum, each) => sum + each.byteLength, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.byteLength;
  }
  return whole;
}
