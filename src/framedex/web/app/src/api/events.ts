/**
 * Events of the server: tasks, changed datasets, notifications.
 *
 * A browser opens few connections to a host, and a stream keeps one. So one page of the browser holds the stream (a
 * lock elects it) and passes events on to the others.
 */
import { inOnePage, openChannel, openStream } from "#host";
import { address, beforeSending, get, isOnline } from "./http";

export type EventName = "task" | "head" | "notification" | "lost" | "open";
export type Listener = (name: EventName, data: Record<string, unknown>) => void;

const NAMES: readonly EventName[] = ["task", "head", "notification", "lost"];
const listeners = new Set<Listener>();
let channel: ReturnType<typeof openChannel> = null;
const SILENCE_MS = 10_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 8_000;

/** Listen to events until the returned function is called. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(name: EventName, data: Record<string, unknown>): void {
  for (const listener of listeners) listener(name, data);
}

/** Begin to receive events, in this page or from another one. */
export function startEvents(): void {
  channel = openChannel();
  if (channel) {
    channel.onmessage = ({ data }) => tell(data.name as EventName, data.data as Record<string, unknown>);
  }
  inOnePage(hold);
}

/** Hold the stream until the page is closed. */
function hold(): Promise<void> {
  let silence = 0;
  const wait = (): void => {
    clearTimeout(silence);
    silence = window.setTimeout(() => {
      isOnline.value = false;
    }, SILENCE_MS);
  };
  const pass = (name: EventName, data: Record<string, unknown>): void => {
    tell(name, data);
    channel?.postMessage({ name, data });
  };
  let pause = FIRST_PAUSE_MS;
  const connect = (): void => {
    const answered = beforeSending();
    const stream = openStream(address("/events"));
    stream.onopen = () => {
      answered();
      pause = FIRST_PAUSE_MS;
      wait();
      pass("open", {});
    };
    stream.onerror = () => {
      // Browsers try again at once and for ever, or not at all; here the pauses grow.
      stream.close();
      clearTimeout(silence);
      void get("/me").catch(() => {}); // says whether there is no server, or only no stream
      setTimeout(connect, pause);
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    };
    stream.addEventListener("ping", wait);
    for (const name of NAMES) {
      stream.addEventListener(name, (event) => {
        wait();
        pass(name, JSON.parse((event as MessageEvent<string>).data) as Record<string, unknown>);
      });
    }
  };
  connect();
  return new Promise(() => {});
}
