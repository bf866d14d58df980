import { useSignal } from "@preact/signals";

export interface Attempt {
  /** Why the last attempt failed; empty if it did not. */
  problem: string;
  /** Do something; return whether it succeeded. */
  run: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** Attempts of a form, whose failure is shown in it. */
export function useAttempt(): Attempt {
  const problem = useSignal("");
  return {
    problem: problem.value,
    run: async (work) => {
      problem.value = "";
      try {
        await work();
        return true;
      } catch (error) {
        problem.value = error instanceof Error ? error.message : String(error);
        return false;
      }
    },
  };
}
