/** Questions about points, which a worker answers, so that the page goes on meanwhile. */
import { startWorker } from "#host";
import type { Box } from "./camera";

export interface Place {
  /** The position of the row among all in the order of ingestion. */
  position: number;
  x: number;
  y: number;
}
export interface Questions {
  points: { places: Uint16Array; positions: Uint32Array };
  mask: { bits: ArrayBuffer | null };
  nearest: { x: number; y: number; reach: number };
  tiles: { box: Box; cell: number; mostPoints: number; mostTiles: number };
}
export interface Answers {
  points: null;
  /** 1 for each point that is kept; null where all are. */
  mask: Uint8Array | null;
  nearest: Place | null;
  /** One point for each cell; null where there are too many. */
  tiles: Place[] | null;
}
export type Question = keyof Questions;

export class PointIndex {
  private readonly worker = startWorker();
  private readonly open = new Map<number, (answer: never) => void>();
  private last = 0;

  constructor() {
    this.worker.onmessage = ({ data }: MessageEvent<{ id: number; answer: never }>) => {
      this.open.get(data.id)?.(data.answer);
      this.open.delete(data.id);
    };
  }

  ask<Name extends Question>(name: Name, asked: Questions[Name]): Promise<Answers[Name]> {
    const id = ++this.last;
    return new Promise((resolve) => {
      this.open.set(id, resolve as (answer: never) => void);
      this.worker.postMessage({ id, name, asked });
    });
  }

  close(): void {
    this.worker.terminate();
    this.open.clear();
  }
}
