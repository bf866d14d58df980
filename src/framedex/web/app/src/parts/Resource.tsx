import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { ApiError } from "../api/http";
import { t } from "../texts";
import { Skeleton } from "./Skeleton";

/** What a page reads from the server: its value once it is there, or why it is not. */
export interface Resource<T> {
  value: T | null;
  error: ApiError | null;
  reload: () => void;
}

/** Read something from the server, again when one of the dependencies changes; the old value stays meanwhile. */
export function useResource<T>(
  read: (signal: AbortSignal) => Promise<T>,
  dependencies: readonly unknown[],
): Resource<T> {
  const value = useSignal<T | null>(null);
  const error = useSignal<ApiError | null>(null);
  const attempt = useSignal(0);
  useEffect(() => {
    const abort = new AbortController();
    read(abort.signal)
      .then((found) => {
        if (abort.signal.aborted) return;
        value.value = found;
        error.value = null;
      })
      .catch((problem: unknown) => {
        if (abort.signal.aborted) return;
        error.value = problem instanceof ApiError ? problem : new ApiError(0, String(problem));
      });
    return () => abort.abort();
  }, [...dependencies, attempt.value]);
  return {
    value: value.value,
    error: error.value,
    reload: () => {
      attempt.value++;
    },
  };
}

/** What is shown in the place of something that is being read, or could not be. */
export function Pending({ of }: { of: Resource<unknown> }) {
  if (of.error) {
    return (
      <div class="problem" role="alert">
        <p>
          {t.failed} {of.error.message}
        </p>
        <button type="button" class="button" onClick={of.reload}>
          ↻
        </button>
      </div>
    );
  }
  return <Skeleton />;
}
