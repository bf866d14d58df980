/** Moves of the camera: at once, or smoothly for those who like motion. */
import type { Signal } from "@preact/signals";
import { between, type Camera } from "./camera";

const MOVE_MS = 220;

export class Motion {
  private target: Camera;
  private frame = 0;

  constructor(private readonly camera: Signal<Camera>) {
    this.target = camera.peek();
  }

  /** The camera at the end of the present move. */
  get aim(): Camera {
    return this.frame ? this.target : this.camera.peek();
  }

  /** Show another part of the map at once. */
  now(camera: Camera): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.camera.value = camera;
  }

  /** Move to another part of the map. */
  to(camera: Camera): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.now(camera);
      return;
    }
    cancelAnimationFrame(this.frame);
    const [from, start] = [this.camera.peek(), performance.now()];
    this.target = camera;
    const step = (): void => {
      const share = Math.min((performance.now() - start) / MOVE_MS, 1);
      const eased = 1 - (1 - share) ** 3;
      this.frame = share < 1 ? requestAnimationFrame(step) : 0;
      this.camera.value = share < 1 ? between(from, camera, eased) : camera;
    };
    this.frame = requestAnimationFrame(step);
  }
}
