/** What a widget gives to the app that it shows: the function around the bundle of the app has it as its argument. */
import type { Kernel, Model } from "./kernel";

export interface Surroundings {
  model: Model;
  kernel: Kernel;
  root: ShadowRoot;
  /** Where the app is rendered. */
  place: HTMLElement;
  closing: AbortSignal;
}
