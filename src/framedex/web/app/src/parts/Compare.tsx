import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Image } from "#host";
import type { Row } from "../api/types";
import { t } from "../texts";
import { thumbnail } from "./thumbnail";

const PERIOD_MS = 400;
const SIZE = 1024;

interface Props {
  datasetId: string;
  first: Row | undefined;
  second: Row | undefined;
  mode: "flicker" | "difference";
}

/** Two images in the same place: one after the other, or their difference. */
export function Compare({ datasetId, first, second, mode }: Props) {
  const isSecond = useSignal(false);
  useEffect(() => {
    if (mode !== "flicker") return;
    const timer = setInterval(() => {
      isSecond.value = !isSecond.peek();
    }, PERIOD_MS);
    return () => clearInterval(timer);
  }, [mode]);
  if (!first || !second || first === second) return <p class="hint">{t.duplicates.chooseOther}</p>;
  const sources = [first, second].map((row) => thumbnail(datasetId, row.media_id, row.v, SIZE / 2));
  return (
    <figure class={`compare ${mode}`}>
      <Image src={sources[0]} alt={first.image_filename} />
      <Image
        src={sources[1]}
        alt={second.image_filename}
        class={mode === "flicker" && !isSecond.value ? "hidden" : ""}
      />
      <figcaption>
        {first.image_filename} · {second.image_filename}
      </figcaption>
    </figure>
  );
}
