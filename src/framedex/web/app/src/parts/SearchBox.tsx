import { useSignal, useSignalEffect } from "@preact/signals";
import { useRef } from "preact/hooks";
import { call } from "../api/http";
import { useKeys } from "../keys/dispatcher";
import { navigate, pathOf, query } from "../router";
import { addressOf, dataset } from "../state/datasets";
import { sayError } from "../state/notices";
import { t } from "../texts";

/** The field for searching by words, by meaning or with an image. */
export function SearchBox() {
  const input = useRef<HTMLInputElement>(null);
  const text = useSignal(query.peek().get("q") ?? "");
  const isOver = useSignal(false);
  useSignalEffect(() => {
    text.value = query.value.get("q") ?? "";
  });
  useKeys("global", {
    search: () => {
      input.current?.focus();
      input.current?.select();
    },
  });
  return (
    <search
      class={`search ${isOver.value ? "over" : ""}`}
      aria-label={t.search.name}
      onDragOver={(event) => {
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={() => {
        isOver.value = false;
      }}
      onDrop={(event) => {
        event.preventDefault();
        isOver.value = false;
        const dropped = event.dataTransfer?.files[0];
        if (dropped) void searchWith(dropped);
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault();
          show({ q: text.value.trim() });
          input.current?.blur();
        }}
      >
        <input
          ref={input}
          type="search"
          aria-label={t.search.name}
          placeholder={t.search.placeholder}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
          }}
          onKeyDown={(event) => event.key === "Escape" && input.current?.blur()}
          onPaste={(event) => {
            const pasted = event.clipboardData?.files[0];
            if (pasted) void searchWith(pasted);
          }}
        />
        <kbd aria-hidden="true">/</kbd>
      </form>
    </search>
  );
}

/** Show the images that a search finds, keeping the filter. */
export function show(search: { q?: string; like?: string; region?: string }): void {
  const found = dataset.peek();
  if (!found) return;
  const next = new URLSearchParams();
  const filter = query.peek().get("f");
  if (filter) next.set("f", filter);
  for (const [name, value] of Object.entries(search)) if (value) next.set(name, value);
  navigate(pathOf(addressOf(found), "pictures", null, next.toString()));
}

/** Search with an image of the user. */
export async function searchWith(image: File): Promise<void> {
  const found = dataset.peek();
  if (!found) return;
  const form = new FormData();
  form.set("file", image);
  try {
    const path = `/dataset/${found.id}/search-image-similarity`;
    const anchor = await call<{ anchor_media_id: string }>("POST", path, { form, query: { entity_type: "IMAGES" } });
    show({ like: anchor.anchor_media_id });
  } catch (error) {
    sayError(error);
  }
}
