import type { Problem } from "../api/types";
import { leftOut } from "../texts/sources";

/** What was left out or could not be used, by reason, with examples. */
export function Problems({ of }: { of: readonly Problem[] }) {
  return (
    <ul class="notes">
      {of.map(({ reason, count, examples }) => (
        <li key={reason}>
          {examples.length === 0 ? (
            leftOut.line(count, reason)
          ) : (
            <details>
              <summary>{leftOut.line(count, reason)}</summary>
              <ul>
                {examples.map((each) => (
                  <li key={each}>{each}</li>
                ))}
              </ul>
              {examples.length < count && <p class="hint">{leftOut.more(count - examples.length)}</p>}
            </details>
          )}
        </li>
      ))}
    </ul>
  );
}
