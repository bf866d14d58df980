import { t } from "../texts";

/** An empty box in the place of what is being read, which says so to those who do not see it. */
export function Skeleton({ of = "" }: { of?: string }) {
  return <div class={`skeleton ${of}`} role="progressbar" aria-busy="true" aria-label={t.loading} />;
}
