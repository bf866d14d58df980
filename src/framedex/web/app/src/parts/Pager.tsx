import type { Signal } from "@preact/signals";
import { t } from "../texts";
import { Button } from "./Button";

interface Props {
  /** The number of items before the page; changed by the buttons. */
  offset: Signal<number>;
  /** The most items of a page. */
  size: number;
  /** The number of items of this page. */
  shown: number;
  /** The number of all items. */
  total: number;
}

/** Buttons for the pages of a list, the newest first; nothing for a list of one page. */
export function Pager({ offset, size, shown, total }: Props) {
  if (total <= size && offset.value === 0) return null;
  return (
    <nav class="pager" aria-label={t.pager.name}>
      {offset.value > 0 && (
        <Button
          onClick={() => {
            offset.value = Math.max(0, offset.value - size);
          }}
        >
          {t.pager.newer}
        </Button>
      )}
      <span role="status">{t.pager.range(offset.value + Math.min(1, shown), offset.value + shown, total)}</span>
      {offset.value + shown < total && (
        <Button
          onClick={() => {
            offset.value += size;
          }}
        >
          {t.pager.older}
        </Button>
      )}
    </nav>
  );
}
