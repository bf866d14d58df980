/** When points are drawn: some at once while the map moves, and the others once it rests. */
import type { Camera, Size } from "./camera";
import type { PointsCanvas } from "./gl";
import { LEAST_POINTS, nextPace } from "./pace";

/** How long the map rests before all its points are drawn. */
const REST_MS = 120;
const FIRST_POINTS = 100_000;

export class Painter {
  /** The number of points that have come, and that of all. */
  private loaded = 0;
  private count = 0;
  private drawn = 0;
  private pace = FIRST_POINTS;
  private isDirty = false;
  private movedAt = Number.NEGATIVE_INFINITY;
  private lastFrame = { at: 0, drew: false };
  private frame = 0;

  constructor(
    private readonly canvas: PointsCanvas,
    private readonly camera: () => { camera: Camera; size: Size },
  ) {}

  /** The number of points that are drawn. */
  get shown(): number {
    return this.drawn;
  }

  /** Say how many points have come. */
  load(loaded: number, count: number): void {
    if (count !== this.count) this.isDirty = true;
    [this.loaded, this.count] = [loaded, count];
    this.canvas.load(loaded);
    this.ask();
  }

  /** Draw all anew: colours, filter or size have changed. */
  renew(): void {
    this.isDirty = true;
    this.ask();
  }

  /** Draw what moves. */
  move(): void {
    this.movedAt = performance.now();
    this.renew();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  private ask(): void {
    this.frame ||= requestAnimationFrame((now) => this.paint(now));
  }

  private paint(now: number): void {
    this.frame = 0;
    const isMoving = performance.now() - this.movedAt < REST_MS;
    // The time since the last frame is that of its drawing, if it drew something.
    if (this.lastFrame.drew) this.pace = nextPace(this.pace, now - this.lastFrame.at, this.count);
    let drew = false;
    if (this.isDirty) {
      const { camera, size } = this.camera();
      this.canvas.clear(camera, size);
      this.drawn = Math.min(this.pace, this.loaded);
      this.canvas.draw(0, this.drawn);
      this.isDirty = false;
      drew = true;
    } else if (!isMoving && this.drawn < this.loaded) {
      const end = Math.min(this.drawn + Math.max(this.pace, LEAST_POINTS), this.loaded);
      this.canvas.draw(this.drawn, end);
      this.drawn = end;
      drew = true;
    }
    this.lastFrame = { at: now, drew };
    if (this.isDirty || this.drawn < this.loaded || isMoving) this.ask();
    this.canvas.canvas.dataset.drawn = String(this.drawn);
  }
}
