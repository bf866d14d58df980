/**
 * The arithmetic of a scroller with more rows than a browser can make high.
 *
 * Browsers cut heights at 2^24 device pixels, so the scroller is at most {@link MOST_PX} high. Small steps move the
 * rows pixel by pixel; long ones (the scrollbar, Home and End) move them in proportion. Because small steps use up the
 * scroller before the rows, its position is corrected from time to time.
 */

/** The maximum height of a scroller in pixels. */
export const MOST_PX = 6_000_000;
/** A step of the scroller in pixels beyond which it moves in proportion. */
const LONG_STEP_PX = 2_000;
/** The part of the scroller's height by which its position may differ from that of the rows. */
const MOST_DRIFT = 0.05;

export class VirtualScroll {
  /** The first visible pixel of the rows. */
  y = 0;
  private full = 0;
  private view = 0;
  private last = 0;
  private ignored: number | null = null;

  constructor(private readonly most: number = MOST_PX) {}

  /** The height of the scroller's content in pixels. */
  get height(): number {
    return Math.min(this.full, this.most);
  }

  /** The number of pixels of rows for a pixel of the scroller. */
  get factor(): number {
    const room = this.height - this.view;
    return this.full <= this.most || room <= 0 ? 1 : (this.full - this.view) / room;
  }

  /** The first pixel of the rows that cannot be at the top. */
  get end(): number {
    return Math.max(0, this.full - this.view);
  }

  /** Set the height of all rows and of the window, and return the position that the scroller must take. */
  resize(full: number, view: number): number {
    this.full = full;
    this.view = view;
    return this.moveTo(this.y);
  }

  /** Move the rows, and return the position that the scroller must take. */
  moveTo(y: number): number {
    this.y = Math.min(Math.max(0, y), this.end);
    this.last = this.y / this.factor;
    this.ignored = Math.round(this.last);
    return this.last;
  }

  /** Take a new position of the scroller; return another one that it must take instead, or null. */
  scrolled(top: number): number | null {
    if (this.ignored !== null && Math.abs(top - this.ignored) <= 1) {
      this.ignored = null;
      this.last = top;
      return null;
    }
    this.ignored = null;
    const step = top - this.last;
    this.last = top;
    if (this.factor === 1) {
      this.y = Math.min(Math.max(0, top), this.end);
      return null;
    }
    this.y = Math.abs(step) > LONG_STEP_PX ? top * this.factor : this.y + step;
    this.y = Math.min(Math.max(0, this.y), this.end);
    const expected = this.y / this.factor;
    const isAtEdge = top <= 0 || top >= this.height - this.view;
    const isAtEnd = this.y <= 0 || this.y >= this.end;
    const drifted = Math.abs(top - expected) > MOST_DRIFT * this.height;
    return drifted || isAtEdge !== isAtEnd ? this.moveTo(this.y) : null;
  }

  /** The pixel of the scroller's content at which a row begins, given the pixel of the rows at which it begins. */
  place(rowTop: number): number {
    return this.last + rowTop - this.y;
  }
}
