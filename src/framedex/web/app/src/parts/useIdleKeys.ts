import { useLayoutEffect } from "preact/hooks";
import { bind, type Handlers, useKeys } from "../keys/dispatcher";
import { KEYS, SCOPES, type Scope } from "../keys/table";
import { say } from "../state/notices";
import type { Queue } from "../state/queue";
import { t } from "../texts";

/** Return handlers of the keys of a scope that only say why they do nothing. */
function idle(scope: Scope, reason: string, others: readonly string[] = []): Handlers {
  const keys = KEYS.filter((key) => key.scope === scope && !others.includes(key.id));
  return Object.fromEntries(keys.map((key) => [key.id, () => say(reason)]));
}

/**
 * Let keys of a scope say why they do nothing, as long as there is a reason.
 *
 * @param reason why there is nothing that they could act on; null where there is.
 * @param others keys that act without it.
 */
export function useIdleKeys(scope: Scope, reason: string | null, others: readonly string[] = []): void {
  useKeys(scope, reason === null ? {} : idle(scope, reason, others));
}

type Idle = Pick<Queue<unknown>, "current" | "isLoading" | "error">;

/** Let keys of a queue say why they do nothing while it is read, could not be read, or is empty. */
export function useIdleQueueKeys(scope: Scope, queue: Idle, nothing: string, others: readonly string[]): void {
  const reason = queue.error.value?.message ?? (queue.isLoading.value ? t.queueLoading : nothing);
  useIdleKeys(scope, queue.current === undefined ? reason : null, others);
}

/** Let the keys of all pages say that the page is still loading. */
export function useIdlePageKeys(): void {
  useLayoutEffect(() => {
    const scopes = SCOPES.filter((scope) => scope !== "dialog" && scope !== "global");
    const stops = scopes.map((scope) => bind(scope, () => idle(scope, t.pageLoading)));
    return () => {
      for (const stop of stops) stop();
    };
  }, []);
}
