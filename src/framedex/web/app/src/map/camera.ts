/** The part of the map that is shown. Places are within the square of the map: 0 to 1, y upwards. */

export interface Camera {
  /** The place in the middle of the view. */
  x: number;
  y: number;
  /** 0 shows all of the map; each step doubles its size. */
  zoom: number;
}
export interface Size {
  width: number;
  height: number;
}
export interface Box {
  left: number;
  lower: number;
  right: number;
  upper: number;
}

export const FITTED: Camera = { x: 0.5, y: 0.5, zoom: 0 };
/** Beyond it, the steps of 16 bits between places would be seen. */
export const MOST_ZOOM = 8;
const LEAST_ZOOM = -1;
const FITTED_SHARE = 0.92;
const LEVELS = 5;
/** The steps of zoom for which the names of a level of clusters are shown. */
const ZOOM_OF_LEVEL = 1.25;

/** Return how many pixels the side of the map has. */
export function side(camera: Camera, size: Size): number {
  return Math.max(1, Math.min(size.width, size.height)) * FITTED_SHARE * 2 ** camera.zoom;
}

export function toScreen(camera: Camera, size: Size, x: number, y: number): [number, number] {
  const scale = side(camera, size);
  return [size.width / 2 + (x - camera.x) * scale, size.height / 2 - (y - camera.y) * scale];
}

export function toMap(camera: Camera, size: Size, left: number, top: number): [number, number] {
  const scale = side(camera, size);
  return [camera.x + (left - size.width / 2) / scale, camera.y - (top - size.height / 2) / scale];
}

/** Return a camera that can be: its middle is on the map, and its zoom within the limits. */
export function limited(camera: Camera): Camera {
  const within = (value: number, least: number, most: number): number =>
    Number.isFinite(value) ? Math.min(Math.max(value, least), most) : least;
  return { x: within(camera.x, 0, 1), y: within(camera.y, 0, 1), zoom: within(camera.zoom, LEAST_ZOOM, MOST_ZOOM) };
}

/** Return the camera after a move of the map by some pixels, rightwards and downwards. */
export function panned(camera: Camera, size: Size, right: number, down: number): Camera {
  const scale = side(camera, size);
  return limited({ ...camera, x: camera.x - right / scale, y: camera.y + down / scale });
}

/** Return the camera after some steps of zoom, in which a place on the screen stays where it is. */
export function zoomed(
  camera: Camera,
  size: Size,
  steps: number,
  left = size.width / 2,
  top = size.height / 2,
): Camera {
  const [x, y] = toMap(camera, size, left, top);
  const next = limited({ ...camera, zoom: camera.zoom + steps });
  const scale = side(next, size);
  return limited({ ...next, x: x - (left - size.width / 2) / scale, y: y + (top - size.height / 2) / scale });
}

/** Return the part of the map that is in view. */
export function inView(camera: Camera, size: Size): Box {
  const [left, upper] = toMap(camera, size, 0, 0);
  const [right, lower] = toMap(camera, size, size.width, size.height);
  return { left, lower, right, upper };
}

/** Return the camera a share of the way between two others; what is seen grows evenly. */
export function between(from: Camera, to: Camera, share: number): Camera {
  const zoom = from.zoom + (to.zoom - from.zoom) * share;
  // The middle moves as the scale does, so that the way on the screen is straight.
  const [start, end, present] = [2 ** -from.zoom, 2 ** -to.zoom, 2 ** -zoom];
  const part = Math.abs(end - start) < 1e-9 ? share : (present - start) / (end - start);
  return { x: from.x + (to.x - from.x) * part, y: from.y + (to.y - from.y) * part, zoom };
}

/** Return the level of clusters whose names suit a zoom: 4, the coarsest, far out; 0 near. */
export function levelOf(zoom: number): number {
  return Math.min(Math.max(LEVELS - 1 - Math.floor(Math.max(0, zoom) / ZOOM_OF_LEVEL), 0), LEVELS - 1);
}

/** Return the diameter of a point in pixels: larger for fewer points, and near. */
export function diameter(camera: Camera, size: Size, count: number): number {
  const spacing = Math.sqrt((size.width * size.height) / Math.max(1, count));
  const far = Math.min(Math.max(spacing * 0.3, 1.4), 7);
  return Math.min(far * 2 ** (Math.max(0, camera.zoom) * 0.5), 14);
}
